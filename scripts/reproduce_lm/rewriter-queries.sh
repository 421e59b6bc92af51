#!/usr/bin/env bash
# Rewriters of search queries: Rewrite-Retrieve-Read's pairs of HotpotQA (2,000) and pseudo-answers of NQ (1,200).
# reports/lm-queries-* have recall with question and rewrite, fused, beside the question alone and beside it with as many
# passages.
set -euo pipefail
hotpotqa=$DATA/hotpotqa/hotpot_distractor_dev.json.gz

"$PYTHON" -m scripts.reproduce_lm.rewrite_files queries "$DATA/rewriting/rrr_hotpot/train.source.gz" data/lm --not_in "$hotpotqa"
"$PYTHON" -m scripts.reproduce_lm.sample "$DATA/nq/nq-open-oracle_train.jsonl.gz" \
  --parts data/lm/nq-train.jsonl=1200 data/lm/nq-validation.jsonl=55
for part in train validation; do
  "$PYTHON" -m scripts.reproduce_lm.rewrite_files passages data/lm/nq-$part.jsonl data/lm/par-$part.jsonl
done
"$PYTHON" infer.py index --layout hotpotqa --corpus "$hotpotqa" --kind bm25 --out indexes/lm-hotpotqa-dev/bm25
"$PYTHON" infer.py index --layout fid --kind bm25 --out indexes/lm-nq-dev/bm25 \
  --corpus "[$DATA/nq/nq-open-oracle_dev.jsonl.gz, $DATA/nq/nq-open-20_total_documents_dev.jsonl.gz, $DATA/nq/nq_retrieved_dev.json.gz]"

fit() { # name, further options
  [ -d "checkpoints/lm-rewriter-$1/serving" ] || "$PYTHON" train.py fit --config configs/lm/rewriter_queries.yaml \
    --name "lm-rewriter-$1" --data.train "[{layout: rewrites, path: data/lm/$1-train.jsonl}]" \
    --data.validation "[{layout: rewrites, path: data/lm/$1-validation.jsonl}]" --resume auto "${@:2}"
}

measure() { # name, strategy, data set, questions, layout, most questions
  [ -d "reports/lm-queries-$1" ] || "$PYTHON" infer.py evaluate --config configs/lm/dmqr.yaml --index_root "indexes/lm-$3-dev" \
    --system.init_args.rewriter.init_args.serving "checkpoints/lm-rewriter-$1/serving" --system.init_args.strategies "[$2]" \
    --questions "$4" --layout "$5" --limit "$6" --ks '[5,10,20]' --out "reports/lm-queries-$1"
}

fit par --model.pretrained "$LM"
measure par par nq "$DATA/nq/nq-open-oracle_dev.jsonl.gz" fid 600
fit rrr --model.pretrained "$LM" --model.max_tokens 160 --model.max_rewrite_tokens 64
measure rrr decomposition hotpotqa "$hotpotqa" hotpotqa 200
