"""`infer.py index`: build an index folder from a corpus."""

import os
from pathlib import Path
from typing import Literal

from common.checks import Precision, check_at_least
from common.errors import UserError
from harness.indexing.index_folder import INDEX
from models.pretrained import MINILM


def index(
    corpus: list[str] | str,
    out: Path,
    kind: Literal["dense", "bm25"] = "dense",
    layout: str = "jsonl",
    encoder: str = MINILM,
    device: str = "auto",
    max_tokens: int | None = None,
    query_prefix: str | None = None,
    passage_prefix: str | None = None,
    precision: Precision = "auto",
    batch_tokens: int | None = None,
    chunk_passages: int = 4096,
    faiss_index: Literal["flat", "ivf", "hnsw"] = "flat",
    nlist: int | None = None,
    hnsw_links: int = 32,
    k1: float = 1.5,
    b: float = 0.75,
    stop_words: Literal["english", "none"] = "english",
    overwrite: bool = False,
) -> None:
    """Build an index folder, unless it is up to date.

    An interrupted dense build resumes; under torchrun all processes share the work:
    `torchrun --nproc-per-node 8 infer.py index --corpus FILE --out indexes/NAME`.

    Args:
        corpus: File of passages, or of questions that ship with passages, plain or gzipped; several as '[FILE, FILE]'.
        out: The index folder to write.
        kind: `dense` (vectors) or `bm25` (words).
        layout: Layout of the files, e.g. jsonl, hotpotqa, musique.
        encoder: Dense: the sentence encoder, a folder or a hub id in the hub cache.
        device: Dense: of the encoder: auto, cpu, cuda or cuda:N.
        max_tokens: Dense: maximum passage length in tokens, longer ones are truncated; null: the encoder's.
        query_prefix: Dense: prepended to every query; null: the encoder's own prompt, usually none.
        passage_prefix: Dense: prepended to every passage; null: the encoder's own prompt, usually none.
        precision: Dense: of the encoder: auto (bf16 where the device has it in hardware), fp32 or bf16.
        batch_tokens: Dense: tokens per forward pass; null: chosen by device.
        chunk_passages: Dense: passages per saved chunk.
        faiss_index: Dense: flat (exact), ivf or hnsw.
        nlist: Dense: number of ivf clusters; null: 4 times the square root of the number of passages.
        hnsw_links: Dense: links per vector of hnsw.
        k1: BM25: saturation of term frequency.
        b: BM25: strength of length normalization, 0 to 1.
        stop_words: BM25: english or none.
        overwrite: Whether another index at `out`, or another unfinished build, may be replaced.
    """
    from datamodules.formats.reading import read_passages

    if not corpus:
        raise UserError("No corpus was given. Type --corpus FILE; several files as '[FILE, FILE]'.")
    passages = read_passages(layout, [corpus] if isinstance(corpus, str) else corpus, repeated=True)
    check_at_least(1, chunk_passages=chunk_passages, nlist=nlist, max_tokens=max_tokens, batch_tokens=batch_tokens)
    if os.environ.get("WORLD_SIZE", "1") == "1":  # otherwise rank 0 checks it below, and tells the others
        INDEX.check_writable(out)
    if kind == "bm25":
        if os.environ.get("RANK", "0") != "0":  # one process builds it
            return
        from harness.retrievers.bm25 import build_bm25

        build_bm25(passages, out, k1, b, stop_words, overwrite)
        return
    from harness.indexing.sentence_encoder import SentenceEncoder
    from harness.retrievers.dense import build_dense
    from harness.runtime.distributed import local_device

    model = SentenceEncoder(
        encoder, local_device(device), max_tokens, query_prefix, passage_prefix, precision, batch_tokens
    )
    build_dense(passages, out, model, chunk_passages, faiss_index, nlist, hnsw_links, overwrite)
