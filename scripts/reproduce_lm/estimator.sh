#!/usr/bin/env bash
# MiniLM as RE-RAG's estimator, taught by the language model alone and with labels beside it, three seeds each, on NQ's
# training questions with BM25's first ten of 20 passages. reports/lm-estimator.md: the place of the gold passage among
# the 20 of the dev questions, beside BM25 and MiniLM's cosine.
set -euo pipefail
systems=()
for kind in taught labelled; do
  weight=0
  [ $kind = taught ] || weight=1
  systems+=(--system $kind)
  for seed in 0 1 2; do
    name=lm-estimator-$kind-$seed
    [ -d "checkpoints/$name/serving" ] || "$PYTHON" train.py fit --config configs/lm/estimator.yaml --name "$name" --resume auto \
      --model.generator "$LM" --model.loss.label_weight $weight --seed_everything $seed --data.sampling_seed $seed
    systems+=("checkpoints/$name/serving=data/lm/nq-dev.jsonl")
  done
done
"$PYTHON" -m scripts.reproduce_lm.ranking "${systems[@]}" > reports/lm-estimator.partial
mv reports/lm-estimator.partial reports/lm-estimator.md
