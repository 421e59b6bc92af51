"""Scores that exported models give to a fixed set of texts, as a user of the serving folder computes them."""

from collections.abc import Callable
from pathlib import Path

import torch

from common.records import Passage
from models.dmqr.rewriter import RewriterModel
from models.dmqr.word_selector import WordSelector
from models.drrag.triple_classifier import TripleClassifier
from models.rerag.model import ReRagModel

QUESTIONS = ("Which company financed the film?", "Where was the author of the novel born?", "Who?")
PASSAGES = (
    Passage.of("The Patient Forestry", "The Patient Forestry is a film of 1987. It was financed by Redum Company."),
    Passage.of("Isaac Meadov", "Isaac Meadov is an entrepreneur from Bramblegmark; he lives in Larkholm. " * 6),
    Passage.of("", "A text without a title: naïve ﬁnance, 42 °C.\u200b"),
    Passage.of("[SEP] </s>", "Marks of tokenizers such as <extra_id_0> and [CLS] stand in the text."),
)
ANSWERS = ("Redum Company", "Larkholm", "no")
PAIRS = [(question, passage) for question in QUESTIONS for passage in PASSAGES]
TRIPLES = [(q, *pair) for q in QUESTIONS for pair in zip(PASSAGES, PASSAGES[1:] + PASSAGES[:1], strict=True)]


def _triples(serving: Path) -> list[float]:
    return list(TripleClassifier.load(serving, "cpu", precision="fp32").probabilities(TRIPLES))


def _rerag(serving: Path) -> list[float]:
    model = ReRagModel.load(serving, "cpu", precision="fp32")
    found: list[float] = []
    if model.estimator is not None:
        found += model.estimator.scores(PAIRS)
    if model.generator is not None:
        packed = model.generator.encode.packed
        rows = [(q, PASSAGES if packed else PASSAGES[:1]) for q in QUESTIONS]
        ids, attention = model.generator.encode.pad(model.generator.encode(rows))
        with torch.inference_mode():
            found += model.generator(ids, attention, model.generator.labels(list(ANSWERS))).flatten().tolist()
    return found


def _rewriter(serving: Path) -> list[float]:
    rewriter = RewriterModel.load(serving, "cpu", "fp32")
    found = []
    for strategy in sorted(rewriter.strategies)[:2]:
        inputs = [ids for ids in rewriter.encode([rewriter.task(q, strategy) for q in QUESTIONS]) if ids]
        pairs = [(ids, target) for ids in inputs for target in rewriter.encode.targets(ANSWERS)]
        with torch.inference_mode():
            found += rewriter(*rewriter.batch(*zip(*pairs, strict=True))).sum(dim=1).tolist()
    return found


def _words(serving: Path) -> list[float]:
    selector = WordSelector.load(serving, "cpu", "fp32")
    pairs = [pair for pair in selector.encode(PAIRS) if pair is not None]
    with torch.inference_mode():
        log_odds = selector(*selector.encode.pad(pairs))
    return [
        value
        for row, pair in zip(log_odds, pairs, strict=True)
        for word in pair.question_words
        for value in row[word.position].tolist()
    ]


_KINDS: dict[str, Callable[[Path], list[float]]] = {
    "drrag": _triples, "rerag": _rerag, "reader": _rerag, "rewriter": _rewriter,
    "extractive": _words,
}  # fmt: skip


def scores(run: str, serving: Path) -> list[float]:
    """Scores of the texts above by the model that a run has exported."""
    return _KINDS[run.split("_")[0]](serving)
