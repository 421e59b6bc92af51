"""A question with earlier turns becomes one that stands alone, and so do all its queries."""

from common.records import Question
from common.rewrites import Rewrites
from harness.rewriters.dialogue import stand_alone

LATER = Question("q", "where was  he born", history=("who wrote hamlet", "Shakespeare", "", "when"))
TOGETHER = "who wrote hamlet Shakespeare when where was he born"


def test_the_general_query_stands_for_the_question() -> None:
    born = ("birthplace of Shakespeare",)
    made = Rewrites({"kwr": (LATER.text,), "gqr": born}, {"kwr": "no line"}, "so", {"tokens": 3.0})
    question, rewrites = stand_alone(LATER, made)
    assert question == Question("q", *born)
    assert rewrites == Rewrites({"kwr": born, "gqr": born}, {"kwr": "no line"}, "so", {"tokens": 3.0})


def test_without_a_general_query_the_turns_stand_before_the_question() -> None:
    birth = {"kwr": ("Shakespeare, birth",)}
    for made, general in (
        (Rewrites({"gqr": (LATER.text,), **birth}, {"gqr": "no line"}), {"gqr": (TOGETHER,)}),
        (Rewrites(birth), {}),
    ):
        question, rewrites = stand_alone(LATER, made)
        assert (question.text.split(), question.history) == (TOGETHER.split(), ())
        assert rewrites.queries == {**general, **birth}
    assert stand_alone(LATER, None)[0].text.split() == TOGETHER.split()
    assert stand_alone(question, rewrites) == (question, rewrites)  # without turns
