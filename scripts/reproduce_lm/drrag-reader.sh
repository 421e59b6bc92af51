#!/usr/bin/env bash
# Answers of the language model from DR-RAG's selections: SM, QDC, CFS and ranked at k = 4, SM and CFS at k = 3 and 6.
set -euo pipefail
dev=data/lm/hotpotqa-reader.jsonl pool=$DATA/hotpotqa/hotpot_distractor_dev.json.gz

"$PYTHON" -m scripts.reproduce_lm.sample "$pool" --parts $dev=100
"$PYTHON" -m scripts.reproduce_lm.sample "$DATA/hotpotqa/hotpot_distractor_train.json.gz" --parts data/lm/hotpotqa-examples.jsonl=8
"$PYTHON" infer.py index --corpus "$pool" --layout hotpotqa --kind dense --out indexes/lm-hotpotqa-dev/dense

answers() { # budgets, rows, the system's own k, report
  [ -d "reports/$4" ] || "$PYTHON" infer.py evaluate --config configs/lm/drrag_reader.yaml --system.init_args.selection.k "$3" \
    --system.init_args.reader.init_args.llm.init_args.model "$LM" --questions $dev --layout hotpotqa \
    --study.ks "$1" --study.rows "$2" --memo reports/lm-drrag-scores --paper hotpotqa --out "reports/$4"
}

answers '[4]' '[QDC,CFS,ranked]' 4 lm-drrag-reader
answers '[3,6]' '[CFS]' 3 lm-drrag-reader-budgets
