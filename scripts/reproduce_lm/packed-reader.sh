#!/usr/bin/env bash
# An adapter of the language model learns to read all documents in one prompt, on 640 of HotpotQA's training questions.
# reports/lm-packed-*.txt: EM from the gold paragraphs alone, and from four with these among them, in random order.
# reports/lm-packed: its answers from DR-RAG's selections, with a classifier of configs/train/own/classifier.yaml.
set -euo pipefail
train=$DATA/hotpotqa/hotpot_distractor_train.json.gz pool=$DATA/hotpotqa/hotpot_distractor_dev.json.gz dev=data/lm/hotpotqa-dev.jsonl

"$PYTHON" -m scripts.reproduce_lm.sample "$train" --parts data/lm/hotpotqa-packed-train.jsonl=640 data/lm/hotpotqa-packed-validation.jsonl=64
"$PYTHON" -m scripts.reproduce_lm.sample "$pool" --parts $dev=300
[ -d checkpoints/lm-packed/serving ] || "$PYTHON" train.py fit --config configs/lm/packed.yaml --resume auto --model.generator "$LM"

reads() { # name, paragraphs, which
  local report=reports/lm-packed-$1.txt
  [ ! -f "$report" ] || return 0
  "$PYTHON" train.py validate --config configs/lm/packed.yaml --model.generator "$LM" \
    --ckpt_path checkpoints/lm-packed/best.ckpt --data.validation "[{layout: hotpotqa, path: $dev, limit: 200}]" \
    --data.validation_contexts "$2" --data.validation_context_sampling "$3" > "$report.partial"
  mv "$report.partial" "$report" # a stopped one is measured again
}
mkdir -p reports
reads gold 2 gold
reads four 4 sampled

"$PYTHON" infer.py index --corpus "$train" --layout hotpotqa --kind bm25 --out indexes/lm-hotpotqa-own/bm25
"$PYTHON" infer.py index --corpus "$pool" --layout hotpotqa --kind bm25 --out indexes/lm-hotpotqa-dev/bm25
[ -d checkpoints/lm-packed-classifier/serving ] || "$PYTHON" train.py fit --config configs/train/own/classifier.yaml \
  --name lm-packed-classifier --resume auto --data.train "$train" --data.search.index_root indexes/lm-hotpotqa-own
[ -d reports/lm-packed ] || "$PYTHON" infer.py evaluate --config configs/infer/drrag.yaml --index_root indexes/lm-hotpotqa-dev \
  --system.init_args.retriever configs/parts/bm25.yaml --system.init_args.serving checkpoints/lm-packed-classifier/serving \
  --system.init_args.reader harness.readers.t5.PackedReader \
  --system.init_args.reader.init_args.serving checkpoints/lm-packed/serving \
  --questions $dev --layout hotpotqa --limit 150 --study.ks '[4]' --study.rows '[QDC,ranked]' --out reports/lm-packed
