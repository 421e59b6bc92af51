"""A question with earlier turns becomes one that stands alone, and so do all its queries."""

from common.records import Question
from common.rewrites import Rewrites
from harness.rewriters.dialogue import stand_alone

TURNS = ("who wrote hamlet", "Shakespeare", "", "when")
LATER = Question("q", "where was  he born", history=TURNS)
TOGETHER = "who wrote hamlet Shakespeare when where was he born"


def test_the_general_query_stands_for_the_question() -> None:
    made = Rewrites(
        {"kwr": (LATER.text,), "gqr": ("birthplace of Shakespeare",)}, {"kwr": "no line"}, "so", {"tokens": 3.0}
    )
    question, rewrites = stand_alone(LATER, made)
    assert question == Question("q", "birthplace of Shakespeare")
    assert rewrites == Rewrites(
        {"kwr": ("birthplace of Shakespeare",), "gqr": ("birthplace of Shakespeare",)}, {"kwr": "no line"}, "so",
        {"tokens": 3.0}
    )  # fmt: skip


def test_without_a_general_query_the_turns_stand_before_the_question() -> None:
    for made in (
        Rewrites({"gqr": (LATER.text,), "kwr": ("Shakespeare, birth",)}, {"gqr": "no line"}),
        Rewrites({"kwr": ("Shakespeare, birth",)}),
    ):
        question, rewrites = stand_alone(LATER, made)
        assert (question.text.split(), question.history) == (TOGETHER.split(), ())
        assert rewrites is not None
        assert rewrites.queries == {
            name: (TOGETHER,) if name == "gqr" else ("Shakespeare, birth",) for name in made.queries
        }
    assert stand_alone(LATER, None)[0].text.split() == TOGETHER.split()
    assert stand_alone(question, rewrites) == (question, rewrites)  # without turns
