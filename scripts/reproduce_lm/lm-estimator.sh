#!/usr/bin/env bash
# The language model's own estimator, an adapter, taught by the frozen language model without labels: 120 of NQ's training
# questions with the first 8 of 20 passages by MiniLM's cosine. reports/lm-own-estimator.md: the place of the gold passage
# among the 20 of the dev questions, beside BM25 and the cosine.
set -euo pipefail
nq=$DATA/nq/nq-open-20_total_documents serving=checkpoints/lm-own-estimator/serving
for part in train dev; do
  [ -f data/lm/nq-scored-$part.jsonl ] || "$PYTHON" infer.py score --questions "${nq}_$part.jsonl.gz" --out data/lm/nq-scored-$part.jsonl
done
"$PYTHON" -m scripts.reproduce_lm.sample data/lm/nq-scored-train.jsonl \
  --parts data/lm/nq-joint-train.jsonl=120 data/lm/nq-joint-validation.jsonl=24

mkdir -p reports
[ -d $serving ] || "$PYTHON" train.py fit --config configs/lm/joint.yaml --name lm-own-estimator --resume auto --model.estimator "$LM" \
  --model.generator "$LM" --model.optimizer.generator_learning_rate 0 --model.validation.contexts 0
"$PYTHON" -m scripts.reproduce_lm.ranking --system taught $serving=data/lm/nq-scored-dev.jsonl > reports/lm-own-estimator.partial
mv reports/lm-own-estimator.partial reports/lm-own-estimator.md
