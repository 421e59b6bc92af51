"""Folders of models that are not complete or not a friend's, for everything that loads one."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from common.errors import MissingInputError, UserError
from harness.indexing.sentence_encoder import SentenceEncoder
from models.causal_lm import CausalLanguageModel
from models.cross_encoder import RelevanceEstimator
from models.dmqr.rewriter import RewriterModel
from models.dmqr.strategies import POOL
from models.dmqr.word_selector import WordSelector
from models.drrag.triple_classifier import TripleClassifier
from models.rerag.parts import load_generator
from tests.helpers.tiny_lm import save_plain_lm

LOADERS: dict[str, tuple[str, Callable[[str], object]]] = {
    "DR-RAG, converted": ("bert", lambda folder: TripleClassifier.build(folder, 64)),
    "DR-RAG": ("big_bird", lambda folder: TripleClassifier.build(folder, 64)),
    "an estimator, T5": ("t5", lambda folder: RelevanceEstimator.build(folder, 64)),
    "an estimator, encoder": ("bert", lambda folder: RelevanceEstimator.build(folder, 64)),
    "a generator": ("t5", load_generator),
    "a rewriter, T5": ("t5", lambda folder: RewriterModel.build(folder, 40, 20, POOL)),
    "a rewriter, LM": ("lm", lambda folder: RewriterModel.build(folder, 40, 20, POOL)),
    "a language model": ("lm", CausalLanguageModel.build),
    "an extractive rewriter": ("bert", lambda folder: WordSelector.build(folder, 64)),
    "dense retrieval": ("bert", lambda folder: SentenceEncoder(folder, "cpu")),
}


@pytest.fixture(scope="module")
def families(checkpoints, tmp_path_factory) -> dict[str, Path]:
    return {**checkpoints, "lm": save_plain_lm(tmp_path_factory.mktemp("lm") / "plain", steps=1)}


def without_words(folder: Path) -> None:
    for file in folder.iterdir():
        if file.name not in ("config.json", "generation_config.json", "model.safetensors", "tokenizer_config.json"):
            file.unlink()


@pytest.mark.parametrize("name", LOADERS)
def test_a_folder_without_words_is_refused(name, families, tmp_path) -> None:
    family, load = LOADERS[name]
    without_words(shutil.copytree(families[family], tmp_path / "model"))
    with pytest.raises(MissingInputError, match=r"model has no tokenizer\.json"):
        load(str(tmp_path / "model"))


@pytest.mark.parametrize("name", LOADERS)
def test_a_tokenizer_of_another_model_is_refused(name, families, tmp_path) -> None:
    family, load = LOADERS[name]
    folder = shutil.copytree(families[family], tmp_path / "model")
    file = folder / "tokenizer.json"
    tokenizer = json.loads(file.read_text())
    more = {f"further{number}": 100_000 + number for number in range(2_000)}
    if isinstance(tokenizer["model"]["vocab"], dict):
        tokenizer["model"]["vocab"] |= more
    else:
        tokenizer["model"]["vocab"] += [[word, -9.0] for word in more]
    file.write_text(json.dumps(tokenizer))
    with pytest.raises(UserError, match=r"its tokenizer has 2,\d+ tokens.*save the tokenizer that belongs to it"):
        load(str(folder))


@pytest.mark.parametrize("name", LOADERS)
def test_no_code_of_a_folder_is_run(name, families, tmp_path, monkeypatch) -> None:
    family, load = LOADERS[name]
    folder = shutil.copytree(families[family], tmp_path / "model")
    ran = tmp_path / "ran"
    (folder / "own.py").write_text(f"open({str(ran)!r}, 'w')\n")
    for file in (folder / "config.json", folder / "tokenizer_config.json"):
        auto_map = {"AutoConfig": "own.Own", "AutoTokenizer": [None, "own.Own"], "AutoModel": "own.Own"}
        written = json.loads(file.read_text())
        file.write_text(json.dumps({**written, "model_type": "own", "tokenizer_class": "Own", "auto_map": auto_map}))
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    with pytest.raises(UserError, match="code in a model's folder is not run"):
        load(str(folder))
    assert not ran.exists()
