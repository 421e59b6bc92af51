#!/usr/bin/env bash
# RE-RAG's training presets compared on the generated world over several seeds, reader included.
#   bash scripts/rerag_presets.sh ["0 1 2" ["paper released ours ours_unlabelled"]]
# `paper` and `released` train without labels; `ours` trains with has-answer labels beside the generator's signal, as in
# configs/quickstart/rerag_train.yaml; `ours_unlabelled` measures what the labels contribute.
# First: the stages world and t5 of  bash scripts/quickstart.sh rerag.  Figures are measured on validation questions, whose
# phrasings training has not seen.  Then
#   python -m benchmarks.seeds --system paper reports/presets/rerag-paper-{0,1,2}-fid_validation \
#     --system ours reports/presets/rerag-ours-{0,1,2}-fid_validation --measures EM MRR
# prints them side by side. The runs chose their temperature on the first 50 of these questions.
# About seven minutes per run on two cores; finished runs and reports are kept.
set -euo pipefail
python=${PYTHON:-python}
seeds=${1:-0 1 2}
presets=${2:-paper released ours ours_unlabelled}
questions=data/world

fit() { # name, config, further options
  local name=$1 config=$2
  shift 2
  [ -d "checkpoints/$name/serving" ] && return
  local last=checkpoints/$name/last.ckpt
  if [ -f "$last" ]; then set -- "$@" --ckpt_path "$last"; else rm -rf "checkpoints/$name"; fi
  OMP_NUM_THREADS=1 "$python" train.py fit --config "$config" --trainer.accelerator cpu --trainer.devices 2 --name "$name" "$@"
}

measure() { # name, file, number of questions
  local out=reports/presets/$1-$2
  [ -d "$out" ] || "$python" infer.py evaluate --config configs/quickstart/rerag.yaml \
    --system.init_args.serving "checkpoints/$1/serving" --layout fid --questions "$questions/$2.json" --limit "$3" --out "$out"
}

for seed in $seeds; do
  for preset in $presets; do
    reader=reader-world-$seed
    options=(--seed_everything "$seed" --data.init_args.sampling_seed "$seed" --model.init_args.preset "${preset%_unlabelled}")
    # the released text format and answer prefix need a reader of their own
    [ "$preset" = released ] && reader=$reader-released
    fit "$reader" configs/quickstart/reader_train.yaml "${options[@]}"
    [ "$preset" = ours ] || options+=(--model.init_args.loss.label_weight 0)
    fit "rerag-$preset-$seed" configs/quickstart/rerag_train.yaml "${options[@]}" \
      --model.init_args.generator "checkpoints/$reader/serving/generator"
    measure "rerag-$preset-$seed" fid_validation 250
    measure "rerag-$preset-$seed" fid_validation_open 200
  done
done
