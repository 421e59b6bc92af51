"""The manifest of a serving folder: kind of model, text format, thresholds, metrics, and the SHA-256 of every file.

serving/serving.json            this manifest, sealed (`common.sealed_json`)
serving/README.md               model card: for people, to be edited, and so not in the manifest
serving/<part>/                 config.json, model.safetensors, tokenizer.json: loadable by transformers alone
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from common.errors import ArtifactError, MissingInputError
from common.files import digests, read_json, sha256, verify
from common.sealed_json import SEAL, check_fields, unsealed, write_sealed

MANIFEST = "serving.json"
CARD = "README.md"
FORMAT = 2  # version of the manifest; releases before the seal wrote none
LEFT = {  # kinds that releases before 0.3 wrote -> what to type in their place
    "t5": "give the folder t5 in it, or a T5 of `python -m trainers.t5_from_scratch`",
    "dmqr_strategy_choice": "choose strategies by --system.init_args.strategies, or have a language model choose them "
    "by harness.rewriters.llm.LlmRewriter with `adaptive: true`",
}
HEAD = {"kind": str, "text_format": str, "max_tokens": int, "sha256": dict}
CURE = "Export again: python train.py fit (its end writes serving/), or fetch the folder again."


class FromServing:
    """A model that a serving folder may hold, and that knows what determines its results."""

    network: Any
    inference_dtype: Any = None
    serving_sha256: str | None = None  # of the manifest that it was loaded from

    @property
    def identity(self) -> dict[str, object] | None:
        """What determines its results; None if it was not loaded from a serving folder."""
        loaded = self.serving_sha256
        computed = {"computed in": str(self.inference_dtype), "on": self.network.device.type}
        return {"serving": loaded, **computed} if loaded else None


def is_local(name: str) -> bool:
    """Whether the name of a model is a folder or a checkpoint on this machine, not a hub id."""
    return Path(name).expanduser().exists()


def without_place(name: str) -> str:
    """The name of a file or folder; of a run's serving folder or checkpoint with the run's name before it."""
    path = Path(name)
    if name.startswith("hf:") or not (path.is_absolute() or is_local(name)):
        return name
    return "/".join(path.parts[-2:]) if path.name == "serving" or path.suffix == ".ckpt" else path.name


def without_places(digests: Mapping[str, str]) -> dict[str, str]:
    """Digests by the names of their files; of files of one name, by as much of their paths as tells them apart."""
    named = {}
    for path, digest in digests.items():
        most = len(Path(path).parts)
        ends = [path if path.startswith("hf:") else "/".join(Path(path).parts[-n:]) for n in range(1, most + 1)]
        others = [other for other in digests if other != path]
        free = (end for end in ends if not any(f"/{other}".endswith(f"/{end}") for other in others))
        named[next(free, ends[-1])] = digest
    return named


def write_manifest(folder: Path, kind: str, text_format: str, max_tokens: int, **facts: Any) -> None:
    """Write `serving.json`: what serving needs to know, and the SHA-256 of every other file but the model card.

    Args:
        folder: The serving folder; all other files must already be written.
        kind: Kind of model, e.g. "triple_classifier"; loading it as another kind is an error.
        text_format: Version string of the input format in `models/`; loading it with another one is an error.
        max_tokens: Maximum input length, in tokens.
        facts: Thresholds, calibration, metrics, versions, commit, data digests; JSON types only. Files that `data` and
            `base` name stand without their place: the folder goes to other machines.
    """
    if "data" in facts:
        facts["data"] = without_places(facts["data"])
    if facts.get("base"):
        facts["base"] = {**facts["base"], "name": without_place(facts["base"]["name"])}
    head = {"format": FORMAT, "kind": kind, "text_format": text_format, "max_tokens": max_tokens}
    sealed = {name: digest for name, digest in digests(folder).items() if name not in (CARD, MANIFEST)}
    write_sealed(folder / MANIFEST, {**head, **facts, "sha256": sealed})


def read_manifest(
    folder: Path,
    kind: str,
    text_format: str | tuple[str, ...],
    fields: Mapping[str, Any] | None = None,
    check_files: bool = True,
) -> dict[str, Any]:
    """Read and check the manifest of a serving folder; one of an earlier release has no seal.

    Args:
        folder: The serving folder.
        kind: Required kind of model.
        text_format: Required text format, or several allowed ones.
        fields: Further fields that it must have, with their types: see `common.sealed_json.check_fields`.
        check_files: Whether to compare every file with its SHA-256.

    Raises:
        MissingInputError: If the folder or its manifest is missing.
        ArtifactError: If it is corrupt or edited, the kind or the text format differ, or a file is missing or corrupt.
    """
    file, manifest = folder / MANIFEST, opened_manifest(folder)
    refuse_left(folder, manifest["kind"])
    if manifest["kind"] != kind:
        raise ArtifactError(f"{folder} holds a {manifest.get('kind')!r}, not a {kind!r}: give another folder.")
    allowed = (text_format,) if isinstance(text_format, str) else text_format
    if manifest["text_format"] not in allowed:
        raise ArtifactError(
            f"{folder} was trained on the text format {manifest['text_format']!r}, this release writes "
            f"{text_format!r}: use the release that exported it, or train again."
        )
    check_fields(str(file), manifest, fields or {}, CURE)
    check_fields(f"{file}: sha256", manifest["sha256"], dict.fromkeys(manifest["sha256"], str), CURE)
    if check_files:
        verify(folder, {name: digest for name, digest in manifest["sha256"].items() if name != CARD}, CURE)
    return manifest


def opened_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a serving folder of any kind, sealed; errors as `read_manifest`."""
    if not folder.is_dir():
        raise MissingInputError(f"{folder} does not exist: no serving folder there. {CURE}")
    file = folder / MANIFEST
    manifest = read_json(file, CURE)
    if SEAL in manifest or "format" in manifest:
        manifest = unsealed(file, manifest, CURE)
    check_fields(str(file), manifest, HEAD, CURE)
    return manifest


def refuse_left(folder: Path, kind: object) -> None:
    """Raise ArtifactError if a serving folder is of a kind that no release writes any more."""
    if kind in LEFT:
        raise ArtifactError(f"{folder} holds a {kind!r}, which only releases before 0.3 use: {LEFT[str(kind)]}.")


def manifest_sha256(folder: Path | None) -> str | None:
    """sha256 of the manifest of a serving folder, which holds those of its files; None without one."""
    manifest = None if folder is None else Path(folder) / MANIFEST
    return sha256(manifest) if manifest is not None and manifest.is_file() else None


def card_metadata(folder: Path) -> str:
    """The front matter of a serving folder's card, for the card of what is made from it; empty if it has none."""
    card = folder / CARD
    _, marked, rest = (card.read_text(encoding="utf-8") if card.is_file() else "").partition("---\n")
    return f"---\n{rest.partition('---')[0]}---\n\n" if marked else ""
