#!/usr/bin/env bash
# Rounds of training for a beam over hops, after scripts/drrag_multihop.sh: train on chains, let the beam search the training questions
# of each data set, train again on what it met, from the classifier before.  bash scripts/drrag_beam.sh [rounds, 2 by default]
# When it is run again, finished trainings and expansions are kept, and an expansion that was stopped goes on.
set -euo pipefail
source "$(dirname "$0")/multihop_sets.sh"
rounds=${1:-2}
config=configs/train/drrag_beam_multihop.yaml

trained=drrag-beam-multihop
if [ ! -d "checkpoints/$trained/serving" ]; then
  "$python" train.py fit --config $config
fi

for round in $(seq 2 "$rounds"); do
  met=()
  while read -r -u 3 name layout train dev; do
    out=data/mined/$name-beam-$round.jsonl
    if [ ! -f "$out" ]; then
      "$python" infer.py expand --config configs/infer/drrag_beam_hotpotqa.yaml \
        --strategy.init_args.serving "checkpoints/$trained/serving" \
        --strategy.init_args.retriever.init_args.retrievers "$(retrievers "$name")" \
        --questions "[$train]" --layout "$layout" --out "$out"
    fi
    met+=("$out")
  done 3<<< "$sets"
  before=$trained
  trained=drrag-beam-multihop-$round
  if [ ! -d "checkpoints/$trained/serving" ]; then
    "$python" train.py fit --config $config --name "$trained" --model.pretrained "checkpoints/$before/serving/classifier" \
      --data.expansions "[$(IFS=,; echo "${met[*]}")]"
  fi
done
