"""Folders of models: sealed manifests, fp32 weights, no foreign code; what lacks or is damaged is refused."""

import json
import logging
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModel

from common.errors import ArtifactError, MissingInputError, UserError
from common.files import sha256
from common.sealed_json import write_sealed
from harness.indexing.sentence_encoder import SentenceEncoder
from models.causal_lm import CausalLanguageModel
from models.cross_encoder import RelevanceEstimator
from models.dmqr import word_selector, word_tokenizer
from models.dmqr.rewriter import RewriterModel
from models.dmqr.strategies import POOL
from models.dmqr.word_selector import WordSelector
from models.drrag.triple_classifier import FIELDS, KIND, TripleClassifier
from models.drrag.triple_tokenizer import TEXT_FORMAT
from models.loading import load_network, quiet
from models.lora import Lora, add_adapter
from models.rerag.model import ReRagModel
from models.rerag.parts import load_generator
from models.serving_manifest import read_manifest, write_manifest
from tests.helpers.half import saved_in_bf16
from tests.helpers.rerag_world import write_serving


def without(source: Path, folder: Path, part: str) -> Path:
    """A copy of a checkpoint without the weights whose names hold `part`."""
    shutil.copytree(source, folder)
    weights = load_file(source / "model.safetensors")
    kept = {name: value for name, value in weights.items() if part not in name}
    assert len(kept) < len(weights)
    save_file(kept, folder / "model.safetensors", {"format": "pt"})
    return folder


def test_a_new_head_is_told_in_one_line_and_an_unused_pooler_that_lacks_is_not(checkpoints, tmp_path, capfd) -> None:
    RelevanceEstimator.build(str(checkpoints["bert"]), 64)
    line = f"{checkpoints['bert']}: new head, from random weights: classifier.bias, classifier.weight.\n"
    assert capfd.readouterr() == ("", line)
    load_network(AutoModel, without(checkpoints["bert"], tmp_path / "bert", "pooler"))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("build", [TripleClassifier.build, RelevanceEstimator.build])
@pytest.mark.parametrize("family", ["bert", "big_bird"])
def test_a_checkpoint_that_lacks_encoder_weights_is_refused(build, family, checkpoints, tmp_path) -> None:
    folder = without(checkpoints[family], tmp_path / "torn", "layer.1.attention")
    with pytest.raises(ArtifactError, match=r"lacks \d+ weights of a \w+, such as .*layer\.1\.attention"):
        build(str(folder), 64)


def test_other_warnings_of_transformers_are_shown(caplog, monkeypatch) -> None:
    monkeypatch.setattr(logging.getLogger("transformers"), "propagate", True)
    with quiet():
        for said in ("this checkpoint is of another kind", "BertModel LOAD REPORT from: x"):
            logging.getLogger("transformers.modeling_utils").warning(said)
    assert caplog.messages == ["this checkpoint is of another kind"]


LOADERS: dict[str, Callable[[str], Any]] = {
    "classifier": lambda folder: TripleClassifier.build(folder, 64),
    "estimator": lambda folder: RelevanceEstimator.build(folder, 64),
    "generator": load_generator,
    "rewriter": lambda folder: RewriterModel.build(folder, 40, 20, POOL),
    "language model": CausalLanguageModel.build,
    "extractive rewriter": lambda folder: WordSelector.build(folder, 64),
    "sentence encoder": lambda folder: SentenceEncoder(folder, "cpu"),
}
ENCODERS = ("bert", "roberta", "big_bird")
CASES = [
    *(("classifier", family) for family in (*ENCODERS, "longformer")),
    *(("estimator", family) for family in (*ENCODERS, "t5")),
    *(("generator", "t5"), ("rewriter", "t5"), ("rewriter", "plain"), ("language model", "plain")),
    *(("extractive rewriter", "bert"), ("sentence encoder", "bert")),
]


def without_words(folder: Path) -> None:
    for file in folder.iterdir():
        if file.name not in ("config.json", "generation_config.json", "model.safetensors", "tokenizer_config.json"):
            file.unlink()


def with_other_words(folder: Path) -> None:
    file = folder / "tokenizer.json"
    tokenizer = json.loads(file.read_text())
    more = {f"further{number}": 100_000 + number for number in range(2_000)}
    if isinstance(tokenizer["model"]["vocab"], dict):
        tokenizer["model"]["vocab"] |= more
    else:
        tokenizer["model"]["vocab"] += [[word, -9.0] for word in more]
    file.write_text(json.dumps(tokenizer))


def with_code(folder: Path) -> None:
    (folder / "own.py").write_text(f"open({str(folder / 'ran')!r}, 'w')\n")
    for file in (folder / "config.json", folder / "tokenizer_config.json"):
        auto_map = {"AutoConfig": "own.Own", "AutoTokenizer": [None, "own.Own"], "AutoModel": "own.Own"}
        written = json.loads(file.read_text())
        file.write_text(json.dumps({**written, "model_type": "own", "tokenizer_class": "Own", "auto_map": auto_map}))


@pytest.mark.parametrize(("name", "family"), CASES)
def test_it_is_refused(name, family, families, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    for change, error, word in (
        (without_words, MissingInputError, "tokenizer.json"),
        (with_other_words, UserError, "its tokenizer has 2,"),
        (with_code, UserError, "code"),  # which is not run
    ):
        folder = Path(shutil.copytree(families[family], tmp_path / change.__name__))
        change(folder)
        with pytest.raises(error, match=word):
            LOADERS[name](str(folder))
        assert not (folder / "ran").exists()


@pytest.mark.parametrize(("name", "family"), [case for case in CASES if case[1] != "plain"])
def test_weights_are_fp32_and_the_files(checkpoints, tmp_path, name, family) -> None:
    folders = saved_in_bf16(checkpoints[family], tmp_path / "half"), checkpoints[family]
    loaded = [LOADERS[name](str(folder)) for folder in folders]
    made, plain = (each.model if name == "sentence encoder" else each for each in loaded)
    assert {p.dtype for p in made.parameters()} == {torch.float32}
    weights = dict(made.named_parameters())
    key = next(key for key in weights if "query" in key or "SelfAttention.q" in key)
    assert torch.equal(weights[key], weights[key].bfloat16().float())
    torch.testing.assert_close(weights[key], plain.state_dict()[key], rtol=2**-8, atol=1e-6)


def test_a_served_classifier_saved_in_bf16_is_trained_further_and_served_in_fp32(checkpoints, tmp_path) -> None:
    TripleClassifier.build(str(checkpoints["big_bird"]), 96).save(tmp_path / "whole")
    half = saved_in_bf16(tmp_path / "whole/classifier", tmp_path / "half/classifier")
    assert {p.dtype for p in TripleClassifier.build(str(half), 96).parameters()} == {torch.float32}
    write_manifest(half.parent, "triple_classifier", TEXT_FORMAT, 96, attention="auto", threshold=0.5)
    assert {p.dtype for p in TripleClassifier.load(half.parent, "cpu").parameters()} == {torch.float32}


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
    near_the_seal = [flip for flip in flips if key - 4 <= flip[0] < key + 9]
    for position, bit in [*random.Random(0).sample(flips, 400), *near_the_seal]:
        torn = bytearray(whole)
        torn[position] ^= 1 << bit
        file.write_bytes(torn)
        with pytest.raises(ArtifactError) as error:
            read(folder)
        assert "\n" not in str(error.value)
    file.write_bytes(whole)
    assert read(folder)["threshold"] == 0.25


def test_an_edited_threshold_is_refused(folder) -> None:
    manifest = json.loads((folder / "serving.json").read_text())
    for value in (0.26, "0.25", None, True):
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


WRONG = [("threshold", "0.5"), ("threshold", True), ("max_tokens", "256"), ("max_tokens", None), ("text_format", 1)]
WRONG += [("attention", "fusd"), ("sha256", []), ("sha256", {"classifier/config.json": 5})]


@pytest.mark.parametrize(("key", "value"), WRONG)
def test_a_field_of_a_wrong_type_in_an_unsealed_manifest_is_one_line(earlier, key, value) -> None:
    manifest = json.loads((earlier / "serving.json").read_text())
    named = next(iter(value)) if isinstance(value, dict) else key
    lacking = {name: given for name, given in manifest.items() if name != key}
    for wrong, said in (({**manifest, key: value}, f"{named} must be"), (lacking, f"has no '{key}'")):
        (earlier / "serving.json").write_text(json.dumps(wrong))
        with pytest.raises(ArtifactError, match=said):
            read(earlier)


def save(kind: str, models: dict[str, Path], folder: Path) -> None:
    """A serving folder of a kind."""
    if kind == "classifier":
        TripleClassifier.build(str(models["bert"]), 96).save(folder)
        write_manifest(folder, KIND, TEXT_FORMAT, 96, attention="auto", threshold=0.25)
    elif kind == "rerag":
        write_serving(models["t5"], folder)
    elif kind == "selector":
        WordSelector.build(str(models["bert"]), 48).save(folder)
        write_manifest(folder, word_selector.KIND, word_tokenizer.TEXT_FORMAT, 48)
    else:
        rewriter = RewriterModel.build(str(models["t5"]), 40, 20, POOL)
        add_adapter(rewriter.network, "base", Lora(4))
        rewriter.save(folder, ["gqr"], {})


SERVED: dict[str, Any] = {
    "classifier": TripleClassifier,
    "rerag": ReRagModel,
    "rewriter": RewriterModel,
    "selector": WordSelector,
}


@pytest.mark.parametrize("kind", SERVED)
def test_a_damaged_or_foreign_folder_of_every_kind_is_refused(kind, checkpoints, tmp_path) -> None:
    load, folder = SERVED[kind].load, tmp_path / "serving"
    with pytest.raises(MissingInputError):
        load(folder, "cpu")
    save(kind, checkpoints, folder)
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
