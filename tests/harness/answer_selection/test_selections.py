"""Selections without a fit, worked out by hand: the oracle, the most relevant context, refusals and ties."""

import numpy as np
import pytest

from common.records import Answer, Passage, Question, Ranked
from harness.answer_selection.answer_encoder import AnswerEncoder
from harness.answer_selection.answer_texts import is_refusal
from harness.answer_selection.estimator import EstimatedRelevance
from harness.answer_selection.oracle import Oracle
from tests.helpers.table_encoder import TableEncoder

QUESTION = Question("q", "who?", answers=("gold", "golden"))
# cosines: A and B 0.8, A and C 0, B and C 0.6; the gold answer is nearest to C (0.96), "golden" to A (0.6)
VECTORS = {
    "A": (1, 0, 0), "B": (0.8, 0.6, 0), "C": (0, 1, 0), "unanswerable": (0, 0, 1), "I don't know.": (0, 0, 1),
    "gold": (0, 0.96, 0.28), "golden": (0.6, 0, 0.8),
}  # fmt: skip
ENCODER = TableEncoder(VECTORS)


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("unanswerable", True), ("I don't know", True), ("I do not know the answer.", True),
        ("Not mentioned in the text.", True), ("Cannot be determined", True), ("N/A", True), ("none", True),
        ("It is unknown", True), ("Nonesuch", False), ("The Unknown Soldier", False), ("Knox", False), ("no", False),
        ("No Country for Old Men", False), ("Iknow", False), ("", False),
    ],
)  # fmt: skip
def test_refusals_are_told_from_answers(text: str, refused: bool) -> None:
    assert is_refusal(text) == refused


def test_the_oracle_takes_the_answer_nearest_to_the_gold_answer() -> None:
    selector = Oracle(loaded=ENCODER)
    assert (selector.uses_gold, "gold" in selector.name) == (True, True)
    given = {s: Answer("q", text, ()) for s, text in (("web", "A"), ("generated", "B"), ("none", "C"))}
    first, second = selector.choose([QUESTION, Question("q", "who?", answers=("golden",))], [given, given])
    assert (first.source, second.source) == ("none", "web")
    assert first.scores == {"web": 0.6, "generated": 0.576, "none": 0.96}


def with_probability(text: str, *probabilities: float) -> Answer:
    """As `harness.readers.t5.ContextReader` notes it."""
    contexts = [{"id": str(place), "probability": p} for place, p in enumerate(probabilities)]
    hits = tuple(Ranked(Passage.of("", f"text {place}"), 0.0) for place in range(len(probabilities)))
    return Answer("q", text, hits, notes={"contexts": contexts, "candidates": {}})


@pytest.mark.parametrize(
    ("web", "generated", "none", "source", "scores"),
    [
        (("A", 0.1, 0.7), ("B", 0.8, 0.2), "C", "generated", {"web": 0.7, "generated": 0.8}),
        (("A", 0.02), ("B", 0.01), "C", "web", {"web": 0.02, "generated": 0.01}),  # without a context only at the last
        (("A", 0.4), ("B", 0.4), "C", "web", {"web": 0.4, "generated": 0.4}),  # ties by the order of the sources
        (("",), ("B", 0.0), "C", "generated", {"generated": 0.0}),
        (("A",), ("B", 0.0), "C", "generated", {"generated": 0.0}),  # known, however little, before unknown
        (("A",), ("B",), "C", "web", {}),  # nothing is known
        (("unanswerable", 0.9), ("B", 0.1), "", "generated", {}),  # a refusal is no answer beside one
        (("unanswerable", 0.1), ("I don't know.", 0.2), "", "generated", {"web": 0.1, "generated": 0.2}),
        (("unanswerable", 0.9), ("",), "C", "none", {}),
        (("",), ("",), "", "web", {}),
    ],
)  # fmt: skip
def test_the_most_relevant_context_is_taken(web, generated, none, source: str, scores: dict[str, float]) -> None:
    given = {"web": with_probability(*web), "generated": with_probability(*generated), "none": Answer("q", none, ())}
    (chosen,) = EstimatedRelevance().choose([QUESTION], [given])
    assert (chosen.source, chosen.scores) == (source, scores)


def test_the_encoder_of_answers_gives_cosines_of_the_sentence_encoder(encoder_folder, encoder, monkeypatch) -> None:
    ours = AnswerEncoder(encoder_folder, "cpu")
    texts = ["amber basin", "cedar", "amber  basin", "delta ember fjord"]
    (found,) = ours.cosines([texts])
    vectors = encoder.encode_passages(texts)
    np.testing.assert_allclose(found, vectors @ vectors.T, atol=2e-6)
    assert found[0, 3] == found[2, 3]  # equal texts have exactly equal cosines
    one, other = ours.cosines([["cedar"], texts])
    assert one.shape == (1, 1)
    assert (other == found).all()
    monkeypatch.setattr("harness.answer_selection.answer_encoder.MAX_KNOWN", 2)  # the known ones are forgotten
    assert (ours.cosines([texts])[0] == found).all()
    assert ours.cosines([[]])[0].shape == (0, 0)
