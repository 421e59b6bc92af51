"""The manifest of a serving folder: its seal, the types of its fields, the model card outside it, earlier releases."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from common.errors import ArtifactError, MissingInputError
from common.files import sha256
from common.sealed_json import write_sealed
from models.dmqr import word_selector, word_tokenizer
from models.dmqr.rewriter import RewriterModel
from models.dmqr.strategies import POOL
from models.dmqr.word_selector import WordSelector
from models.drrag.triple_classifier import FIELDS, KIND, TripleClassifier
from models.drrag.triple_tokenizer import TEXT_FORMAT
from models.lora import Lora, add_adapter
from models.rerag.model import ReRagModel
from models.serving_manifest import read_manifest, write_manifest
from tests.helpers.rerag_world import write_serving


@pytest.fixture
def folder(tmp_path) -> Path:
    """A serving folder whose model is a short file: the manifest does not look into it."""
    serving = tmp_path / "serving"
    (serving / "classifier").mkdir(parents=True)
    (serving / "classifier/model.safetensors").write_bytes(b"weights")
    (serving / "README.md").write_text("a card")
    facts = {"validation": {"auc": 1e-05, "Züge": 0.1}, "data": {"a.json": "0" * 64}, "commit": None}
    write_manifest(serving, KIND, TEXT_FORMAT, 96, attention="auto", threshold=0.25, **facts)
    return serving


@pytest.fixture
def earlier(folder) -> Path:
    """The folder as release 0.1 wrote it: without a seal, and with the card among the files."""
    manifest = json.loads((folder / "serving.json").read_text())
    del manifest["seal"], manifest["format"]
    manifest["sha256"]["README.md"] = sha256(folder / "README.md")
    (folder / "serving.json").write_text(json.dumps(manifest))
    return folder


def read(folder: Path) -> dict:
    return read_manifest(folder, KIND, TEXT_FORMAT, FIELDS)


def test_every_single_bit_flip_is_refused(folder) -> None:
    file = folder / "serving.json"
    whole = file.read_bytes()
    flips = [(position, bit) for position in range(len(whole)) for bit in range(8)]
    key = whole.index(b'"seal"')
    near_the_seal = [(position, bit) for position in range(key - 4, key + 9) for bit in range(8)]
    for position, bit in [*random.Random(0).sample(flips, 400), *near_the_seal]:
        torn = bytearray(whole)
        torn[position] ^= 1 << bit
        file.write_bytes(torn)
        with pytest.raises(ArtifactError) as error:
            read(folder)
        assert "\n" not in str(error.value)
    file.write_bytes(whole)
    assert read(folder)["threshold"] == 0.25


@pytest.mark.parametrize("value", [0.26, "0.25", None, True])
def test_an_edited_threshold_is_refused(folder, value) -> None:
    manifest = json.loads((folder / "serving.json").read_text())
    (folder / "serving.json").write_text(json.dumps({**manifest, "threshold": value}, indent=2) + "\n")
    with pytest.raises(ArtifactError, match=r"serving\.json is corrupt or was edited"):
        read(folder)


def test_the_model_card_may_be_edited_and_removed(folder) -> None:
    (folder / "README.md").write_text("another card")
    assert read(folder)["max_tokens"] == 96
    (folder / "README.md").unlink()
    assert read(folder)["max_tokens"] == 96
    (folder / "classifier/model.safetensors").write_bytes(b"Weights")
    with pytest.raises(ArtifactError, match=r"model\.safetensors is corrupt"):
        read(folder)


def test_a_folder_of_an_earlier_release_needs_no_seal_and_its_card_may_be_edited(earlier) -> None:
    assert "seal" not in read(earlier)
    assert "README.md" in read(earlier)["sha256"]
    (earlier / "README.md").write_text("another card")
    assert read(earlier)["threshold"] == 0.25


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("threshold", value) for value in ("0.5", True)), *(("max_tokens", value) for value in ("256", None)),
        ("text_format", 1), ("attention", "fusd"), ("sha256", []), ("sha256", {"classifier/config.json": 5}),
    ],
)  # fmt: skip
def test_a_field_of_a_wrong_type_in_an_unsealed_manifest_is_one_line(earlier, key, value) -> None:
    manifest = json.loads((earlier / "serving.json").read_text())
    named = next(iter(value)) if isinstance(value, dict) else key
    (earlier / "serving.json").write_text(json.dumps({**manifest, key: value}))
    with pytest.raises(ArtifactError, match=f"{named} must be"):
        read(earlier)
    del manifest[key]
    (earlier / "serving.json").write_text(json.dumps(manifest))
    with pytest.raises(ArtifactError, match=f"has no '{key}'"):
        read(earlier)


def save_classifier(models: dict[str, Path], folder: Path) -> None:
    TripleClassifier.build(str(models["bert"]), 96).save(folder)
    write_manifest(folder, KIND, TEXT_FORMAT, 96, attention="auto", threshold=0.25)


def save_selector(models: dict[str, Path], folder: Path) -> None:
    WordSelector.build(str(models["bert"]), 48).save(folder)
    write_manifest(folder, word_selector.KIND, word_tokenizer.TEXT_FORMAT, 48)


def save_rewriter(models: dict[str, Path], folder: Path) -> None:
    rewriter = RewriterModel.build(str(models["t5"]), 40, 20, POOL)
    add_adapter(rewriter.network, "base", Lora(4))
    rewriter.save(folder, ["gqr"], {})


KINDS: dict[str, tuple[Callable[[dict[str, Path], Path], object], Callable[..., object]]] = {
    "classifier": (save_classifier, TripleClassifier.load),
    "rerag": (lambda models, folder: write_serving(models["t5"], folder), ReRagModel.load),
    "rewriter": (save_rewriter, RewriterModel.load),
    "selector": (save_selector, WordSelector.load),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_or_foreign_folder_of_every_kind_is_refused(kind, checkpoints, tmp_path) -> None:
    (save, load), folder = KINDS[kind], tmp_path / "serving"
    with pytest.raises(MissingInputError):
        load(folder, "cpu")
    save(checkpoints, folder)
    load(folder, "cpu")
    for file in folder.glob("*/*"):
        whole = file.read_bytes()
        file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        with pytest.raises(ArtifactError, match=file.name):
            load(folder, "cpu")
        file.write_bytes(whole)
    manifest = json.loads((folder / "serving.json").read_text())
    del manifest["seal"]
    for key in ("text_format", "kind"):
        write_sealed(folder / "serving.json", {**manifest, key: "another"})
        with pytest.raises(ArtifactError, match="another"):
            load(folder, "cpu")
