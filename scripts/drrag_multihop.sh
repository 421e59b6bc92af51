#!/usr/bin/env bash
# DR-RAG on HotpotQA, 2WikiMultiHopQA and MuSiQue, whose official files are under data/: indexes over each data set's own
# paragraphs, one classifier for all three, and two reports on each dev file: MiniLM alone, and with title links. The classifier is
# trained on the files' paragraphs first, and then also on what retrieval finds for HotpotQA's questions.
# When it is run again, indexes and trained classifiers are kept, and an evaluation resumes.
# Options are passed on to both trainings:  bash scripts/drrag_multihop.sh --trainer.accumulate_grad_batches 2
set -euo pipefail
python=${PYTHON:-python}

# name, layout, training file, dev file
sets="hotpotqa hotpotqa data/hotpotqa/hotpot_distractor_train.json.gz data/hotpotqa/hotpot_distractor_dev.json.gz
2wiki twowiki data/2wikimultihopqa/2wiki_train.json.gz data/2wikimultihopqa/2wiki_dev.json.gz
musique musique data/musique/musique_ans_train.jsonl.gz data/musique/musique_ans_dev.jsonl.gz"

while read -r -u 3 name layout train dev; do
  for kind in dense bm25 links; do
    "$python" infer.py index --corpus "[$train, $dev]" --layout "$layout" --kind $kind --out "indexes/$name/$kind"
  done
done 3<<< "$sets"

if [ ! -d checkpoints/drrag-hotpotqa/serving ]; then
  "$python" train.py fit --config configs/train/drrag_hotpotqa.yaml "$@"
fi
if [ ! -d checkpoints/drrag-hotpotqa-mined/serving ]; then
  train=data/hotpotqa/hotpot_distractor_train.json.gz
  for kind in dense bm25; do
    "$python" infer.py mine --retriever configs/parts/$kind.yaml --index_root indexes/hotpotqa --questions "[$train]" \
      --layout hotpotqa --anchors 2 --out "data/mined/hotpotqa-$kind.jsonl"
  done
  "$python" infer.py mine --retriever configs/parts/fused_links.yaml --index_root indexes/hotpotqa \
    --questions "[$train]" --layout hotpotqa --depth 10 --out data/mined/hotpotqa-links.jsonl
  "$python" train.py fit --config configs/train/drrag_hotpotqa.yaml --config configs/train/overlays/drrag_mined.yaml "$@"
fi

while read -r -u 3 name layout train dev; do
  "$python" infer.py evaluate --config configs/infer/drrag.yaml --index_root "indexes/$name" \
    --questions "$dev" --layout "$layout" --study.bm25 "indexes/$name/bm25" --paper "$name" --out "reports/$name" \
    --memo reports/scores
  "$python" infer.py evaluate --config configs/infer/drrag_links.yaml --index_root "indexes/$name" \
    --questions "$dev" --layout "$layout" --study.rows '[QDC, walk, CFS, ranked]' --paper "$name" --out "reports/$name-links" \
    --memo reports/scores
done 3<<< "$sets"
