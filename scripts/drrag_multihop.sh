#!/usr/bin/env bash
# DR-RAG on HotpotQA, 2WikiMultiHopQA and MuSiQue, whose official files are under data/: indexes over each data set's own
# paragraphs, hard negatives, one classifier for all three, and a report on each dev file.
# When it is run again, indexes and a trained classifier are kept, mining is repeated, and an evaluation resumes.
# Options are passed on to the training:  bash scripts/drrag_multihop.sh --trainer.accumulate_grad_batches 2
set -euo pipefail
python=${PYTHON:-python}
hotpotqa=data/hotpotqa/hotpot_distractor
twowiki=data/2wikimultihopqa/2wiki
musique=data/musique/musique_ans

# name, layout, training file, dev file
sets="hotpotqa hotpotqa ${hotpotqa}_train.json.gz ${hotpotqa}_dev.json.gz
2wiki twowiki ${twowiki}_train.json.gz ${twowiki}_dev.json.gz
musique musique ${musique}_train.jsonl.gz ${musique}_dev.jsonl.gz"

while read -r -u 3 name layout train dev; do
  for kind in dense bm25; do
    index=indexes/$name-$kind
    retriever=$([ $kind = dense ] && echo harness.retrievers.dense.DenseRetriever || echo harness.retrievers.bm25.Bm25Retriever)
    "$python" infer.py index --corpus "[$train, $dev]" --layout "$layout" --kind $kind --out "$index"
    "$python" infer.py mine --retriever "$retriever" --retriever.index "$index" --questions "[$train]" \
      --layout "$layout" --anchors 2 --out "data/mined/$name-$kind.jsonl"
  done
done 3<<< "$sets"

if [ ! -d checkpoints/drrag-hotpotqa/serving ]; then
  "$python" train.py fit --config configs/train/drrag_hotpotqa.yaml "$@"
fi

while read -r -u 3 name layout train dev; do
  "$python" infer.py evaluate --config configs/infer/drrag_hotpotqa.yaml --strategy.retriever.index "indexes/$name-dense" \
    --questions "$dev" --layout "$layout" --study.bm25 "indexes/$name-bm25" --paper "$name" --out "reports/$name" \
    --study.scores reports/scores
done 3<<< "$sets"
