#!/usr/bin/env bash
# What training and evaluation cost at the papers' own sizes: generated files -> mining -> two ranks -> kill -> resume -> export -> evaluation.
#   bash scripts/full_scale.sh --share 0.01 --out full_scale          1% of HotpotQA and of NQ with 100 contexts, minutes
#   bash scripts/full_scale.sh --share 0.01 0.1 1 --out full_scale    a table of growth; the whole takes hours and 20 GB
set -euo pipefail
exec env PYTHONPATH="$(cd "$(dirname "$0")/.." && pwd)" "${PYTHON:-python}" -m benchmarks.full_scale "$@"
