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

LOADERS: dict[str, tuple[str, Callable[[str], object]]] = {
    "DR-RAG, converted": ("bert", lambda folder: TripleClassifier.build(folder, 64)),
    "DR-RAG": ("big_bird", lambda folder: TripleClassifier.build(folder, 64)),
    "an estimator, T5": ("t5", lambda folder: RelevanceEstimator.build(folder, 64)),
    "an estimator, encoder": ("bert", lambda folder: RelevanceEstimator.build(folder, 64)),
    "a generator": ("t5", load_generator),
    "a rewriter, T5": ("t5", lambda folder: RewriterModel.build(folder, 40, 20, POOL)),
    "a rewriter, LM": ("plain", lambda folder: RewriterModel.build(folder, 40, 20, POOL)),
    "a language model": ("plain", CausalLanguageModel.build),
    "an extractive rewriter": ("bert", lambda folder: WordSelector.build(folder, 64)),
    "dense retrieval": ("bert", lambda folder: SentenceEncoder(folder, "cpu")),
}


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


@pytest.mark.parametrize("name", LOADERS)
@pytest.mark.parametrize(
    ("change", "error", "word"),
    [
        (without_words, MissingInputError, "tokenizer.json"),
        (with_other_words, UserError, "its tokenizer has 2,"),
        (with_code, UserError, "code"),  # which is not run
    ],
)
def test_it_is_refused(name, change, error, word, families, tmp_path, monkeypatch) -> None:
    family, load = LOADERS[name]
    folder = Path(shutil.copytree(families[family], tmp_path / "model"))
    change(folder)
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    with pytest.raises(error, match=word):
        load(str(folder))
    assert not (folder / "ran").exists()
