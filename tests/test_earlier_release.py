"""Serving folders that release 0.1 wrote load, and score as they did."""

import json
from pathlib import Path

import pytest

from datamodules.formats.reading import read_questions
from models.drrag.triple_classifier import TripleClassifier
from models.rerag.model import ReRagModel

RELEASE = Path(__file__).parent / "fixtures" / "release_0_1"
EXPECTED = json.loads((RELEASE / "expected.json").read_text())  # computed by that release
TOLERANCE = {"rel": 1e-4, "abs": 1e-5}  # fp32 on another processor; the scores differ by some 1e-3


def test_a_classifier_gives_the_same_probabilities() -> None:
    questions = list(read_questions("hotpotqa", str(RELEASE / "hotpotqa.json")))[:3]
    triples = [(q.text, q.passages[i], q.passages[i + 1]) for q in questions for i in range(3)]
    classifier = TripleClassifier.load(RELEASE / "checkpoints/drrag/serving", "cpu")
    assert classifier.probabilities(triples) == pytest.approx(EXPECTED["triple_probabilities"], **TOLERANCE)


def test_an_estimator_and_a_generator_say_the_same() -> None:
    model = ReRagModel.load(RELEASE / "checkpoints/rerag/serving", "cpu")
    assert model.estimator is not None
    assert model.generator is not None
    questions = list(read_questions("fid", str(RELEASE / "fid.json")))[:3]
    pairs = [(q.text, passage) for q in questions for passage in q.passages[:3]]
    assert model.estimator.scores(pairs) == pytest.approx(EXPECTED["relevance_nats"], **TOLERANCE)
    answers = model.generator.answers([(text, [passage]) for text, passage in pairs], 4)
    assert [text for text, _ in answers] == [text for text, _ in EXPECTED["answers"]]
    assert [logp for _, logp in answers] == pytest.approx([logp for _, logp in EXPECTED["answers"]], **TOLERANCE)
