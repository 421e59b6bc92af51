# Lightning RAG.  `make help` lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV ?= .venv
TORCH_INDEX ?=  # optional: address of PyTorch's CPU package index, so that a machine without a GPU does not download CUDA
PIP_TORCH = $(if $(strip $(TORCH_INDEX)),--index-url $(strip $(TORCH_INDEX)),)
BIN := $(VENV)/bin
WORKERS ?= 2  # test processes; each keeps to its files until the other runs dry, so that their models are made once
export OMP_WAIT_POLICY := passive
export TOKENIZERS_PARALLELISM := false
export PYTHONDONTWRITEBYTECODE :=  # tests start many processes, which read compiled modules in half of the time

.PHONY: help install quickstart quickstart-rerag quickstart-dmqr quickstart-msrag quickstart-hiqa quickstart-all reproduce-lm test test-runs test-slow test-gpu test-all test-portable check format site size clean

help:  ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 18

install: $(BIN)/.installed  ## Install everything into .venv (CPU; for GPUs see README.md)

$(BIN)/.installed: requirements-core.txt requirements.txt requirements-serve.txt requirements-documents.txt requirements-dev.txt
	@$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet $(PIP_TORCH) "$$(grep -E '^torch==' requirements-core.txt)"
	$(BIN)/python -m pip install --quiet -r requirements-dev.txt
	touch $@

quickstart: install  ## DR-RAG on a generated world: data, indexes, training, evaluation, a question (4 to 5 minutes on 2 cores with bf16)
	@PYTHON=$(BIN)/python bash scripts/quickstart.sh drrag

quickstart-rerag: install  ## RE-RAG on a generated world: a new T5 learns to read, then joint training (5 to 8 minutes on 2 cores)
	@PYTHON=$(BIN)/python bash scripts/quickstart.sh rerag

quickstart-dmqr: install  ## DMQR-RAG after quickstart-rerag: two trained rewriters, several queries per question (about 5 minutes on 2 cores)
	@for needed in checkpoints/{reader,rerag}-world/serving indexes/world/bm25; do
	  [ -d $$needed ] || { echo "quickstart-dmqr: $$needed is missing: run make quickstart-rerag first." >&2; exit 66; }
	done
	PYTHON=$(BIN)/python bash scripts/quickstart.sh dmqr

quickstart-msrag: install  ## MSRAG after quickstart-rerag: answers from two corpora and from none, a learned choice (about 3 minutes on 2 cores)
	@[ -d checkpoints/rerag-world/serving ] || { echo "quickstart-msrag: checkpoints/rerag-world/serving is missing: run make quickstart-rerag first." >&2; exit 66; }
	PYTHON=$(BIN)/python bash scripts/quickstart.sh msrag

quickstart-hiqa: install  ## HiQA on a generated library of 48 look-alike PDF manuals: segments with their headings, three routes (2 to 3 minutes on 2 cores)
	@PYTHON=$(BIN)/python bash scripts/quickstart.sh hiqa

quickstart-all: install  ## All five quickstarts, then the five systems and plain retrieval on the same questions of five kinds (about half an hour on 2 cores)
	@PYTHON=$(BIN)/python bash scripts/quickstart.sh all

reproduce-lm: install  ## Real data with a real language model: LM=FOLDER_OR_HUB_ID, DATA=FOLDER, STAGE=NAME for one stage (half an hour to two hours each on one core)
	@PYTHON=$(BIN)/python bash scripts/reproduce_lm.sh

test: install  ## The fast tests, or those that MARKED selects: no network, no GPU, about 5 minutes on 2 cores
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal $(if $(MARKED),-m "$(MARKED)")

test-runs: install  ## Whole runs: training on two processes, resuming, interrupting, exporting; about 3 minutes on 2 cores
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal -m "whole_run"

test-slow: install  ## What takes more than half a minute each
	@$(BIN)/python -m pytest -q -rs -n $(WORKERS) --dist worksteal -m "slow and not gpu and not network"

test-gpu: install  ## What needs a GPU: equal results on CPU and GPU, bf16 training, NCCL; without one it names what it skips
	@$(BIN)/python -m pytest -q -rs -m gpu

test-all: install  ## All tests that this machine can run: slow ones too, and those for GPUs where nvidia-smi is found
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal -m "not network$(if $(shell command -v nvidia-smi),, and not gpu)"

test-portable: install  ## The numeric tests under several instruction sets and thread counts, then all fast ones under AVX2
	@PYTHON=$(BIN)/python WORKERS=$(WORKERS) bash scripts/test_portable.sh

check: install  ## Lint, format and type checks
	@$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: install  ## Format the code and fix what can be fixed automatically
	@$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

site: install  ## The pages as a web site in build/site, with every link checked
	@$(BIN)/mkdocs build --strict

size:  ## How large the project is, by folder: lines of code without docstrings and comments, all Python, other text
	@$(PYTHON) scripts/code_size.py

clean:  ## Remove what the quickstarts, the world's configurations and tests wrote; the environment stays
	@rm -rf data/world{,.partial} data/mined/world.jsonl{,.partial} data/labels/world.jsonl{,.partial} indexes/world{,-all}{,.partial} indexes/library{,-chunks}{,.partial}
	rm -rf checkpoints/{drrag,reader,rerag,rerag-mixed,rerag-free,t5,packed,msrag,msrag-mixed,dmqr-mixed}-world{,.partial} checkpoints/{library-weights,rerag-temperatures,dmqr-prior}.json{,.partial} checkpoints/msrag{,-mixed}-world/selector.json.partial checkpoints/{rerag,dmqr}-mixed-world/prior.json.partial checkpoints/dmqr{,-extractive}-world
	rm -rf reports/{world,all-world,hiqa-world,dmqr-world,msrag-world,msrag-world-segmentation,rerag-world,rerag-world-open}{,.partial} reports/{world,rerag-world-open,dmqr-prior,dmqr-world,hiqa-world}.log
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
