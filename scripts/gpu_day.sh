#!/usr/bin/env bash
# Everything that only a GPU can show, in at most ten minutes on one card of some 80 GiB, in order of worth.
#
#   bash scripts/gpu_day.sh [--out FOLDER] [--wheels FOLDER] [--only STEP]... [--rehearse]
#
#   --out FOLDER     receives STEP.json and STEP.log, steps.jsonl (exit code and seconds of each step), table.md, and
#                    gpu_day.tar.gz, which holds them all; by default benchmarks/results/gpu
#   --wheels FOLDER  is installed for this run alone, without a network
#   --only STEP      runs this step, not all; can be repeated: card equal bf16 ranks training-triples training-contexts
#                    training-rewrites scoring memory
#   --rehearse       the same lines on the CPU, with tiny sizes and a few of the tests
#
# Each step is a process with a limit of its own; one that fails or takes longer is reported and stops no other.  The
# exit code is 1 if there was one.  PYTHON names the interpreter; paths count from the repository's folder.
#
# The machine needs Python 3.11 or newer with torch 2.11 or newer, pytorch-lightning, accelerate, peft,
# sentence-transformers, matplotlib, pytest, pytest-xdist and hypothesis; faiss, bm25s, datasets and wandb are not
# needed.  Where it lacks them, carry five wheels of 15 MB (versions of requirements-core.txt; transformers before 5.23
# has other names for gradient checkpointing).  With them the repository's files are 34 MiB:
#
#   python3 -m pip download --no-deps --only-binary=:all: --python-version 3.12 -d wheels \
#     transformers==5.23.0 peft==0.21.2 jsonargparse==4.53.0 docstring-parser==0.18.0 typeshed-client==2.15.0
set -uo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
out=benchmarks/results/gpu wheels="" rehearse=() only=" " failed=0
steps=" card equal bf16 ranks training-triples training-contexts training-rewrites scoring memory "

while [ $# -gt 0 ]; do
  case $1 in
    --out) out=$2; shift 2 ;;
    --wheels) wheels=$2; shift 2 ;;
    --only)
      [[ $steps == *" $2 "* ]] || { echo "gpu_day.sh: --only $2 is no step:$steps" >&2; exit 2; }
      only+="$2 "; shift 2 ;;
    --rehearse) rehearse=(--rehearse); shift ;;
    --help | -h) sed -n '2,/^set /{s/^# \{0,1\}//;/^set /d;p}' "$0"; exit 0 ;;
    *) echo "gpu_day.sh: unknown option $1; see --help." >&2; exit 2 ;;
  esac
done

export HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false OMP_WAIT_POLICY=passive PYTHONUNBUFFERED=1 WANDB_MODE=offline
[ ${#rehearse[@]} -eq 0 ] || export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}" # more are slower on busy cores
mkdir -p "$out" || exit 74
out=$(cd "$out" && pwd)
: >"$out/steps.jsonl"
packed=$(mktemp)
site=""
trap 'rm -rf "$packed" "$site"' EXIT
if [ -n "$wheels" ]; then
  site=$(mktemp -d)
  "$python" -m pip install --quiet --no-index --no-deps --no-compile --target "$site" "$wheels"/*.whl || exit 66
  export PYTHONPATH="$site${PYTHONPATH:+:$PYTHONPATH}"
fi

step() {  # step NAME SECONDS COMMAND...: runs a command under a limit and writes down how it ended
  local name=$1 limit=$2 began=$SECONDS code
  shift 2
  [ "$only" = " " ] || [[ $only == *" $name "* ]] || return 0
  [ ${#rehearse[@]} -eq 0 ] || limit=$((3 * limit))  # of a slow machine
  rm -f "$out/$name.json"
  timeout --kill-after=5 "$limit" "$@" >"$out/$name.log" 2>&1
  code=$?
  printf '{"step": "%s", "exit": %d, "seconds": %d, "limit": %d}\n' \
    "$name" "$code" $((SECONDS - began)) "$limit" | tee -a "$out/steps.jsonl"
  [ "$code" -eq 0 ] || failed=1
  "$python" -m benchmarks.gpu_day table --out "$out" >/dev/null || failed=1
  # anew after each step, as this script may be stopped, too; outside the folder, which would change while tar reads it
  tar -czf "$packed" -C "$out" --exclude=gpu_day.tar.gz . && cp "$packed" "$out/gpu_day.tar.gz" || failed=1
}

measure() {  # measure NAME SECONDS: of benchmarks/gpu_day
  step "$1" "$2" "$python" -m benchmarks.gpu_day "$1" --out "$out" ${rehearse[@]+"${rehearse[@]}"}
}

# tests NAME SECONDS PROCESSES SELECTED REHEARSED FILE...: those marked gpu, or in a rehearsal some of the CPU's
tests() {
  local name=$1 limit=$2 selected=(-n "$3" -m gpu -k "$4")
  [ ${#rehearse[@]} -eq 0 ] || selected=(-m "not gpu" -k "cpu and ($5)")
  step "$name" "$limit" "$python" -m pytest -q -rs -W default -p benchmarks.gpu_day.outcomes --outcomes "$out/$name.json" \
    "${selected[@]}" "${@:6}"
}

measure card 25
tests equal 60 4 "" "embeddings or relevance_logits and t5" \
  tests/gpu/test_inference.py tests/harness/llm/test_local.py tests/models/test_fused_kernels.py
tests bf16 90 8 "" "drrag-lora or extractive" tests/gpu/test_exports.py tests/trainers/test_bf16.py
tests ranks 120 4 "ranks or divided" "divided and bf16" tests/gpu/test_training.py
measure training-triples 40
measure training-contexts 55
measure training-rewrites 40
measure scoring 50
tests memory 120 2 "" "drrag" tests/gpu/test_largest_batch.py
cat "$out/table.md"
exit "$failed"
