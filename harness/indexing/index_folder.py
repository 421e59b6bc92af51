"""An index folder: what it was made from, proof that its files are whole, and refusal of everything else.

    index.json           the manifest: recipe, number of passages, versions, size and sha256 of every file, its own seal
    passages.jsonl       the corpus, with its table of offsets (`harness.indexing.passage_store`)
    vectors.* or bm25/   what `harness.retrievers.dense` or `harness.retrievers.bm25` search

The recipe holds all that decides the content (kind, corpus, text format, encoder or analyser, parameters): equal recipes,
equal indexes."""

import importlib.metadata
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from common.errors import ArtifactError, MissingInputError, UserError
from common.files import digests, read_json, verify, whole_folder, write_json
from harness.indexing.passage_store import OFFSETS, PASSAGES, TEXT_FORMAT
from harness.runtime.progress import say
from harness.runtime.provenance import differences, fingerprint

MANIFEST = "index.json"
FORMAT = 1  # of the folder; raise it when an older reader would go wrong

Verify = Literal["full", "size", "off"]


@dataclass(frozen=True, slots=True)
class Index:
    """An index folder that was opened and checked.  `recipe` is as `recipe_of` gave it; `passages` counts them;
    `origin` says where the parts were found when it was built, which does not decide the content."""

    folder: Path
    recipe: dict
    passages: int
    origin: dict

    @property
    def corpus(self) -> str:
        """Fingerprint of the corpus; see `harness.indexing.passage_store.corpus_fingerprint`."""
        return self.recipe["corpus"]


def recipe_of(kind: str, corpus: str, **parts: object) -> dict:
    """The recipe of an index, to be compared and recorded.

    Args:
        kind: `bm25` or `dense`.
        corpus: Corpus fingerprint.
        parts: What else decides the content, JSON types only.
    """
    return {"kind": kind, "corpus": corpus, "text": TEXT_FORMAT, **parts}


def _cure(folder: Path) -> str:
    return f"Build it again: infer.py index --out {folder} --overwrite true, with its --corpus and --kind."


def is_built(folder: Path, recipe: dict, overwrite: bool) -> bool:
    """Whether an index of this recipe stands there already, whole.

    Args:
        folder: Where the index is to be.
        recipe: What is to be built.
        overwrite: Whether another or a broken index may be replaced.

    Returns:
        True when there is nothing to do; False when the folder may be written.

    Raises:
        UserError: If the folder holds something that is not an index, or an index of another recipe without `overwrite`.
        ArtifactError: If the index of this recipe is corrupt, without `overwrite`.
    """
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return False
    if not (folder / MANIFEST).is_file():
        raise UserError(f"{folder} exists and is no index (no {MANIFEST}): it is not replaced. Choose another --out.")
    try:
        index = open_index(folder)
    except ArtifactError:
        if overwrite:
            return False
        raise
    if index.recipe == recipe:
        say(f"{folder}: this index stands already ({index.passages:,} passages, same recipe): nothing to do.")
        return True
    if overwrite:
        return False
    raise UserError(
        f"{folder} holds another index (differs in: {differences(index.recipe, recipe)}). "
        "Choose another --out, or replace it with --overwrite true."
    )


def write_index(
    folder: Path,
    recipe: dict,
    passages: int,
    corpus_in: Path,
    write: Callable[[Path], object],
    libraries: list[str],
    origin: dict | None = None,
) -> None:
    """Write an index folder, complete or not at all.

    Args:
        folder: Final place; what stands there is replaced (see `is_built`).
        recipe: What it was made from.
        passages: Their number.
        corpus_in: Folder with the corpus files, which are copied.
        write: Writes the searchable files into the folder it is given.
        libraries: Distributions whose versions the manifest records.
        origin: See `Index`.

    Raises:
        ArtifactError: If the disk refuses.
    """
    with whole_folder(folder) as temporary:
        for name in (PASSAGES, OFFSETS):
            shutil.copyfile(corpus_in / name, temporary / name)
        write(temporary)
        files = {
            name: {"bytes": (temporary / name).stat().st_size, "sha256": digest}
            for name, digest in digests(temporary).items()
        }
        manifest = {
            "format": FORMAT,
            "recipe": recipe,
            "passages": passages,
            "origin": origin or {},
            "versions": {name: importlib.metadata.version(name) for name in libraries},
            "files": files,
        }
        write_json(temporary / MANIFEST, {**manifest, "seal": fingerprint(manifest)})


def open_index(
    folder: Path, kind: str | None = None, verify_files: Verify = "full", expect_corpus: str | None = None
) -> Index:
    """Check an index folder and read its manifest.

    Args:
        folder: The index folder.
        kind: `bm25` or `dense`, when only that will do.
        verify_files: `full` compares every file's sha256 (about 1 GB a second), `size` its size alone, `off` nothing.
        expect_corpus: Fingerprint of the corpus that it must be of; None takes any.

    Raises:
        MissingInputError: If there is no such folder.
        ArtifactError: If it is incomplete, corrupt, of another format, kind, text format or corpus.
        UserError: If `verify_files` is none of the three words.
    """
    if verify_files not in ("full", "size", "off"):
        raise UserError(f"verify {verify_files!r} is not known. Choose full, size or off.")
    if not folder.is_dir():
        raise MissingInputError(f"{folder}: no such index. Build it: infer.py index --corpus FILE --out {folder}.")
    if not (folder / MANIFEST).is_file():
        raise ArtifactError(f"{folder} is no whole index: {MANIFEST} is missing. {_cure(folder)}")
    manifest = read_json(folder / MANIFEST, _cure(folder))
    if manifest.get("format") != FORMAT:
        raise ArtifactError(
            f"{folder} has index format {manifest.get('format')}, this version reads {FORMAT}. {_cure(folder)}"
        )
    if manifest.pop("seal", None) != fingerprint(manifest):
        raise ArtifactError(f"{folder / MANIFEST} is corrupt: it does not match its own seal. {_cure(folder)}")
    recipe, files = manifest["recipe"], manifest["files"]
    if kind is not None and recipe["kind"] != kind:
        raise ArtifactError(
            f"{folder} is a {recipe['kind']} index, and a {kind} index is needed. Name one of that kind."
        )
    if recipe["text"] != TEXT_FORMAT:
        raise ArtifactError(
            f"{folder} was made with text format {recipe['text']!r}, now {TEXT_FORMAT!r}. {_cure(folder)}"
        )
    if expect_corpus is not None and recipe["corpus"] != expect_corpus:
        raise ArtifactError(
            f"{folder} is an index of another corpus ({recipe['corpus'][:12]}, expected {expect_corpus[:12]}). "
            "Name the index of this corpus, or build one: infer.py index."
        )
    if verify_files != "off":
        _verify_sizes(folder, {name: file["bytes"] for name, file in files.items()})
    if verify_files == "full":
        verify(folder, {name: file["sha256"] for name, file in files.items()}, _cure(folder))
    return Index(folder, recipe, manifest["passages"], manifest["origin"])


def _verify_sizes(folder: Path, sizes_bytes: dict[str, int]) -> None:
    for name, size_bytes in sizes_bytes.items():
        file = folder / name
        if not file.is_file():
            raise ArtifactError(f"{file} is missing though the manifest lists it. {_cure(folder)}")
        if file.stat().st_size != size_bytes:
            raise ArtifactError(f"{file} has {file.stat().st_size} bytes instead of {size_bytes}. {_cure(folder)}")
