#!/usr/bin/env bash
# A rewriter of questions in dialogues: QReCC's human rewrites, 1,500 turns; tested on 600 turns of CANARD, whose pages and
# questions QReCC's dialogues have not, beside the question alone, all turns with it, and an encoder that chooses words,
# trained on the same turns. reports/lm-dialogues.md has token F1 to CANARD's human rewrite, the rank of the turn's own answer
# among the answers of all dialogues and of its page, and the control: another question.
set -euo pipefail
qrecc=$DATA/rewriting/qrecc_human_rewrite.json.gz canard=$DATA/rewriting/canard_dev.json.gz

"$PYTHON" -m scripts.reproduce_lm.rewrite_files dialogues "$qrecc" "$canard" data/lm
for part in train validation; do
  "$PYTHON" -m scripts.reproduce_lm.dialogues labels data/lm/qrecc-$part.jsonl data/lm/qrecc-$part-words.jsonl
done
[ -d checkpoints/lm-words-dialogues/serving ] || "$PYTHON" train.py fit --config configs/lm/words_dialogues.yaml --resume auto
[ -d checkpoints/lm-rewriter-qrecc/serving ] || "$PYTHON" train.py fit --config configs/lm/rewriter_qrecc.yaml --model.pretrained "$LM" --resume auto
[ -f reports/lm-dialogues.md ] || "$PYTHON" -m scripts.reproduce_lm.dialogues report data/lm/canard-test.jsonl reports/lm-dialogues.md \
  "$canard" --models checkpoints/lm-rewriter-qrecc/serving checkpoints/lm-words-dialogues/serving
