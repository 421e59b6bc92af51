#!/usr/bin/env bash
# The models of the stage joint read NQ's dev questions with 20 passages: exact match with the retriever's order and weights
# (MiniLM's cosine), with the estimator's, by the generator trained with it and by the baseline's. reports/lm-reader.
set -euo pipefail
[ -d reports/lm-reader ] || "$PYTHON" infer.py evaluate --config configs/infer/rerag.yaml --questions data/lm/nq-scored-dev.jsonl --layout fid \
  --system.init_args.retriever null --system.init_args.serving checkpoints/lm-joint/serving \
  --system.init_args.candidates 20 --system.init_args.contexts 8 \
  --study.baseline_serving checkpoints/lm-joint-baseline/serving --out reports/lm-reader
