#!/usr/bin/env bash
# Rounds of training for a beam over hops, after scripts/drrag_multihop.sh: train on chains, let the beam search the training questions
# of each data set, train again on what it met, from the classifier before.  bash scripts/drrag_beam.sh [rounds, 2 by default]
# When it is run again, finished trainings and expansions are kept, and an expansion that was stopped goes on.
set -euo pipefail
python=${PYTHON:-python}
rounds=${1:-2}
config=configs/train/drrag_beam_multihop.yaml

# name, layout, training file, dev file
sets="hotpotqa hotpotqa data/hotpotqa/hotpot_distractor_train.json.gz data/hotpotqa/hotpot_distractor_dev.json.gz
2wiki twowiki data/2wikimultihopqa/2wiki_train.json.gz data/2wikimultihopqa/2wiki_dev.json.gz
musique musique data/musique/musique_ans_train.jsonl.gz data/musique/musique_ans_dev.jsonl.gz"

retrievers() { # of a data set, as in the config
  local part kinds=(dense.DenseRetriever dense bm25.Bm25Retriever bm25 links.LinkRetriever links)
  part=$(printf "{class_path: harness.retrievers.%s, init_args: {index: indexes/$1-%s}}, " "${kinds[@]}")
  printf '[%s]' "${part%, }"
}

while read -r -u 3 name layout train dev; do
  if [ ! -d "indexes/$name-links" ]; then
    "$python" infer.py index --corpus "[$train, $dev]" --layout "$layout" --kind links --out "indexes/$name-links"
  fi
done 3<<< "$sets"

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
