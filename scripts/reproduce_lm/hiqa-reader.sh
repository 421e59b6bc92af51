#!/usr/bin/env bash
# Short answers of the language model to the questions about the real documents, from HiQA's segments and from chunks.
set -euo pipefail
questions=data/lm/documents-questions.jsonl

"$PYTHON" -m scripts.reproduce_lm.sample "$DATA/nq/nq-open-oracle_train.jsonl.gz" --parts data/lm/nq-examples.jsonl=8
cat tests/documents/benchmark/questions/validation.jsonl tests/documents/benchmark/questions/test.jsonl > $questions
[ -d reports/lm-hiqa-reader ] || "$PYTHON" infer.py evaluate --config configs/lm/hiqa_readers.yaml \
  --system.init_args.reader.init_args.llm.init_args.model "$LM" --studies false --questions $questions --layout flashrag \
  --out reports/lm-hiqa-reader
