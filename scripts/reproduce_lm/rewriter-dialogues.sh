#!/usr/bin/env bash
# A rewriter of questions in dialogues: QReCC's human rewrites, 1,500 turns; tested on 600 turns of CANARD beside the question
# alone and an encoder that chooses words, trained on the same turns. reports/lm-dialogues.md has token F1 to CANARD's human
# rewrite, and recall@10 of the turn's own answer among the answers of all dialogues.
set -euo pipefail
qrecc=$DATA/rewriting/qrecc_human_rewrite.json.gz canard=$DATA/rewriting/canard_dev.json.gz index=indexes/lm-canard

"$PYTHON" -m scripts.reproduce_lm.rewrite_files dialogues "$qrecc" "$canard" data/lm
for part in train validation; do
  "$PYTHON" -m scripts.reproduce_lm.dialogues labels data/lm/qrecc-$part.jsonl data/lm/qrecc-$part-words.jsonl
done
"$PYTHON" -m scripts.reproduce_lm.dialogues corpus "$canard" data/lm/canard-answers.jsonl
for kind in bm25 dense; do
  "$PYTHON" infer.py index --corpus data/lm/canard-answers.jsonl --kind $kind --out $index/$kind
done
[ -d checkpoints/lm-words-dialogues/serving ] || "$PYTHON" train.py fit --config configs/lm/words_dialogues.yaml --resume auto
[ -d checkpoints/lm-rewriter-qrecc/serving ] || "$PYTHON" train.py fit --config configs/lm/rewriter_qrecc.yaml --model.pretrained "$LM" --resume auto
[ -f reports/lm-dialogues.md ] || "$PYTHON" -m scripts.reproduce_lm.dialogues report data/lm/canard-test.jsonl reports/lm-dialogues.md \
  checkpoints/lm-rewriter-qrecc/serving checkpoints/lm-words-dialogues/serving "$canard" $index/bm25 $index/dense
