"""The manifest of a serving folder: its seal, the types of its fields, the model card outside it, earlier releases."""

import json
import random
from pathlib import Path

import pytest

from common.errors import ArtifactError
from common.files import sha256
from models.drrag.triple_classifier import FIELDS, KIND
from models.drrag.triple_tokenizer import TEXT_FORMAT
from models.serving_manifest import read_manifest, write_manifest


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
    ("key", "value", "message"),
    [
        ("threshold", "0.5", "threshold must be a number, got '0.5'"),
        ("threshold", True, "threshold must be a number, got True"),
        ("max_tokens", "256", "max_tokens must be a whole number, got '256'"),
        ("max_tokens", None, "max_tokens must be a whole number, got None"),
        ("text_format", 1, "text_format must be a text, got 1"),
        ("attention", "fusd", "attention must be one of"),
        ("sha256", [], "sha256 must be an object"),
        ("sha256", {"classifier/config.json": 5}, "classifier/config.json must be a text, got 5"),
    ],
)
def test_a_field_of_a_wrong_type_in_an_unsealed_manifest_is_one_line(earlier, key, value, message) -> None:
    manifest = json.loads((earlier / "serving.json").read_text())
    (earlier / "serving.json").write_text(json.dumps({**manifest, key: value}))
    with pytest.raises(ArtifactError, match=message):
        read(earlier)
    del manifest[key]
    (earlier / "serving.json").write_text(json.dumps(manifest))
    with pytest.raises(ArtifactError, match=f"has no '{key}'"):
        read(earlier)
