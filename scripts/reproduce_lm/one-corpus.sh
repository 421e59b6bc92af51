#!/usr/bin/env bash
# RE-RAG's estimator on passages of one style: questions of NQ, TriviaQA and PopQA with BM25's first twenty of their
# joint corpus, and of HotpotQA with those of its dev file. By labels (the recipe of configs/train/reranker_nq.yaml, with
# as many steps as on its own 2,561 questions) and without (that of configs/lm/estimator.yaml), each half ranked by the
# estimator that was taught on the other.
# reports/lm-one-corpus-NAME.md: R@1 beside BM25, the cosine, both fused, another question and chance.
set -euo pipefail
fit() { # name, recipe, training file, further options
  local name=$1 recipe=$2 file=$3
  shift 3
  [ -d "checkpoints/$name/serving" ] || "$PYTHON" train.py fit --config "$recipe" --name "$name" --resume auto \
    --data.train "[{layout: fid, path: $file}]" "$@"
}

mkdir -p reports
for name in open hotpotqa; do
  epochs=4
  [ $name = open ] || epochs=10
  files=(hotpotqa "$DATA/hotpotqa/hotpot_distractor_dev.json.gz")
  [ $name = hotpotqa ] || files=(fid "$DATA"/{nq/nq_retrieved_{train,dev},triviaqa/triviaqa_retrieved,popqa/popqa_retrieved}.json.gz)
  "$PYTHON" -m scripts.reproduce_lm.one_corpus "${files[@]}" --out "data/lm/$name" | tee "reports/lm-one-corpus-$name.txt"
  labels=() taught=()
  for half in 0 1; do
    ranked=data/lm/$name/half-$((1 - half)).jsonl
    fit "lm-labels-$name-$half" configs/train/reranker_nq.yaml "data/lm/$name/half-$half.jsonl" \
      --data.hard_negatives '[]' --trainer.logger false --trainer.max_epochs $epochs
    labels+=("checkpoints/lm-labels-$name-$half/serving=$ranked")
    fit "lm-taught-$name-$half" configs/lm/estimator.yaml "data/lm/$name/train-$half.jsonl" \
      --model.generator "$LM" --data.labels has_answer
    taught+=("checkpoints/lm-taught-$name-$half/serving=$ranked")
  done
  "$PYTHON" -m scripts.reproduce_lm.ranking --system labels "${labels[@]}" --system 'without labels' "${taught[@]}" \
    > "reports/lm-one-corpus-$name.partial"
  mv "reports/lm-one-corpus-$name.partial" "reports/lm-one-corpus-$name.md"
done
