#!/usr/bin/env bash
# The core on real data with a real language model: every stage, in order, or one of them by its name.
#
#   make reproduce-lm LM=FOLDER_OR_HUB_ID STAGE=NAME DATA=FOLDER
#
#   LM     a causal language model: a folder of transformers or a hub id on this machine, by default google/gemma-3-270m
#   STAGE  one of the names below, by default all in this order: qg estimator lm-estimator joint lm-reader crossfit
#          one-corpus rewriter-dialogues rewriter-queries drrag-classifier drrag-reader packed-reader hiqa-documents
#          hiqa-reader
#   DATA   the folder of the official files, by default data
#
# Minutes of each: docs/evaluate.md. A stage writes checkpoints/lm-*, indexes/lm-*, data/lm/* and reports/lm-*. One
# that was stopped goes on when the line is typed again, and one that is done is skipped: reports/lm-stages/NAME says so.
# Each stage is scripts/reproduce_lm/NAME.sh, which reads LM, DATA and PYTHON.
set -euo pipefail
export PYTHON=${PYTHON:-python} LM=${LM:-google/gemma-3-270m} DATA=${DATA:-data}
stages=$(dirname "$0")/reproduce_lm marks=reports/lm-stages
all="qg estimator lm-estimator joint lm-reader crossfit one-corpus rewriter-dialogues rewriter-queries drrag-classifier"
all+=" drrag-reader packed-reader hiqa-documents hiqa-reader"

stop() { # exit code, message
  echo "reproduce-lm: $2" >&2
  exit "$1"
}

for stage in ${STAGE:-$all}; do
  [[ " $all " == *" $stage "* && -f $stages/$stage.sh ]] || stop 2 "STAGE=$stage is no stage; there are: $all."
done
[ -d "$DATA" ] || stop 66 "DATA=$DATA is no folder: give the folder of the official files."
weights=$("$PYTHON" -m scripts.reproduce_lm.weights "$LM")
printf 'LM %s, sha256 of its weights %s\n' "$LM" "$weights"

mkdir -p "$marks"
for stage in ${STAGE:-$all}; do
  if [ -f "$marks/$stage" ]; then
    grep -q "$weights" "$marks/$stage" || stop 65 "$marks/$stage is of another LM: remove {checkpoints,indexes,reports}/lm-* and data/lm first."
    printf '\n== %s: done before\n' "$stage"
    continue
  fi
  printf '\n== %s\n' "$stage"
  began=$SECONDS
  bash "$stages/$stage.sh"
  printf '%-20s%4d min  LM %s  sha256 %s\n' "$stage" $(((SECONDS - began + 59) / 60)) "$LM" "$weights" > "$marks/$stage.partial"
  mv "$marks/$stage.partial" "$marks/$stage"
done
printf '\n== minutes of the last start of each stage\n'
cat "$marks"/*
