#!/usr/bin/env bash
# The estimator without labels, cross-fitted: of NQ's 344 questions with 20 passages, train and dev, each half is ranked
# by the estimator that was taught on the other. reports/lm-crossfit.md: the place of the gold passage among the 20.
set -euo pipefail
nq=$DATA/nq/nq-open-20_total_documents
pairs=()
for half in 0 1; do
  other=$((1 - half)) name=lm-crossfit-$half
  "$PYTHON" -m scripts.reproduce_lm.contexts "${nq}_train.jsonl.gz" "${nq}_dev.jsonl.gz" --best 10 --half $half \
    --out data/lm/nq-half-$half.jsonl
  "$PYTHON" -m scripts.reproduce_lm.contexts "${nq}_train.jsonl.gz" "${nq}_dev.jsonl.gz" --half $other \
    --out data/lm/nq-ranked-$other.jsonl
  [ -d "checkpoints/$name/serving" ] || "$PYTHON" train.py fit --config configs/lm/estimator.yaml --name "$name" --resume auto \
    --model.generator "$LM" --data.train "[{layout: fid, path: data/lm/nq-half-$half.jsonl}]"
  pairs+=("checkpoints/$name/serving=data/lm/nq-ranked-$other.jsonl")
done
"$PYTHON" -m scripts.reproduce_lm.ranking --system taught "${pairs[@]}" > reports/lm-crossfit.partial
mv reports/lm-crossfit.partial reports/lm-crossfit.md
