"""Index folders: writing them, and verifying manifest and files when they are opened.

    index.json           the manifest: recipe, number of passages, versions, size and sha256 of every file, its own
                         sha256
    passages.jsonl       the corpus, with its table of offsets and further ids (`harness.indexing.passage_store`)
    vectors.*, bm25/, keywords.jsonl or links/
                         what `harness.retrievers.dense`, `.bm25`, `.keywords` or `.links` searches
    images/              of an index of documents: their images

The recipe identifies an index: it holds everything that determines the content (kind, corpus, text format, encoder or
analyser, parameters), so equal recipes give equal indexes.
"""

import importlib.metadata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar

from common.errors import ArtifactError, MissingInputError, UserError
from common.files import (
    digests,
    link_or_copy,
    read_json,
    sampled_sha256,
    sampled_share,
    scratch_folder,
    sha256,
    whole_folder,
)
from common.outputs import OutputFolder, known_files
from common.progress import say, track
from common.records import Passage
from common.sealed_json import unsealed, write_sealed
from datamodules.formats.open_data import VERSIONS, versions_by_name
from datamodules.formats.row_counts import RowCounts
from documents.reading.file_types import READING_VERSIONS, named_type
from harness.indexing.passage_store import (
    IMAGES,
    OFFSETS,
    OTHER_IDS,
    PASSAGES,
    TEXT_FORMAT,
    Corpus,
    PassageStore,
    write_passages,
)
from harness.runtime.provenance import differences

MANIFEST = "index.json"
READ = "read"  # of an origin: the kinds of its files, each with the version of how it was read
FORMAT = 1  # version of the folder format; increase it when older code could not read the folder

INDEX = OutputFolder(
    "`infer.py index`",
    "an index",
    known_files(
        *(MANIFEST, PASSAGES, OFFSETS, OTHER_IDS, f"{IMAGES}/*"),
        *("vectors.npy", "vectors.faiss", "bm25/*", "keywords.jsonl", "links/*"),
    ),
)

Verify = Literal["sampled", "full", "off"]
_Written = TypeVar("_Written")


@dataclass(frozen=True)
class Index:
    """An index folder that was opened and verified.  `recipe` comes from `recipe_of`; `passages` is their number;
    `origin` names where the parts (the encoder, the corpus) were at build time and is not part of the recipe."""

    folder: Path
    recipe: dict
    passages: int
    origin: dict

    @property
    def corpus(self) -> str:
        """Fingerprint of the corpus; see `harness.indexing.passage_store.write_passages`."""
        return self.recipe["corpus"]

    @cached_property
    def stored(self) -> Sequence[Passage]:
        """Its passages, in the order of the corpus, opened at first use."""
        return PassageStore(self.folder)


@dataclass(frozen=True, slots=True)
class CorpusSource:
    """Where the passages of an index come from.

    An index of what the same source held earlier is brought up to date without being asked to overwrite it.
    """

    origin: dict[str, object]  # its files and folders, and what else was asked for, JSON types only; for `Index.origin`
    documents: dict[str, object] | None = None  # how documents were read and cut into segments, JSON types only
    write_images: Callable[[Path], object] | None = None  # of documents into a folder, after all passages were read
    versions: Callable[[], dict[str, int]] = dict  # of how each kind of its files is read, after all passages were read


@dataclass(frozen=True, slots=True)
class Build:
    """How an index folder is built.

    Args:
        overwrite: Whether an index of another recipe, or an unfinished build of one, may be replaced.
        source: Where the passages come from; None: an index of other passages is another index.
        counts: See `harness.indexing.passage_store.write_passages`; of a dense index also of passages that the encoder
            cuts.
    """

    overwrite: bool = False
    source: CorpusSource | None = None
    counts: RowCounts | None = None


def recipe_of(kind: str, corpus: Corpus, source: CorpusSource | None = None, **parts: object) -> dict:
    """The recipe of an index.

    Args:
        kind: `bm25`, `dense`, `keywords` or `links`.
        corpus: The corpus as it was written; a corpus without own ids and metadata adds nothing but its fingerprint.
        source: Where it comes from; how documents were read is part of the recipe.
        parts: Everything else that determines the content, JSON types only.
    """
    labels = {"labels": corpus.labels} if corpus.labels else {}
    read = {"documents": source.documents} if source is not None and source.documents is not None else {}
    return {"kind": kind, "corpus": corpus.fingerprint, "text": TEXT_FORMAT, **labels, **read, **parts}


def differs_in_content_only(recorded: dict, recipe: dict) -> bool:
    """Whether two recipes are the same work on other passages."""
    return all(recorded.get(key) == recipe.get(key) for key in {*recorded, *recipe} - {"corpus", "labels"})


def _rebuild(folder: Path) -> str:
    return (
        f"Build it again: infer.py index --out {folder} --overwrite true, with its --corpus or --documents and its "
        "--kind."
    )


def is_built(folder: Path, recipe: dict, build: Build, accepted: Sequence[dict] = ()) -> bool:
    """Whether the folder already holds a valid index of this recipe.

    Args:
        folder: The index folder.
        recipe: Of the index to build.
        build: How it is built.
        accepted: Further recipes of indexes that serve as well.

    Returns:
        True when there is nothing to do; False when the folder may be written.

    Raises:
        UserError: If the folder holds something that is not an index, or an index of another recipe without
            `overwrite`.
        ArtifactError: If the index of this recipe is corrupt, without `overwrite`.
    """
    INDEX.check(folder)
    if not (folder / MANIFEST).is_file():
        return False
    try:
        index = open_index(folder, verify_files="full")
    except ArtifactError:
        if build.overwrite:
            return False
        raise
    recipes = (recipe, *accepted)
    if index.recipe in recipes:
        say(f"{folder}: the index is up to date ({index.passages:,} passages, same recipe).")
        return True
    origin = build.source.origin.items() if build.source is not None else None
    same_source = origin is not None and all(index.origin.get(key) == value for key, value in origin)
    if build.overwrite or (same_source and any(differs_in_content_only(index.recipe, each) for each in recipes)):
        return False
    raise UserError(
        f"{folder} holds another index (differs in: {differences(index.recipe, recipe)}). "
        "Choose another --out, or replace it with --overwrite true."
    )


def build_index(
    kind: str,
    passages: Iterable[Passage],
    out: Path,
    parts: dict[str, object],
    write: Callable[[PassageStore, Path], str],
    libraries: list[str],
    build: Build,
) -> None:
    """Build an index folder that one process writes, unless it is up to date.

    Args:
        kind: `bm25`, `keywords` or `links`.
        passages: The corpus; of passages with the same id only the first is indexed.
        out: The index folder.
        parts: See `recipe_of`.
        write: Given the stored passages, writes the searchable files into a folder; returns what it has written, in
            words. It may leave files of its own in the folder of the passages, which is removed.
        libraries: Distributions whose versions the manifest records.
        build: How it is built.

    Raises:
        UserError: If `out` holds something else, or another process is writing it.
        DataError: If the corpus is empty, or has nothing to index.
        ArtifactError: If writing to disk fails.
    """
    with INDEX.locked(out), scratch_folder(out) as staging:
        corpus = write_passages(staging, track(passages, None, "reading passages"), build.counts)
        recipe = recipe_of(kind, corpus, build.source, **parts)
        if is_built(out, recipe, build):
            return
        store = PassageStore(staging)
        said = write_index(out, recipe, store, lambda folder: write(store, folder), libraries, build.source)
    say(f"{out}: {said}.")


def write_index(
    folder: Path,
    recipe: dict,
    corpus: PassageStore,
    write: Callable[[Path], _Written],
    libraries: list[str],
    source: CorpusSource | None,
    **origin: str,
) -> _Written:
    """Write an index folder atomically.

    Args:
        folder: The index folder; an existing one is replaced (check with `is_built` first).
        recipe: See `recipe_of`.
        corpus: The passages; its files are linked, or copied where that is not possible.
        write: Writes the searchable files into the folder passed to it; what it returns is returned.
        libraries: Distributions whose versions the manifest records.
        source: Where the corpus comes from.
        origin: See `Index`.

    Raises:
        ArtifactError: If writing to disk fails.
    """
    with whole_folder(folder) as temporary:
        for name in (PASSAGES, OFFSETS, OTHER_IDS):
            if name != OTHER_IDS or (corpus.folder / name).is_file():
                link_or_copy(corpus.folder / name, temporary / name)
        written = write(temporary)
        if source is not None and source.write_images is not None:
            source.write_images(temporary / IMAGES)
        manifest = {
            "format": FORMAT,
            "recipe": recipe,
            "passages": len(corpus),
            "origin": origin if source is None else {**origin, **source.origin, READ: source.versions()},
            "versions": {name: importlib.metadata.version(name) for name in libraries},
            "files": {name: _recorded(temporary / name, digest) for name, digest in digests(temporary).items()},
        }
        write_sealed(temporary / MANIFEST, manifest)
    return written


def _recorded(file: Path, digest: str) -> dict[str, object]:
    """The manifest's entry of a file."""
    sampled, recorded = sampled_sha256(file), {"bytes": file.stat().st_size, "sha256": digest}
    return recorded if sampled is None else {**recorded, "sampled_sha256": sampled}


def open_index(folder: Path, kind: str | None = None, verify_files: Verify = "sampled") -> Index:
    """Verify an index folder and read its manifest.

    Args:
        folder: The index folder.
        kind: Required kind, `bm25`, `dense`, `keywords` or `links`; None accepts all.
        verify_files: `sampled` checks the sha256 of each file, and of files above 16 MiB that of 256 blocks of them;
            `full` every file's sha256 (about 1 GB/s); `off` nothing. Of an index built before there were blocks,
            `sampled` is `full`.

    Raises:
        MissingInputError: If there is no such folder.
        ArtifactError: If it is incomplete, corrupt, or of another format, kind or text format.
    """
    if not folder.is_dir():
        cure = f"Build it: infer.py index --corpus FILE --kind {kind or 'KIND'} --out {folder}."
        raise MissingInputError(f"{folder}: no such index. {cure}")
    if not (folder / MANIFEST).is_file():
        raise ArtifactError(f"{folder} is not a complete index: {MANIFEST} is missing. {_rebuild(folder)}")
    manifest = unsealed(folder / MANIFEST, read_json(folder / MANIFEST, _rebuild(folder)), _rebuild(folder))
    recipe, files = manifest["recipe"], manifest["files"]
    if kind is not None and recipe["kind"] != kind:
        raise ArtifactError(f"{folder} is a {recipe['kind']} index, and a {kind} index is needed.")
    built, own = f"{manifest['format']}, text {recipe['text']!r}", f"{FORMAT}, text {TEXT_FORMAT!r}"
    if built != own:
        raise ArtifactError(f"{folder} has index format {built}, this version reads {own}. {_rebuild(folder)}")
    known: dict[str, int] = {**VERSIONS, **{str(kind): version for kind, version in READING_VERSIONS.items()}}
    for each, version in _versions_read(folder, manifest["origin"]).items():
        if version != known.get(each):
            raise ArtifactError(
                f"{folder} has version {version} of how a {each} file is read, this version has {known.get(each)}. "
                f"{_rebuild(folder)}"
            )
    sampled = {name for name, file in files.items() if verify_files == "sampled" and "sampled_sha256" in file}
    for name in files if verify_files != "off" else ():
        _check_file(folder, name, files[name], name in sampled)
    if sampled:
        shares = ", ".join(f"{sampled_share(files[name]['bytes']):.1%} of {name}" for name in sorted(sampled))
        say(f"{folder}: verified by samples, {shares}. After a copy, once: infer.py verify --index {folder}")
    return Index(folder, recipe, manifest["passages"], manifest["origin"])


def built_with(index: Index, **parts: object) -> Index:
    """The index, whose recipe must have these parts.

    Raises:
        ArtifactError: If it was built by a version that tells words, keywords or titles apart otherwise.
    """
    if any(index.recipe.get(name) != value for name, value in parts.items()):
        kind = index.recipe["kind"]
        raise ArtifactError(
            f"{index.folder} was built by another version (differs in: {', '.join(parts)}). Build it again: "
            f"infer.py index --kind {kind} --out {index.folder} --overwrite true."
        )
    return index


def _versions_read(folder: Path, origin: dict[str, Any]) -> dict[str, int]:
    """How the kinds of files of an index were read: version 0 where release 0.3 or before recorded none."""
    if READ in origin:
        return dict(origin[READ])
    found = versions_by_name((origin.get("corpus") or {}).get("files", []))
    if origin.get("documents") is not None:
        names = {str((passage.metadata or {}).get("document", "")) for passage in PassageStore(folder)}
        found |= {kind: 0 for name in names if (kind := named_type(name)) is not None}
    return found


def _check_file(folder: Path, name: str, recorded: dict, sampled: bool) -> None:
    """Compare a file with its entry in the manifest, by samples or whole."""
    file = folder / name
    if not file.is_file():
        raise ArtifactError(f"{file} is missing but listed in the manifest. {_rebuild(folder)}")
    if (size := file.stat().st_size) != recorded["bytes"]:
        raise ArtifactError(f"{file} has {size} bytes instead of {recorded['bytes']}. {_rebuild(folder)}")
    how, digest = ("sampled_sha256", sampled_sha256) if sampled else ("sha256", sha256)
    if digest(file) != recorded[how]:
        raise ArtifactError(f"{file} is corrupt: its {how} differs from the manifest. {_rebuild(folder)}")
