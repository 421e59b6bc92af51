#!/usr/bin/env bash
# RE-RAG's three losses, without labels: an estimator and a generator, two adapters of the language model, trained jointly
# on the questions of the stage lm-estimator; and a generator weighted by the retriever (the baseline of Table 7).
set -euo pipefail
run() { # name, further options
  [ -d "checkpoints/$1/serving" ] || "$PYTHON" train.py fit --config configs/lm/joint.yaml --name "$1" --resume auto --model.generator "$LM" "${@:2}"
}
run lm-joint --model.estimator "$LM"
run lm-joint-baseline --model.estimator null --model.relevance retriever
