#!/usr/bin/env bash
# One system on the generated world: data, training, evaluation, an answered question.  bash scripts/quickstart.sh [drrag|rerag|dmqr|msrag|hiqa|all]
# `all` is these five, one after the other, and then all of them and plain retrieval on the same questions.
# Every stage is a command that works for real data too.  At the end the seconds of each stage are printed, and what they would be
# on a machine on which MiniLM encodes 55 passages a second, the slowest that the quickstarts are meant for.
set -euo pipefail
python=${PYTHON:-python}
system=${1:-drrag}
questions=data/world
world=() # further options of the world
prefix= # of the names of stages
two_processes=(--trainer.accelerator cpu --trainer.devices 2)
began=$SECONDS
table=()
trap 'jobs -p | xargs -r kill' EXIT # stop background jobs when a stage fails

stage() {
  local name=$prefix$1 started=$SECONDS
  shift
  printf '\n== %s: %s\n' "$name" "$*"
  "$@"
  table+=("$(printf '%-22s%6d s' "$name" $((SECONDS - started)))")
}

summary() { # the yardstick is measured after the last stage and is no part of the sum
  local all=$((SECONDS - began))
  printf '\n== time\n'
  printf '%s\n' "${table[@]}" "$(printf '%-22s%6d s' all $all)"
  "$python" -m benchmarks.yardstick --corpus $questions/corpus.jsonl --seconds $all
}

finished() { # process, log: print the log, return the exit code
  local code=0
  wait "$1" || code=$?
  cat "$2"
  return $code
}

first_question() {
  "$python" -c "from datamodules.formats.reading import read_questions; print(next(read_questions('$1', '$questions/$2')).text)"
}

drrag() {
  stage index-bm25 "$python" infer.py index --corpus $questions/corpus.jsonl --kind bm25 --out indexes/world/bm25
  stage index-dense "$python" infer.py index --corpus $questions/corpus.jsonl --kind dense --out indexes/world/dense
  stage mine "$python" infer.py mine --retriever configs/parts/bm25.yaml --index_root indexes/world --layout hotpotqa \
    --questions "[$questions/train.json, $questions/validation.json]" --anchors 1 --out data/mined/world.jsonl
  rm -rf checkpoints/drrag-world # a quickstart starts over; it overwrites no other run
  stage train "$python" train.py fit --config configs/quickstart/drrag_train.yaml
  mkdir -p reports
  "$python" infer.py ask --config configs/quickstart/drrag.yaml --question "$(first_question hotpotqa test.json)" > reports/world.log 2>&1 &
  local asking=$!
  stage evaluate "$python" infer.py evaluate --config configs/quickstart/drrag.yaml \
    --questions $questions/test.json --limit 400 --study.rows '[QDC,walk,CFS,ranked]' --out reports/world
  stage ask finished $asking reports/world.log
  printf '\nreport in reports/world: report.html in a browser, report.md as text\n'
}

rerag() {
  local temperatures=checkpoints/rerag-temperatures.json
  rm -rf checkpoints/reader-world checkpoints/rerag-world
  stage index-bm25 "$python" infer.py index --corpus $questions/corpus.jsonl --kind bm25 --out indexes/world/bm25
  stage t5 "$python" -m trainers.t5_from_scratch --corpus "[$questions/corpus.jsonl, $questions/web_corpus.jsonl]" \
    --embeddings sentence-transformers/all-MiniLM-L6-v2 --copying true --out checkpoints/t5-world
  # two processes each, with one thread per process, or they compete for the cores; torchrun starts both at once
  local torchrun=(env OMP_NUM_THREADS=1 "$python" -m torch.distributed.run --standalone --nproc-per-node 2)
  stage train-reader "${torchrun[@]}" train.py fit --config configs/quickstart/reader_train.yaml "${two_processes[@]}"
  stage train-rerag "${torchrun[@]}" train.py fit --config configs/quickstart/rerag_train.yaml "${two_processes[@]}"
  mkdir -p reports
  OMP_NUM_THREADS=1 "$python" infer.py evaluate --config configs/quickstart/rerag.yaml --layout fid \
    --questions $questions/fid_test_open.json --out reports/rerag-world-open > reports/rerag-world-open.log 2>&1 &
  local unanswerable=$!
  stage tune env OMP_NUM_THREADS=1 "$python" infer.py tune --config configs/quickstart/rerag.yaml --layout fid \
    --questions $questions/fid_train.json --limit 100 --out $temperatures
  stage evaluate env OMP_NUM_THREADS=1 "$python" infer.py evaluate --config configs/quickstart/rerag.yaml --layout fid \
    --questions $questions/fid_test.json --limit 400 --out reports/rerag-world --study.temperatures $temperatures
  stage refuse finished $unanswerable reports/rerag-world-open.log
  stage ask "$python" infer.py ask --config configs/quickstart/rerag.yaml --question "$(first_question fid fid_test.json)" \
    --system.init_args.retriever configs/parts/bm25.yaml
  printf '\nreports in reports/rerag-world and reports/rerag-world-open: report.html in a browser, report.md as text\n'
}

dmqr() { # the index, the reranker, and the reader that becomes a rewriter are of RE-RAG's quickstart
  local prior=checkpoints/dmqr-prior.json
  rm -rf checkpoints/dmqr-extractive-world checkpoints/dmqr-world $prior
  stage label "$python" infer.py label --config configs/infer/label.yaml --index_root indexes/world --feedback_retrievers null \
    --questions $questions/rephrased_train.json --limit 700 --passages 3 --out data/labels/world.jsonl
  stage train-words env OMP_NUM_THREADS=1 "$python" train.py fit --config configs/quickstart/dmqr_extractive_train.yaml "${two_processes[@]}"
  mkdir -p reports
  OMP_NUM_THREADS=1 "$python" infer.py tune --config configs/quickstart/dmqr.yaml --layout hotpotqa \
    --questions $questions/rephrased_validation.json --limit 100 --out $prior > reports/dmqr-prior.log 2>&1 &
  local tuning=$! # needs the encoder alone
  stage train-t5 env OMP_NUM_THREADS=1 "$python" train.py fit --config configs/quickstart/dmqr_train.yaml "${two_processes[@]}" \
    --trainer.max_epochs 1 --trainer.check_val_every_n_epoch 1
  stage tune finished $tuning reports/dmqr-prior.log
  "$python" infer.py ask --config configs/quickstart/dmqr.yaml --system.init_args.prior $prior --question "$(first_question hotpotqa rephrased_test.json)" \
    > reports/dmqr-world.log 2>&1 &
  local asking=$!
  stage evaluate "$python" infer.py evaluate --config configs/quickstart/dmqr.yaml --system.init_args.prior $prior \
    --questions $questions/rephrased_test.json --limit 200 --ks '[5,10]' --study.deep 50 --out reports/dmqr-world \
    --study.rows '["OQR, judged by kwr", kwr, par, hop, T5, "T5, gqr", "T5, kwr", "T5, par", "T5, cce", "T5, decomposition"]' \
    --study.rewriters '{T5: configs/quickstart/dmqr_t5.yaml}'
  stage ask finished $asking reports/dmqr-world.log
  printf '\nreport in reports/dmqr-world: report.html in a browser, report.md as text\n'
}

msrag() { # the reader and the estimator are of RE-RAG's quickstart
  local selector=checkpoints/msrag-world/selector.json
  rm -rf checkpoints/msrag-world
  stage index-web "$python" infer.py index --corpus $questions/msrag_web.jsonl --kind bm25 --out indexes/world/msrag-web
  stage index-facts "$python" infer.py index --corpus $questions/msrag_knowledge.jsonl --kind bm25 --out indexes/world/msrag-knowledge
  stage tune "$python" infer.py tune --config configs/quickstart/msrag.yaml --layout flashrag \
    --questions $questions/msrag_validation.jsonl --out $selector
  stage evaluate "$python" infer.py evaluate --config configs/quickstart/msrag.yaml --layout flashrag \
    --questions $questions/msrag_test.jsonl \
    --system.init_args.selector harness.answer_selection.learned.LearnedSelector --system.init_args.selector.init_args.file $selector \
    --study.segmentation false --out reports/msrag-world
  stage ask "$python" infer.py ask --config configs/quickstart/msrag.yaml --question "$(first_question flashrag msrag_test.jsonl)" \
    --system.init_args.selector harness.answer_selection.learned.LearnedSelector --system.init_args.selector.init_args.file $selector
  printf '\nreport in reports/msrag-world: report.html in a browser, report.md as text\n'
}

hiqa() { # nothing is trained; what is read of the manuals serves all six indexes
  local documents=$questions/library/documents kept=indexes/library/documents.documents chunks=indexes/library-chunks kind
  local weights=checkpoints/library-weights.json
  local use="--system.init_args.retriever.init_args.weights $weights"
  for kind in bm25 keywords dense; do
    stage "index-$kind" "$python" infer.py index --documents $documents --kind $kind --out indexes/library/$kind --reading.document_cache $kept
  done
  for kind in bm25 keywords; do
    stage "chunks-$kind" "$python" infer.py index --documents $documents --kind $kind --out $chunks/$kind --reading.document_cache $kept --cutting.chunk_words 200
  done
  mkdir -p $chunks reports
  "$python" infer.py index --documents $documents --kind dense --out $chunks/dense --reading.document_cache $kept --cutting.chunk_words 200 > $chunks/dense.log 2>&1 &
  local dense=$! # tuning does not need it
  stage tune "$python" infer.py tune --config configs/quickstart/hiqa.yaml --layout flashrag \
    --questions $questions/library_validation.jsonl --out $weights
  stage chunks-dense finished $dense $chunks/dense.log
  "$python" infer.py ask --config configs/quickstart/hiqa.yaml $use --question "$(first_question flashrag library_test.jsonl)" \
    > reports/hiqa-world.log 2>&1 &
  local asking=$!
  stage evaluate "$python" infer.py evaluate --config configs/quickstart/hiqa.yaml --layout flashrag $use \
    --questions $questions/library_test.jsonl --study.rows "{chunks of 200 words with title: $chunks}" --out reports/hiqa-world
  stage ask finished $asking reports/hiqa-world.log
  printf '\nreport in reports/hiqa-world: report.html in a browser, report.md as text\n'
}

all() { # the indexes hold what all systems search: the corpus, the web corpus and the manuals
  local each kind
  local manuals=(--documents $questions/library/documents --reading.document_cache indexes/library/documents.documents)
  for each in drrag rerag dmqr msrag hiqa; do
    prefix="$each "
    "$each"
  done
  prefix="compared "
  for kind in bm25 keywords dense; do
    stage "index-$kind" "$python" infer.py index --corpus "[$questions/corpus.jsonl, $questions/web_corpus.jsonl]" "${manuals[@]}" \
      --kind $kind --out indexes/world-all/$kind
  done
  stage index-web "$python" infer.py index --corpus $questions/web_corpus.jsonl "${manuals[@]}" --kind bm25 --out indexes/world-all/web
  rm -rf checkpoints/{msrag,rerag,dmqr}-mixed-world
  stage tune-rerag "$python" infer.py tune --config configs/quickstart/rerag.yaml --index_root indexes/world-all \
    --system.init_args.retriever configs/parts/fused.yaml --system.init_args.candidates 20 --system.init_args.contexts 4 \
    --tuning.fits prior --layout flashrag --questions $questions/mixed_validation.jsonl --out checkpoints/rerag-mixed-world/prior.json
  stage tune-dmqr "$python" infer.py tune --config configs/quickstart/dmqr.yaml --index_root indexes/world-all --system.init_args.k 4 \
    --layout flashrag --questions $questions/mixed_validation.jsonl --out checkpoints/dmqr-mixed-world/prior.json
  stage tune-msrag "$python" infer.py tune --config configs/compare/all_msrag.yaml --layout flashrag \
    --questions $questions/mixed_validation.jsonl --out checkpoints/msrag-mixed-world/selector.json
  stage evaluate "$python" infer.py evaluate --config configs/compare/all.yaml --studies false --layout flashrag \
    --questions $questions/mixed_test.jsonl --out reports/all-world
  printf '\nall systems beside each other in reports/all-world: report.html in a browser, report.md as text\n'
}

case $system in
drrag | rerag | dmqr | msrag) ;;
hiqa) world=(--library true) ;;
all) world=(--library true --mixed 60) ;;
*)
  printf 'quickstart: unknown system %s; allowed: drrag, rerag, dmqr, msrag, hiqa, all.\n' "$system" >&2
  exit 2
  ;;
esac
stage world "$python" -m datamodules.world --out "$questions" ${world[@]+"${world[@]}"}
"$system"
summary
