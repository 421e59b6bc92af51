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

VALID = '{"reason": "so", "relevant": true}'


def asked(number: int) -> Question:
    return Question(f"q{number}", f"question {number}")


def test_a_call_that_failed_is_made_again_by_the_next_run(tmp_path: Path) -> None:
    class Busy:
        name = "busy"
        number_of_replies = 1  # then it is busy

        def reply(self, chats: Sequence[Chat]) -> list[Reply]:
            left = self.number_of_replies
            return [Reply(VALID) if place < left else Reply("", "503: busy") for place in range(len(chats))]

    cases = [(asked(number), Passage.of("t", "x")) for number in range(2)]
    judge = Judge(construct(Busy))
    judge.verdicts = Memo(tmp_path).of("verdicts", judge)
    assert [each.failure for each in judge.on_passages(cases)] == ["", "503: busy"]
    again = Judge(construct(Busy))
    again.verdicts = Memo(tmp_path).of("verdicts", again)
    assert [each.failure for each in again.on_passages(cases)] == ["", ""]  # one reused, one asked


def test_a_judge_whose_model_is_not_known_remembers_in_memory_alone(tmp_path: Path) -> None:
    class Unknown:
        name = "unknown"

        def reply(self, chats: Sequence[Chat]) -> list[Reply]:
            return [Reply(VALID) for _ in chats]

    judge = construct(Judge, llm=Unknown())
    judge.verdicts = Memo(tmp_path).of("verdicts", judge)
    assert [each.failure for each in judge.on_passages([(asked(0), Passage.of("t", "x"))])] == [""]
    assert [*tmp_path.iterdir()] == []


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
    class Priced:
        name = "priced"

        def reply(self, chats: Sequence[Chat]) -> list[Reply]:
            texts = ["nothing" if "3" in c.messages[0].content + c.messages[1].content else VALID for c in chats]
            return [Reply(text, usd=0.5, prompt_tokens=7, reply_tokens=2, retries=1) for text in texts]

    judge, passage = Judge(Priced(), repairs=2), Passage.of("t", "x")
    verdicts = judge.on_passages([(asked(number), passage) for number in (1, 2, 3, 1)])
    table = judge_costs_table({"passages": verdicts, "again": verdicts[:2]})
    rows = {
        name: {column: cell.value for column, cell in zip(table.columns, cells, strict=True) if cell}
        for name, cells in table.rows.items()
    }
    assert verdicts[2].fields is None
    assert rows["all"] == rows["passages"]
    names = ("verdicts", "failed", "calls", "repairs", "tokens read", "tokens written", "US dollars")
    assert [rows["passages"][name] for name in names] == [3, 1, 5, 2, 35, 10, 2.5]
    assert rows["again"]["calls"] == 2
