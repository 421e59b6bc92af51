"""`infer.py index`: build an index folder from a corpus, from a folder of documents, or from both together."""

import os
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from common.checks import Precision, check_at_least
from common.errors import UserError
from common.records import Passage
from harness.documents.folder.options import MEBIBYTES, OVERLAP_WORDS, SECONDS, Cutting, Engine, Limits, Reading
from harness.documents.segments.augmentation import MOST_WORDS, Cascade
from harness.indexing.index_folder import INDEX
from harness.interfaces import LanguageModel
from models.pretrained import MINILM

if TYPE_CHECKING:
    from harness.documents.folder.corpus import Pass
    from harness.indexing.qdrant_collection import Place


def index(
    out: Path,
    corpus: list[str] | str | None = None,
    kind: Literal["dense", "bm25", "keywords", "links"] = "dense",
    layout: str | None = None,
    documents: Path | None = None,
    engine: Engine = "auto",
    outline: bool = True,
    llm: LanguageModel | None = None,
    captioner: str | None = None,
    most_words: int = MOST_WORDS,
    least_words: int = 0,
    cascade: Cascade = "path",
    chunk_words: int | None = None,
    chunk_overlap: int = OVERLAP_WORDS,
    kept_in: Path | None = None,
    workers: int | None = None,
    document_seconds: float = SECONDS,
    document_mebibytes: int = MEBIBYTES,
    strict: bool = False,
    encoder: str = MINILM,
    device: str = "auto",
    max_tokens: int | None = None,
    query_prefix: str | None = None,
    passage_prefix: str | None = None,
    precision: Precision = "auto",
    batch_tokens: int | None = None,
    chunk_passages: int = 4096,
    faiss_index: Literal["flat", "ivf", "ivfpq", "hnsw"] = "flat",
    nlist: int | None = None,
    pq_bytes: int | None = None,
    hnsw_links: int = 32,
    k1: float = 1.5,
    b: float = 0.75,
    stop_words: Literal["english", "none"] = "english",
    cjk: Literal["runs", "bigrams"] = "runs",
    most_share: float = 0.2,
    keywords: Path | None = None,
    to: Literal["folder", "qdrant"] = "folder",
    url: str | None = None,
    path: Path | None = None,
    collection: str | None = None,
    key_variable: str | None = None,
    overwrite: bool = False,
) -> None:
    """Build an index folder from a corpus, a folder of documents, or both together, unless it is up to date.

    An interrupted dense build resumes; under torchrun all processes share the work:
    `torchrun --nproc-per-node 8 infer.py index --corpus FILE --out indexes/NAME`.

    Of documents only those are read that have changed, and what is left out is in a report.

    Args:
        out: The index folder to write.
        corpus: File of passages, or of questions that ship with passages, plain or gzipped; several as '[FILE, FILE]'.
        kind: `dense` (vectors), `bm25` (words), `keywords` (names, part numbers and acronyms) or `links` (titles, and
            which passages mention them).
        layout: Corpus: layout of the files, e.g. hotpotqa, musique; jsonl when omitted.
        documents: Folder of PDF, HTML, DOCX and Markdown files, with the folders in it; with `corpus` in one index,
            after its passages.
        engine: Documents: what reads them: auto or docling.
        outline: Documents: whether headings are looked up in the outline (bookmarks) of a PDF file that has one.
        llm: Documents: language model that converts what the engine has read: a class, or a file such as
            configs/llm/openai.yaml.
        captioner: Documents: model that describes images, a folder or a hub id in the hub cache, e.g.
            Salesforce/blip-image-captioning-base.
        most_words: Documents: a longer segment is split.
        least_words: Documents: shorter sections under one heading become one segment; 0: none do.
        cascade: Documents: what is indexed before a segment: path (title and headings; of a chunk the title), heading
            (the last one) or none.
        chunk_words: Documents: cut them into chunks of so many words, without regard to headings; null: into segments.
        chunk_overlap: Documents: words that neighbouring chunks share.
        kept_in: Documents: folder that keeps what is read, so that only changed documents are read again; null:
            FOLDER.documents beside `out`.
        workers: Documents and BM25: processes that read documents, or split passages into words; null: one for each
            processor, at most 8.
        document_seconds: Documents: CPU time that reading one may take.
        document_mebibytes: Documents: memory that reading one may take.
        strict: Documents: whether one that cannot be read ends the command.
        encoder: Dense: the sentence encoder, a folder or a hub id in the hub cache.
        device: Dense: of the encoder, and of the captioner: auto, cpu, cuda or cuda:N.
        max_tokens: Dense: maximum passage length in tokens, longer ones are truncated; null: the encoder's.
        query_prefix: Dense: prepended to every query; null: the encoder's own prompt, usually none.
        passage_prefix: Dense: prepended to every passage; null: the encoder's own prompt, usually none.
        precision: Dense: of the encoder: auto (bf16 where the device has it in hardware), fp32 or bf16.
        batch_tokens: Dense: tokens per forward pass; null: chosen by device.
        chunk_passages: Dense: passages per saved chunk.
        faiss_index: Dense: flat (exact), ivf (clusters), ivfpq (clusters of compressed vectors) or hnsw (graph).
        nlist: Dense: number of clusters of ivf and ivfpq; null: 4 times the square root of the number of passages.
        pq_bytes: Dense: bytes of a compressed vector of ivfpq, a divisor of its dimensions; null: the greatest that is
            at most 64.
        hnsw_links: Dense: links per vector of hnsw.
        k1: BM25: saturation of term frequency.
        b: BM25: strength of length normalization, 0 to 1.
        stop_words: BM25: english or none.
        cjk: BM25: words of Chinese, Japanese and Korean: runs between blanks and punctuation, or bigrams (pairs of
            characters).
        most_share: Keywords: a name in a greater share of the passages is no keyword, 0 to 1.
        keywords: Keywords: file of further ones, one a line.
        to: folder, or qdrant: upload the dense index to a collection of the Qdrant vector database, too.
        url: Qdrant: address of the server, such as http://localhost:6333.
        path: Qdrant: in the place of url, a folder of the client's local mode, for tests and small corpora.
        collection: Qdrant: name of the collection; null: that of `out`.
        key_variable: Qdrant: environment variable that holds the server's API key, if it needs one.
        overwrite: Whether another index at `out` or in the collection, or another unfinished build, may be replaced.
    """
    reading = Reading(engine, outline)
    cutting = Cutting(most_words, least_words, cascade, chunk_words, chunk_overlap)
    limits = Limits(document_seconds, document_mebibytes, workers)
    corpora = [corpus] if isinstance(corpus, str) else corpus or []
    source, of = None, None
    passages: Iterable[Passage] = ()
    if layout and not corpora:
        raise UserError("--layout is the layout of a corpus, and no corpus was given. Type --corpus FILE, or omit it.")
    if corpora:
        from datamodules.formats.reading import read_passages

        passages = read_passages(layout or "jsonl", corpora, repeated=True)
    if documents is not None:
        from harness.documents.folder.corpus import DocumentFolder

        kept_in = kept_in or out.parent / f"{documents.resolve().name}.documents"
        for name, folder in (("--out", out), ("--kept_in", kept_in)):
            if documents.resolve() in (folder.resolve(), *folder.resolve().parents):
                raise UserError(
                    f"{name} {folder} lies in the folder of documents {documents}, where it would be read as "
                    "documents. Choose another place."
                )
        source = DocumentFolder(documents, kept_in, reading, cutting, limits, strict, _passes(llm, captioner, device))
        of = source.documents
        if corpora:  # another corpus is another index, which does not replace this one unasked
            of = replace(of, recipe={**of.recipe, "with": {"layout": layout or "jsonl", "files": corpora}})
        passages = chain(passages, source.passages())
    elif not corpora:
        raise UserError(
            "No corpus was given. Type --corpus FILE, several files as '[FILE, FILE]', or --documents FOLDER."
        )
    elif (
        reading,
        cutting,
        replace(limits, workers=None) if kind == "bm25" else limits,
        kept_in,
        strict,
        llm,
        captioner,
    ) != (
        Reading(),
        Cutting(),
        Limits(),
        None,
        False,
        None,
        None,
    ):
        raise UserError(
            "An option of --documents was given with --corpus alone: infer.py index --help names these options."
        )
    check_at_least(1, chunk_passages=chunk_passages, nlist=nlist, max_tokens=max_tokens, batch_tokens=batch_tokens)
    place = _qdrant_place(to, kind, url, path, collection or out.name, key_variable)
    if os.environ.get("WORLD_SIZE", "1") == "1":  # otherwise rank 0 checks it below, and tells the others
        INDEX.check_writable(out)
    first = os.environ.get("RANK", "0") == "0"
    if place is not None and first:  # before days of encoding
        from harness.indexing.qdrant_collection import check_place

        check_place(place)
    with source.locked() if source is not None and first else nullcontext():
        if kind == "bm25":
            if not first:  # one process builds it
                return
            from harness.retrievers.bm25 import build_bm25

            build_bm25(passages, out, k1, b, stop_words, overwrite, of, cjk, workers)
            return
        if kind == "keywords":
            if not first:
                return
            from harness.retrievers.keywords import build_keywords

            build_keywords(passages, out, most_share, keywords, overwrite=overwrite, documents=of)
            return
        if kind == "links":
            if not first:
                return
            from harness.retrievers.links import build_links

            build_links(passages, out, overwrite, of)
            return
        from harness.indexing.sentence_encoder import SentenceEncoder
        from harness.retrievers.dense import build_dense

        model = SentenceEncoder(encoder, device, max_tokens, query_prefix, passage_prefix, precision, batch_tokens)
        build_dense(passages, out, model, chunk_passages, faiss_index, nlist, hnsw_links, overwrite, of, pq_bytes)
        if place is not None and first:
            from harness.indexing.index_folder import open_index
            from harness.indexing.qdrant_collection import upload

            upload(open_index(out, "dense"), place, overwrite)


def _qdrant_place(
    to: str, kind: str, url: str | None, path: Path | None, collection: str, key_variable: str | None
) -> "Place | None":
    """Where the index is uploaded; None: nowhere.

    Raises:
        UserError: If an option contradicts another one.
    """
    if to == "folder":
        if (url, path, key_variable) != (None, None, None):
            raise UserError(
                "--url, --path and --key_variable are of a Qdrant collection. Type --to qdrant, or omit them."
            )
        return None
    if kind != "dense":
        raise UserError(f"--to qdrant takes a dense index, got --kind {kind}. Omit --kind, or --to.")
    from harness.indexing.qdrant_collection import Place

    place = Place(url, path, collection, key_variable)
    place.check()
    return place


def _passes(llm: LanguageModel | None, captioner: str | None, device: str) -> "list[Pass]":
    """What changes the documents that were read."""
    passes: list[Pass] = []
    if llm is not None:
        from harness.documents.folder.llm_pass import LlmPass

        passes.append(LlmPass(llm))
    if captioner is not None:
        from harness.documents.folder.captioning import ImageCaptioner

        passes.append(ImageCaptioner(captioner, device))
    return passes
