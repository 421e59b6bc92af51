#!/usr/bin/env bash
# log P(answer | question, context) of the language model, the teacher of the estimator without labels: of NQ's training
# questions with BM25's first ten of 20 passages, and of the dev questions with all 20. It is kept in cache/questions,
# where training finds it; val/teacher_recall_1 and val/teacher_mrr of reports/lm-qg-NAME.txt say how it ranks the gold
# passage.
set -euo pipefail
nq=$DATA/nq/nq-open-20_total_documents
"$PYTHON" -m scripts.reproduce_lm.contexts "${nq}_train.jsonl.gz" --best 10 --out data/lm/nq-train.jsonl
"$PYTHON" -m scripts.reproduce_lm.contexts "${nq}_dev.jsonl.gz" --out data/lm/nq-dev.jsonl

mkdir -p reports
for name in train dev; do
  "$PYTHON" train.py validate --config configs/lm/estimator.yaml --name "lm-qg-$name" --model.generator "$LM" \
    --data.validation "[{layout: fid, path: data/lm/nq-$name.jsonl}]" \
    --data.train "[{layout: fid, path: $DATA/nq/nq_retrieved_train.json.gz, limit: 100}]" > "reports/lm-qg-$name.partial"
  mv "reports/lm-qg-$name.partial" "reports/lm-qg-$name.txt"
done
