"""Judging: what is asked once, costs, hit rate and precision by hand."""

import math
from collections.abc import Sequence
from pathlib import Path

import pytest

from common.chat import Chat, Reply
from common.records import Passage, Question
from harness.evaluation.judge import Judge
from harness.evaluation.judging import hit_and_precision, judge_costs_table
from harness.runtime.memo import Memo
from harness.runtime.provenance import construct
from tests.helpers.studied import rows_of


class Priced:
    """Finds everything relevant, replies nonsense on the third question, and is busy after some replies of a call."""

    name = "priced"

    def __init__(self, replies: int = 9) -> None:
        self.replies = replies

    def reply(self, chats: Sequence[Chat]) -> list[Reply]:
        odd = ["question 3" in "".join(message.content for message in chat.messages) for chat in chats]
        texts = ["nothing" if each else '{"reason": "so", "relevant": true}' for each in odd]
        replies = [Reply(text, usd=0.5, prompt_tokens=7, reply_tokens=2, retries=1) for text in texts]
        return [each if place < self.replies else Reply("", "503: busy") for place, each in enumerate(replies)]


def cases(*numbers: int) -> list[tuple[Question, Passage]]:
    return [(Question(f"q{number}", f"question {number}"), Passage.of("t", "x")) for number in numbers]


def test_a_call_that_failed_is_made_again_by_the_next_run(tmp_path: Path) -> None:
    """A judge that is not known saves nothing."""
    for llm, failures in (
        (Priced(), ["", ""]),  # how it was made is not known
        (construct(Priced, replies=1), ["", "503: busy"]),
        (construct(Priced, replies=1), ["", ""]),  # one reused, one asked
    ):
        judge = construct(Judge, llm=llm)
        judge.verdicts = Memo(tmp_path).of("verdicts", judge)
        assert [each.failure for each in judge.on_passages(cases(0, 1))] == failures
        assert bool([*tmp_path.iterdir()]) is (llm.replies == 1)


@pytest.mark.parametrize(
    ("relevant", "expected"),
    [
        ([True, False], (1, 0.2)),
        ([False, False], (0, 0)),
        ([], (0, 0)),
        ([True, None], (1, math.nan)),
        ([False, None], (math.nan, math.nan)),
    ],
)
def test_hit_and_precision_by_hand(relevant: list[bool | None], expected: tuple[float, float]) -> None:
    """A failed verdict leaves open what it could change."""
    assert hit_and_precision(relevant, 5) == pytest.approx(expected, nan_ok=True)


def test_costs_of_all_rounds_are_summed_and_equal_requests_are_charged_once() -> None:
    verdicts = Judge(Priced(), repairs=2).on_passages(cases(1, 2, 3, 1))
    table = judge_costs_table({"passages": verdicts, "again": verdicts[:2]})
    rows = {
        name: dict(zip(table.columns, values, strict=True)) for name, values in rows_of([table], table.name).items()
    }
    assert verdicts[2].fields is None
    assert rows["all"] == rows["passages"]
    names = ("verdicts", "failed", "calls", "repairs", "tokens read", "tokens written", "US dollars")
    assert [rows["passages"][name] for name in names] == [3, 1, 5, 2, 35, 10, 2.5]
    assert rows["again"]["calls"] == 2
