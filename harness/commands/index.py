"""`infer.py index`: build an index folder from a corpus, from a folder of documents, or from both together."""

import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from common.errors import UserError
from common.progress import say
from common.ranges import PositiveInt
from common.records import Passage
from datamodules.formats.open_data import HUB, content_files, file_of, versions_of
from datamodules.formats.row_counts import RowCounts
from documents.folder.options import Cutting, DocumentPass, ReadingLimits
from harness.commands.file_lists import listed
from harness.commands.index_options import Bm25Options, DenseOptions, KeywordOptions, ReadingOptions
from harness.indexing.index_folder import INDEX, Build, CorpusSource, open_index
from harness.indexing.qdrant_place import CollectionPlace
from harness.runtime.distributed import launched
from harness.runtime.loading import load
from harness.runtime.shared_lines import check_unless_shared

if TYPE_CHECKING:
    from documents.folder.corpus import DocumentFolder

Kind = Literal["dense", "bm25", "keywords", "links"]


def index(
    out: Path,
    corpus: list[str] | str | None = None,
    kind: Kind | list[Kind] = "dense",
    layout: str | None = None,
    documents: Path | None = None,
    reading: ReadingOptions = ReadingOptions(),  # noqa: B008 (frozen, as all of these)
    cutting: Cutting = Cutting(),  # noqa: B008
    dense: DenseOptions = DenseOptions(),  # noqa: B008
    bm25: Bm25Options = Bm25Options(),  # noqa: B008
    keywords: KeywordOptions = KeywordOptions(),  # noqa: B008
    qdrant: CollectionPlace = CollectionPlace(),  # noqa: B008
    device: str = "auto",
    workers: PositiveInt | None = None,
    overwrite: bool = False,
    strict: bool = False,
) -> None:
    """Build an index folder from a corpus, a folder of documents, or both together, unless it is up to date.

    The same command again, after a file or folder has changed, brings the index up to date; vectors of texts that have
    not changed are taken from it.  An interrupted dense build resumes; under torchrun all processes share the work:
    `torchrun --nproc-per-node 8 infer.py index --corpus FILE --out indexes/NAME`.

    Of documents only those are read that have changed, and what is left out is in a report.

    Args:
        out: The index folder to write; of several kinds the folder of theirs, such as OUT/bm25 and OUT/dense.
        corpus: File of passages, or of questions that ship with passages, packed or not; several as '[FILE, FILE]'.
        kind: `dense` (vectors), `bm25` (words), `keywords` (names, part numbers and acronyms) or `links` (titles, and
            which passages mention them); several as '[bm25, dense]'.
        layout: Layout of the corpus files; when omitted, of each by the fields of its first row (docs/data.md).
        documents: Folder of PDF, HTML, DOCX and Markdown files, with the folders in it; with `corpus` in one index,
            after its passages.
        reading: How documents are read.
        cutting: How documents are cut into passages.
        dense: Of a dense index.
        bm25: Of a BM25 index.
        keywords: Of an index of keywords.
        qdrant: A collection of the Qdrant vector database to which a dense index is uploaded, too.
        device: Of the encoder, and of the captioner: auto, cpu, cuda or cuda:N.
        workers: Processes that read documents, or split passages into words for BM25; null: one for each processor, at
            most 8.
        overwrite: Whether another index at `out` or in the collection, or another unfinished build, may be replaced.
        strict: Whether an unusual row of a corpus (an empty or repeated passage, one that the encoder cuts, a null
            field) is an error; else they are counted.
    """
    kinds: dict[Kind, Path] = {kind: out} if isinstance(kind, str) else {each: out / each for each in kind}
    if not kinds:
        raise UserError("--kind names no kind of index, got '[]'. Type one, or several as '[bm25, dense]'.")
    if layout and not corpus:
        raise UserError("--layout is the layout of a corpus, and no corpus was given. Type --corpus FILE, or omit it.")
    layout = layout or "auto"
    if documents is None:
        if not corpus:
            raise UserError(
                "No corpus was given. Type --corpus FILE, several files as '[FILE, FILE]', or --documents FOLDER."
            )
        if (reading, cutting) != (ReadingOptions(), Cutting()) or (workers is not None and "bm25" not in kinds):
            raise UserError(
                "An option of --documents was given with --corpus alone: infer.py index --help names these options."
            )
    place = _place(qdrant, kinds, out)
    if corpus:
        from datamodules.formats.recognition import check_layout

        check_layout(layout)
    if "dense" in kinds:
        from harness.indexing.faiss_library import check_installed

        check_installed(dense.faiss_index)
    source = None if documents is None else _folder(documents, out, reading, cutting, workers, device)
    first = launched().rank == 0
    for folder in kinds.values():
        check_unless_shared(INDEX, folder)
    if place is not None and first:  # before days of encoding
        from harness.indexing.qdrant_collection import check_place

        check_place(place)
    load(reading.llm)
    rows = {one: RowCounts(strict) for one in kinds}
    passages = {one: _passages(corpus, layout, source, counts) for one, counts in rows.items()}
    encoder = None
    if "dense" in kinds:  # what its options refuse is refused before anything is read
        from harness.indexing.sentence_encoder import SentenceEncoder

        prefixes = dense.query_prefix, dense.passage_prefix
        encoder = SentenceEncoder(
            dense.encoder, device, dense.max_tokens, *prefixes, dense.precision, dense.batch_tokens
        )
    options: dict[Kind, tuple[Any, ...]] = {
        "dense": (encoder, dense.chunk_passages, dense.faiss_index),
        "bm25": (bm25.k1, bm25.b, bm25.stop_words, workers),
        "keywords": (keywords.max_share, keywords.file),
        "links": (),
    }
    said: set[str] = set()
    with source.locked() if source is not None and first else nullcontext():
        for one, folder in sorted(kinds.items(), key=lambda item: item[0] != "dense"):  # all processes share it
            if one != "dense" and not first:  # one process builds it
                continue
            counts = rows[one]
            build = Build(overwrite, _source(corpus, layout, source), counts)
            write = getattr(import_module(f"harness.retrievers.{one}"), f"build_{one}")
            write(passages[one], folder, *options[one], build)
            if one == "dense" and place is not None and first:
                from harness.indexing.qdrant_collection import upload

                upload(open_index(folder, "dense"), place, overwrite)
            for line in counts.lines():
                if line not in said:
                    said.add(line)
                    say(f"{line}.")


def _passages(
    corpus: list[str] | str | None, layout: str, source: "DocumentFolder | None", counts: RowCounts
) -> Iterable[Passage]:
    """The passages of the corpus, whose files must exist, then those of the documents."""
    passages: Iterable[Passage] = ()
    if corpus:
        from datamodules.formats.reading import read_passages

        passages = read_passages(layout, listed(corpus, "corpus"), repeated=True, counts=counts)
    return passages if source is None else chain(passages, _segments(source, counts))


def _segments(source: "DocumentFolder", counts: RowCounts) -> Iterator[Passage]:
    """The segments of documents, which are no rows."""
    counts.here = ("", "")
    yield from source.passages()


def _source(corpus: list[str] | str | None, layout: str, source: "DocumentFolder | None") -> CorpusSource:
    """The source of an index. An index of another source does not replace this one unasked."""
    origin: dict[str, object] = {
        "corpus": {"layout": layout, "files": [*map(_full_name, listed(corpus, "corpus"))]} if corpus else None,
        "documents": str(source.folder.resolve()) if source is not None else None,
    }

    def versions() -> dict[str, int]:
        files = [each for each in listed(corpus, "corpus") if not each.startswith(HUB)] if corpus else []
        found = versions_of(path for each in files for path in content_files(each))
        return found if source is None else {**found, **source.versions}

    return CorpusSource(origin, getattr(source, "recipe", None), getattr(source, "write_images", None), versions)


def _full_name(source: str) -> str:
    """A file of a corpus, wherever the command is typed."""
    path, split = file_of(source)
    if not path.exists():  # a data set of the hub
        return source
    full = os.path.abspath(path) if path.is_file() else str(path.resolve())  # a link may lead elsewhere; pipes differ
    return full if split is None else f"{full}:{split}"


def _folder(
    documents: Path, out: Path, reading: ReadingOptions, cutting: Cutting, workers: int | None, device: str
) -> "DocumentFolder":
    """The folder of documents, and the cache of their conversions.

    Raises:
        UserError: If what is written would lie among the documents.
    """
    from documents.folder.corpus import read_folder

    document_cache = reading.document_cache or out.parent / f"{documents.resolve().name}.documents"
    for name, folder in (("--out", out), ("--reading.document_cache", document_cache)):
        if documents.resolve() in (folder.resolve(), *folder.resolve().parents):
            raise UserError(
                f"{name} {folder} lies in the folder of documents {documents}, where it would be read as documents. "
                "Choose another place."
            )
    limits = ReadingLimits(reading.seconds, reading.mebibytes, workers)
    passes = _passes(reading, device)
    return read_folder(documents, document_cache, reading.outline, cutting, limits, reading.strict, passes)


def _place(qdrant: CollectionPlace, kinds: Collection[Kind], out: Path) -> CollectionPlace | None:
    """The collection that the index is uploaded to; None without one.

    Raises:
        UserError: If an option contradicts another one.
    """
    if qdrant == CollectionPlace():
        return None
    if "dense" not in kinds:
        raise UserError(
            f"A Qdrant collection takes a dense index, got --kind {', '.join(kinds)}. Omit --kind, or --qdrant."
        )
    place = replace(qdrant, collection=qdrant.collection or out.name)
    place.check()
    return place


def _passes(reading: ReadingOptions, device: str) -> list[DocumentPass]:
    """The steps that change documents after reading."""
    passes: list[DocumentPass] = []
    if reading.llm is not None:
        from harness.indexing.documents.formatter import llm_pass

        passes.append(llm_pass(reading.llm))
    if reading.captioner is not None:
        from harness.indexing.documents.captioning import ImageCaptioner

        passes.append(ImageCaptioner(reading.captioner, device).document_pass)
    return passes
