"""Push of a trained part to the Hugging Face hub: its files at the root of a new repository, with its own card."""

import re
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any

from httpx2 import HTTPError
from huggingface_hub import CommitOperationAdd, HfApi, ModelCard, get_token
from huggingface_hub.errors import HfHubHTTPError, HFValidationError
from huggingface_hub.utils import validate_repo_id

from common.errors import MissingInputError, RefusedError, UnavailableError, UserError
from common.files import read_json, verify
from models.cross_encoder import ESTIMATOR
from models.dmqr.rewriter import OWN
from models.pair_export import SENTENCE_TRANSFORMERS
from models.serving_manifest import CARD, CURE, MANIFEST, opened_manifest, without_places


def push(folder: Path, name: str, part: str | None = None, public: bool = False, dry_run: bool = False) -> None:
    """Upload a part in one commit, or print what would be uploaded.

    Args:
        folder: A serving folder, or what `infer.py export` wrote.
        name: OWNER/NAME of a repository that does not exist yet.
        part: Its subfolder, where there are several.
        public: Whether everybody may read it.
        dry_run: Print files, sizes and card; nothing is sent.

    Raises:
        UserError: If the name is none, or taken; if there is no token; if the part is an adapter, or not named.
        ArtifactError: If a file is corrupt.
        UnavailableError: If the hub cannot be reached.
        RefusedError: If the hub refuses the token, or that it writes there.
    """
    try:
        validate_repo_id(name)
    except HFValidationError:
        name = ""
    if name.count("/") != 1:
        raise UserError("--push takes OWNER/NAME, of letters, digits, -, _ and '.', such as your-name/reranker-nq.")
    manifest = opened_manifest(folder)
    verify(folder, manifest["sha256"], CURE)
    part, files = _files(folder, manifest, part)
    card = part_card(folder, part, name)
    reader = "everybody" if public else "you and whom you allow"
    if dry_run:
        sizes = "\n".join(f"{place.stat().st_size:>15,} {path}" for path, place in files.items())
        print(f"{name}, read by {reader}; nothing is sent:\n{sizes}\n{len(card.encode()):>15,} {CARD}\n\n{card}")
        return
    if not (token := get_token()):
        raise UserError("--push needs a token of the hub that may write: hf auth login, or set HF_TOKEN.")
    api = HfApi(token=token)
    added = [CommitOperationAdd(path, str(place)) for path, place in files.items()]
    added.append(CommitOperationAdd(CARD, card.encode()))
    made = False
    try:
        api.create_repo(name, private=not public)
        made = True
        api.create_commit(name, added, commit_message="Lightning RAG: export")
    except (HTTPError, OSError) as error:
        status = error.response.status_code if isinstance(error, HfHubHTTPError) else None
        if status == HTTPStatus.CONFLICT and not made:
            raise UserError(f"--push {name} is taken: choose another name, or delete that repository.") from error
        cause = (str(error).strip().splitlines() or [type(error).__name__])[0].replace(token, "TOKEN")
        left = " The new repository is empty: delete it before you try again." if made else ""
        kind = RefusedError if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN) else UnavailableError
        raise kind(f"--push {name}: {cause}{left}") from error
    print(f"{api.endpoint}/{name}: {len(added)} files, read by {reader}")


def _files(folder: Path, manifest: Mapping[str, Any], part: str | None) -> tuple[str, dict[str, Path]]:
    """The part, empty for a whole folder, and its files by their places in the repository."""
    names = list(manifest["sha256"])
    if str(manifest["kind"]).endswith("_onnx"):
        if (data := manifest.get("data", {})) != without_places(data):
            raise UserError(f"{folder}: its serving.json names folders of this machine: export it again, then push it.")
        return "", {name: folder / name for name in [*names, MANIFEST]}
    described = manifest.get("parts", {})
    adapters = any("base" in each for each in described.values()) or OWN in manifest.get("adapter", {})
    if adapters and not str(manifest["kind"]).endswith("_merged"):
        raise UserError(
            f"{folder} holds adapters: merge them first, infer.py export --form merged --serving {folder} --out OUT, "
            "and push OUT."
        )
    parts = sorted(name.rpartition("/")[0] for name in names if name.count("/") == 1 and name.endswith("/config.json"))
    chosen = part or (parts[0] if len(parts) == 1 else "")
    if chosen not in parts:
        raise UserError(f"{folder} holds {', '.join(parts)}: name the one to push, --part {parts[0]}.")
    return chosen, {n.removeprefix(f"{chosen}/"): folder / n for n in names if n.startswith(f"{chosen}/")}


def part_card(folder: Path, part: str, name: str) -> str:
    """The card of a part in a repository: what is of other parts leaves, and its code loads the repository."""
    if not (folder / CARD).is_file():
        raise MissingInputError(f"{folder / CARD} does not exist: a repository needs a model card. {CURE}")
    card = ModelCard.load(folder / CARD)
    data: Any = card.data
    config = read_json(folder / part / "config.json", CURE) if part else {}
    pairs = any(each.endswith("ForSequenceClassification") for each in config.get("architectures") or ())
    if pairs or (folder / part / "modules.json").is_file():
        as_cross_encoder(data)
    if part == ESTIMATOR:
        data.pipeline_tag = "text-ranking"
    if data.eval_results:
        data.model_name = name.rpartition("/")[2]
    first, *sections = re.split(r"(?m)^(?=### )", card.text)
    own = "".join([first, *(each for each in sections if each.startswith(f"### {part}\n"))])
    if part:
        own = own.replace(f'"{part}"', f'"{name}"').replace(f"`{part}/`", "here")
    return f"---\n{data.to_yaml()}\n---\n{own.replace('In this folder.', '').rstrip()}\n"


def as_cross_encoder(data: Any) -> None:
    """Change the metadata of a card into those of a reranker that sentence-transformers loads."""
    data.library_name, data.pipeline_tag = SENTENCE_TRANSFORMERS, "text-ranking"
    data.tags = [*dict.fromkeys([*(data.tags or ()), "cross-encoder", "reranker"])]
