#!/usr/bin/env bash
# The models of the stage joint read NQ's dev questions with 20 passages: exact match with the retriever's order and weights
# (MiniLM's cosine), with the estimator's, by the generator trained with it and by the baseline's. reports/lm-reader.
set -euo pipefail
[ -d reports/lm-reader ] || "$PYTHON" infer.py evaluate --config configs/lm/reader.yaml --questions data/lm/nq-scored-dev.jsonl --layout fid \
  --study.baseline_serving checkpoints/lm-joint-baseline/serving --out reports/lm-reader
