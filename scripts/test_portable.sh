#!/usr/bin/env bash
# The numeric tests under three instruction sets, each with 1, 2 and 4 threads; then the whole fast suite under AVX2.
# Used by `make test-portable`.  PYTHON names the interpreter, WORKERS the test processes.
set -uo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
workers=${WORKERS:-2}
selected="not slow and not gpu and not network"
avx2="ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2 MKL_ENABLE_INSTRUCTIONS=AVX2"
failed=0

run() {  # run LABEL SETTINGS EXPRESSION: one line per combination; the tests' own output only where they fail
  local label=$1 settings=$2 expression=$3 output
  # shellcheck disable=SC2086  # several settings are several words
  if output=$(env $settings "$python" -m pytest -q -n "$workers" -m "$expression" 2>&1); then
    printf '%-44s %s\n' "$label" "$(tail -n 1 <<<"$output")"
  else
    printf '%s\n%-44s FAILED\n' "$output" "$label"
    failed=1
  fi
}

for threads in 1 2 4; do
  run "numeric, native, $threads threads" "OMP_NUM_THREADS=$threads" "numeric and $selected"
  run "numeric, no vector instructions, $threads threads" "OMP_NUM_THREADS=$threads ATEN_CPU_CAPABILITY=default" \
    "numeric and $selected"
  run "numeric, AVX2, $threads threads" "OMP_NUM_THREADS=$threads $avx2" "numeric and $selected"
done
run "whole suite, AVX2, 1 thread" "OMP_NUM_THREADS=1 $avx2" "$selected"
exit "$failed"
