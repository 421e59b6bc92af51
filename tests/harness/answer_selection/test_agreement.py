"""Selections without a model, worked out by hand: agreement, the oracle, the estimator's probability.

Refusals and ties.
"""

import numpy as np
import pytest

from common.errors import UserError
from common.records import Answer, Passage, Question, Ranked
from harness.answer_selection.agreement import NO_ANSWER, ONLY_ONE, Agreement
from harness.answer_selection.answer_encoder import AnswerEncoder
from harness.answer_selection.answer_texts import is_refusal
from harness.answer_selection.estimator import EstimatedRelevance
from harness.answer_selection.oracle import Oracle
from harness.interfaces import AnswerSelector
from tests.helpers.table_encoder import TableEncoder

QUESTION = Question("q", "who?", answers=("gold", "golden"))
# cosines: A and B 0.8, A and C 0, B and C 0.6; the gold answer is nearest to C (0.96), "golden" to A (0.6)
VECTORS = {
    "A": (1, 0, 0), "B": (0.8, 0.6, 0), "C": (0, 1, 0), "unanswerable": (0, 0, 1), "I don't know.": (0, 0, 1),
    "gold": (0, 0.96, 0.28), "golden": (0.6, 0, 0.8),
}  # fmt: skip
ENCODER = TableEncoder(VECTORS)


def answers(web: str, generated: str, none: str) -> dict[str, Answer]:
    texts = {"web": web, "generated": generated, "none": none}
    return {source: Answer("q", text, ()) for source, text in texts.items()}


def test_agreement_takes_the_answer_nearest_to_the_other_two() -> None:
    selector = Agreement(loaded=ENCODER)
    assert isinstance(selector, AnswerSelector)
    chosen, other = selector.choose([QUESTION, QUESTION], [answers("A", "B", "C"), answers("C", "A", "B")])
    assert chosen.source == "generated"
    assert chosen.scores == {"web": 0.4, "generated": 0.7, "none": 0.3}
    assert chosen.why == "nearest to the answers of web and none: mean cosine 0.700"
    assert other.source == "none"


@pytest.mark.parametrize(
    ("texts", "source"),
    [
        (("C", "A", "A"), "generated"),  # two equal answers against one
        (("A", "A", "C"), "web"),
        (("A", "C", "A"), "web"),
        (("A", "B", ""), "web"),  # two answers are always as near to each other
        (("", "B", "C"), "generated"),
        (("A", "A", "A"), "web"),
    ],
)
def test_ties_go_by_the_order_of_the_sources(texts: tuple[str, str, str], source: str) -> None:
    (chosen,) = Agreement(loaded=ENCODER).choose([QUESTION], [answers(*texts)])
    assert chosen.source == source
    assert "the first of equal ones" in chosen.why


def test_refusals_take_part_only_among_themselves() -> None:
    selector = Agreement(loaded=ENCODER)
    given = [
        answers("unanswerable", "B", "I don't know."),  # by cosine the two refusals agree
        answers("unanswerable", "", "I don't know."),
        answers("", "", "C"),
        answers("", "", ""),
    ]
    one, two, alone, nothing = selector.choose([QUESTION] * 4, given)
    assert (one.source, one.why) == ("generated", ONLY_ONE)
    assert two.source == "web"
    assert (alone.source, alone.why, alone.scores) == ("none", ONLY_ONE, {})
    assert (nothing.source, nothing.why) == ("web", NO_ANSWER)


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
    assert selector.uses_gold
    assert "gold" in selector.name
    (chosen,) = selector.choose([QUESTION], [answers("A", "B", "C")])
    assert chosen.source == "none"
    assert chosen.scores == {"web": 0.6, "generated": 0.576, "none": 0.96}
    second = Question("q", "who?", answers=("golden",))
    assert selector.choose([second], [answers("A", "B", "C")])[0].source == "web"
    with pytest.raises(UserError, match="no gold answer"):
        selector.choose([Question("x", "who?")], [answers("A", "B", "C")])


def with_probability(text: str, *probabilities: float) -> Answer:
    """As `harness.readers.t5.ContextReader` notes it."""
    contexts = [{"id": str(place), "probability": p} for place, p in enumerate(probabilities)]
    hits = tuple(Ranked(Passage.of("", f"text {place}"), 0.0) for place in range(len(probabilities)))
    return Answer("q", text, hits, notes={"contexts": contexts, "candidates": {}})


def test_the_estimator_takes_the_most_relevant_context_or_none() -> None:
    selector = EstimatedRelevance(threshold=0.5)
    sure = {
        "web": with_probability("A", 0.1, 0.7),
        "generated": with_probability("B", 0.8, 0.2),
        "none": Answer("q", "C", ()),
    }
    doubtful = {
        "web": with_probability("A", 0.3),
        "generated": with_probability("B", 0.4),
        "none": Answer("q", "C", ()),
    }
    no_context = {**doubtful, "none": Answer("q", "", ())}
    chosen = selector.choose([QUESTION] * 3, [sure, doubtful, no_context])
    assert [each.source for each in chosen] == ["generated", "none", "generated"]
    assert chosen[0].scores == {"web": 0.7, "generated": 0.8, "none": 0.5}
    assert chosen[1].why == "no context reaches P(relevant) 0.500"
    unnoted = {"web": Answer("q", "A", (Ranked(Passage.of("", "text"), 0.0),)), "none": Answer("q", "C", ())}
    with pytest.raises(UserError, match="the reader notes none"):
        selector.choose([QUESTION], [unnoted])


def test_the_encoder_of_answers_gives_cosines_of_the_sentence_encoder(encoder_folder: str, encoder) -> None:
    ours = AnswerEncoder(encoder_folder, "cpu")
    texts = ["amber basin", "cedar", "amber  basin", "delta ember fjord"]
    (found,) = ours.cosines([texts])
    vectors = encoder.encode_passages(texts)
    np.testing.assert_allclose(found, vectors @ vectors.T, atol=2e-6)
    assert found[0, 3] == found[2, 3]  # equal texts have exactly equal cosines
    one, other = ours.cosines([["cedar"], texts])
    assert one.shape == (1, 1)
    assert (other == found).all()
    assert ours.cosines([[]])[0].shape == (0, 0)


def test_a_text_is_encoded_once_in_all_calls(encoder_folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, given = AnswerEncoder(encoder_folder, "cpu"), []
    encode = ours._encoder.encode_passages
    monkeypatch.setattr(ours._encoder, "encode_passages", lambda texts: given.append(list(texts)) or encode(texts))
    first = ours.cosines([["cedar", "amber"], ["cedar"]])
    again = ours.cosines([["amber", "delta"], ["cedar", "amber"]])
    assert given == [["cedar", "amber"], ["delta"]]
    assert (again[1] == first[0]).all()
    monkeypatch.setattr("harness.answer_selection.answer_encoder.MAX_KNOWN", 2)
    ours.cosines([["delta"]])
    assert given[2:] == [["delta"]]  # the known ones are forgotten, so that memory is bounded
