"""The manifest of a serving folder: kind of model, text format, thresholds, metrics, and the SHA-256 of every file.

serving/serving.json            this manifest
serving/README.md               model card
serving/<part>/                 config.json, model.safetensors, tokenizer.json: loadable by transformers alone
"""

from pathlib import Path
from typing import Any

from common.errors import ArtifactError, MissingInputError
from common.files import digests, read_json, verify, write_json

MANIFEST = "serving.json"
CURE = "Export again: python train.py fit (its end writes serving/), or fetch the folder again."


def write_manifest(folder: Path, kind: str, text_format: str, max_tokens: int, **facts: Any) -> None:
    """Write `serving.json`: what serving needs to know, and the SHA-256 of every other file of the folder.

    Args:
        folder: The serving folder; all other files must already be written.
        kind: Kind of model, e.g. "triple_classifier"; loading it as another kind is an error.
        text_format: Version string of the input format in `models/`; loading it with another one is an error.
        max_tokens: Maximum input length, in tokens.
        facts: Thresholds, calibration, metrics, versions, commit, data digests; JSON types only.
    """
    head = {"kind": kind, "text_format": text_format, "max_tokens": max_tokens}
    write_json(folder / MANIFEST, {**head, **facts, "sha256": digests(folder)})


def read_manifest(
    folder: Path, kind: str, text_format: str | tuple[str, ...], check_files: bool = True
) -> dict[str, Any]:
    """Read and check the manifest of a serving folder.

    Args:
        folder: The serving folder.
        kind: Required kind of model.
        text_format: Required text format, or several allowed ones.
        check_files: Whether to compare every file with its SHA-256.

    Raises:
        MissingInputError: If the folder or its manifest is missing.
        ArtifactError: If the kind or the text format differ, or a file is missing or corrupt.
    """
    if not folder.is_dir():
        raise MissingInputError(f"{folder} does not exist: no serving folder there. {CURE}")
    manifest = read_json(folder / MANIFEST, CURE)
    if manifest.get("kind") != kind:
        raise ArtifactError(f"{folder} holds a {manifest.get('kind')!r}, not a {kind!r}: give another folder.")
    allowed = (text_format,) if isinstance(text_format, str) else text_format
    if manifest["text_format"] not in allowed:
        raise ArtifactError(
            f"{folder} was trained on the text format {manifest['text_format']!r}, this release writes {text_format!r}: "
            "use the release that exported it, or train again."
        )
    if check_files:
        verify(folder, manifest["sha256"], CURE)
    return manifest
