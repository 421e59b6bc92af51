#!/usr/bin/env bash
# The whole of DR-RAG on a generated world: data, indexes, hard negatives, training, evaluation, an answered question.
# Every stage is a command a user types for real data too; seconds are printed for each.
set -euo pipefail
python=${PYTHON:-python}
questions=data/world
began=$SECONDS

stage() {
  local name=$1 started=$SECONDS
  shift
  printf '\n== %s: %s\n' "$name" "$*"
  "$@"
  printf '== %s: %d s\n' "$name" $((SECONDS - started))
}

stage world "$python" -m datamodules.world --out "$questions"
stage index-bm25 "$python" infer.py index --corpus $questions/corpus.jsonl --kind bm25 --out indexes/world-bm25
stage index-dense "$python" infer.py index --corpus $questions/corpus.jsonl --kind dense --out indexes/world-dense
stage mine "$python" infer.py mine --config configs/infer/mine_world.yaml
rm -rf checkpoints/drrag-world # a quickstart starts over; a run of your own is never overwritten
stage train "$python" train.py fit --config configs/train/drrag_world.yaml
stage evaluate "$python" infer.py evaluate --config configs/infer/drrag_world.yaml \
  --questions $questions/test.json --limit 400 --rows '[QDC,CFS,ranked]' --out reports/world
question=$("$python" -c "import json; print(json.load(open('$questions/test.json'))[0]['question'])")
stage ask "$python" infer.py ask --config configs/infer/drrag_world.yaml --question "$question"
printf '\nquickstart: %d s in all; table in reports/world/table.md, plot in reports/world/recall.png\n' $((SECONDS - began))
