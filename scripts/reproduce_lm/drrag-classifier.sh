#!/usr/bin/env bash
# DR-RAG's classifier on HotpotQA: negatives of the distractor file alone, and half of them mined with MiniLM or BM25.
# reports/lm-drrag-NAME-auc.txt: AUC on one validation set for all, with the negatives of both miners.
# reports/lm-drrag-METHOD.md: recall of all selections, and the difference to METHOD with the first classifier.
set -euo pipefail
train=data/lm/hotpotqa-train.jsonl validation=data/lm/hotpotqa-validation.jsonl dev=data/lm/hotpotqa-dev.jsonl
mined=data/lm/hotpotqa-mined pool=$DATA/hotpotqa/hotpot_distractor_dev.json.gz

"$PYTHON" -m scripts.reproduce_lm.sample "$DATA/hotpotqa/hotpot_distractor_train.json.gz" --parts $train=600 $validation=100
"$PYTHON" -m scripts.reproduce_lm.sample "$pool" --parts $dev=300
"$PYTHON" infer.py index --corpus "$pool" --layout hotpotqa --kind dense --out indexes/lm-hotpotqa-dev/dense

run() { # fit or validate, name, files of mined negatives, further options
  "$PYTHON" train.py "$1" --config configs/train/drrag_hotpotqa.yaml --name "$2" --trainer.max_epochs 1 \
    --data.train "[{layout: hotpotqa, path: $train}]" --data.validation "[{layout: hotpotqa, path: $validation}]" \
    --data.hard_negatives "$3" "${@:4}"
}

classifier() { # name, files of mined negatives
  [ -d "checkpoints/lm-drrag-$1/serving" ] || run fit "lm-drrag-$1" "$2" --resume auto
  [ -d "reports/lm-drrag-$1" ] || "$PYTHON" infer.py evaluate --config configs/infer/drrag.yaml --index_root indexes/lm-hotpotqa-dev \
    --system.init_args.serving "checkpoints/lm-drrag-$1/serving" --questions $dev --layout hotpotqa \
    --study.rows '[QDC,CIS,CFS,ranked]' --study.ks '[4,6]' --out "reports/lm-drrag-$1"
}

classifier distractor '[]'
for kind in dense bm25; do
  "$PYTHON" infer.py index --corpus "[$train, $validation]" --layout hotpotqa --kind $kind --out indexes/lm-hotpotqa-train/$kind
  [ -f $mined-$kind.jsonl ] || "$PYTHON" infer.py mine --retriever configs/parts/$kind.yaml --index_root indexes/lm-hotpotqa-train \
    --questions "[$train, $validation]" --layout hotpotqa --anchors 2 --out $mined-$kind.jsonl
  classifier $kind "[$mined-$kind.jsonl]"
done

systems=()
mkdir -p reports
for name in distractor dense bm25; do
  run validate "lm-drrag-$name" "[$mined-dense.jsonl, $mined-bm25.jsonl]" --ckpt_path "checkpoints/lm-drrag-$name/best.ckpt" \
    > "reports/lm-drrag-$name-auc.txt"
  systems+=(--system "$name" "reports/lm-drrag-$name")
done
for row in SM CIS CFS ranked; do
  "$PYTHON" -m benchmarks.seeds "${systems[@]}" --measures recall@4 passages@4 recall@6 passages@6 --baseline "distractor: $row" \
    > "reports/lm-drrag-$row.md"
done
