"""Judging: adequacy by hand, the order shown to the judge, what is asked once, costs."""

import itertools
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.chat import Chat, Reply
from common.records import Passage, Question
from harness.evaluation.judge import Judge
from harness.evaluation.judging.system import adequacy, hit_and_precision, inverted_ranks
from harness.evaluation.judging.tables import costs_table
from harness.runtime.provenance import construct

VALID = '{"reason": "so", "relevant": true}'


def asked(number: int) -> Question:
    return Question(f"q{number}", f"question {number}")


class Alphabet:
    """A language model that ranks answers by their text, and notes in which order it was shown them."""

    name = "alphabet"

    def __init__(self, best: str = "") -> None:
        self.shown: list[list[str]] = []

    def reply(self, chats: Sequence[Chat]) -> list[Reply]:
        replies = []
        for chat in chats:
            lines = chat.messages[-1].content.splitlines()
            texts = [line.partition(">")[2].removesuffix("</answer>") for line in lines if line.startswith("<answer ")]
            self.shown.append(texts)
            order = sorted(range(1, len(texts) + 1), key=lambda number: texts[number - 1])
            replies.append(Reply(f'{{"reason": "by text", "ranking": {order}}}'))
        return replies


def test_adequacy_by_hand() -> None:
    judge = Judge(Alphabet())
    texts = [["b", "a", "c"], ["a", "a", "b"], ["x", "x", "x"], ["c", "b", "c"]]
    adequacy_KN, verdicts = adequacy(judge, [asked(number) for number in range(4)], texts)
    assert adequacy_KN.T.tolist() == [[2, 3, 1], [2.5, 2.5, 1], [2, 2, 2], [1.5, 3, 1.5]]
    assert [verdict is None for verdict in verdicts] == [False, False, True, False]


def test_a_failed_order_is_undefined() -> None:
    class Refuses(Alphabet):
        def reply(self, chats: Sequence[Chat]) -> list[Reply]:
            return [Reply("I rank nothing.") for _ in chats]

    adequacy_KN, verdicts = adequacy(Judge(Refuses()), [asked(0)], [["a", "b"]])
    assert np.isnan(adequacy_KN).all()
    assert verdicts[0] is not None
    assert "no complete JSON object" in verdicts[0].failure


def test_the_order_in_which_answers_are_shown_favours_no_system() -> None:
    """A judge that prefers the first place gives each of three systems the first place in a third of the questions."""
    model = Alphabet()
    questions = [asked(number) for number in range(600)]
    texts = [["one", "two", "three"]] * len(questions)
    adequacy(Judge(model), questions, texts)
    firsts = [model.shown[number][0] for number in range(600)]
    assert all(abs(firsts.count(word) - 200) < 50 for word in ("one", "two", "three"))  # 4 standard deviations: 46
    assert len({tuple(each) for each in model.shown}) == 6
    again = Alphabet()
    adequacy(Judge(again), questions, [["three", "one", "two"]] * len(questions))
    assert again.shown == model.shown  # the order of the systems does not count


@given(st.lists(st.sampled_from("abc"), min_size=2, max_size=6))
def test_inverted_ranks_sum_to_the_ranks(texts: list[str]) -> None:
    for order in itertools.permutations(dict.fromkeys(texts)):
        values = inverted_ranks(texts, order)
        assert sum(values) == pytest.approx(len(texts) * (len(texts) + 1) / 2)
        assert all(values[i] > values[j] for i, one in enumerate(texts) for j, other in enumerate(texts)
            if order.index(one) < order.index(other))  # fmt: skip


def test_a_call_that_failed_is_made_again_by_the_next_run(tmp_path: Path) -> None:
    class Busy(Alphabet):
        number_of_replies = 1  # then it is busy

        def reply(self, chats: Sequence[Chat]) -> list[Reply]:
            left = self.number_of_replies
            return [Reply(VALID) if place < left else Reply("", "503: busy") for place in range(len(chats))]

    cases = [(asked(number), Passage.of("t", "x")) for number in range(2)]
    judge = Judge(construct(Busy))
    judge.keep_in(tmp_path)
    assert [each.failure for each in judge.on_passages(cases)] == ["", "503: busy"]
    again = Judge(construct(Busy))
    again.keep_in(tmp_path)
    assert [each.failure for each in again.on_passages(cases)] == ["", ""]  # one reused, one asked


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
    class Priced(Alphabet):
        def reply(self, chats: Sequence[Chat]) -> list[Reply]:
            texts = ["nothing" if "3" in c.messages[0].content + c.messages[1].content else VALID for c in chats]
            return [Reply(text, usd=0.5, prompt_tokens=7, reply_tokens=2, retries=1) for text in texts]

    judge, passage = Judge(Priced(), repairs=2), Passage.of("t", "x")
    verdicts = judge.on_passages([(asked(number), passage) for number in (1, 2, 3, 1)])
    table = costs_table({"passages": verdicts, "again": verdicts[:2]})
    rows = {
        name: {column: cell.value for column, cell in zip(table.columns, cells, strict=True) if cell}
        for name, cells in table.rows.items()
    }
    assert verdicts[2].fields is None
    assert rows["all"] == rows["passages"]
    expected = {
        "verdicts": 3,
        "failed": 1,
        "calls": 5,
        "repairs": 2,
        "tokens read": 35,
        "tokens written": 10,
        "US dollars": 2.5,
    }
    assert {name: rows["passages"][name] for name in expected} == expected
    assert rows["again"]["calls"] == 2
