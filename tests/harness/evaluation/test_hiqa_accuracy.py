"""Accuracy and adequacy of HiQA's rows: hand-worked by exact match and by a judge with known rules.

What is not measured says so.
"""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from common.chat import Chat, Reply
from common.records import Answer, Question
from harness.evaluation.answer_scores import Bootstrap
from harness.evaluation.hiqa.accuracy import answer_tables_of_rows, exact_accuracy
from harness.evaluation.judge import Judge
from harness.evaluation.judging.tables import NO_JUDGE, NO_READER, NOT_ASKED_FOR
from harness.evaluation.study import Settings
from harness.evaluation.tables import Table

SETTINGS = Settings("flashrag", "squad", (1,), None, Bootstrap(50), Path("unused"))
QUESTIONS = [
    Question("1", "Which is right? A) 4 kg B) 5 kg", ("B", "B) 5 kg"), kind="choice"),
    Question("2", "Which is right? A) 6 kg B) 7 kg", ("A", "A) 6 kg"), kind="choice"),
    Question("3", "How much are both?", ("9 kg",), kind="calculation"),
    Question("4", "How is it cleaned?", ("with water and soap",), kind="descriptive"),
    Question("5", "Unknown?", (), kind="choice"),
]
ROWS = {
    "HCA": ["B) 5 kg.", "a", "9 kg", "with water", "A"],
    "other": ["A", "A", "", "with sand", "A"],
    "third": ["B", "B", "9 kg", "with water and soap", "A"],
}


def answers(rows: dict[str, list[str]]) -> dict[str, list[Answer]]:
    return {
        name: [Answer(question.id, text, ()) for question, text in zip(QUESTIONS, texts, strict=True)]
        for name, texts in rows.items()
    }


class RuleLm:
    """Correct if the answer is an accepted one, partly correct if it is the beginning of one; the longer the better."""

    name = "rules"

    def reply(self, chats: Sequence[Chat]) -> list[Reply]:
        return [Reply(json.dumps(self._verdict(chat.messages[-1].content))) for chat in chats]

    def _verdict(self, asked: str) -> dict[str, object]:
        if shown := re.findall(r'<answer number="\d+">(.*)</answer>', asked):
            lengths = [0 if text == "(empty)" else len(text) for text in shown]
            return {"reason": "so", "ranking": sorted(range(1, len(shown) + 1), key=lambda n: (-lengths[n - 1], n))}
        (golds,) = re.findall(r"<accepted_answers>(.*)</accepted_answers>", asked)
        (answer,) = re.findall(r"<answer>(.*)</answer>", asked)
        accepted = golds.lower().split(" | ")
        given = answer.lower().rstrip(".")
        partly = any(gold.startswith(given) for gold in accepted)
        verdict = "correct" if given in accepted else "partly correct" if partly else "incorrect"
        return {"reason": "so", "verdict": verdict}


def judged(*verdicts: str) -> Settings:
    return replace(SETTINGS, judge=Judge(RuleLm(), verdicts or ("answers", "ranking")))  # type: ignore[arg-type]


def by_name(tables: Sequence[Table]) -> dict[str, Table]:
    return {table.name: table for table in tables}


def values(table: Table) -> dict[str, list[float]]:
    return {name: [math.nan if cell is None else cell.value for cell in cells] for name, cells in table.rows.items()}


def test_exact_match_counts_for_kinds_with_one_right_answer_alone() -> None:
    tables = by_name(answer_tables_of_rows(answers(ROWS), QUESTIONS, SETTINGS))
    exact = tables["accuracy %, exact match"]
    assert exact.columns == ("all (3)", "calculation (1)", "choice (2)")  # neither descriptive nor without gold answers
    assert values(exact) == {
        "HCA": pytest.approx([100, 100, 100]), "other": pytest.approx([100 / 3, 0, 50]),
        "third": pytest.approx([200 / 3, 100, 50]),
    }  # fmt: skip
    for absent in ("accuracy %, judged", "adequacy"):
        assert [cell.reason for cells in tables[absent].rows.values() for cell in cells if cell] == [NO_JUDGE]
    differences = tables["answers, differences"]
    assert differences.columns == ("accuracy %, exact match",)
    assert values(differences) == {"HCA - other": pytest.approx([200 / 3]), "HCA - third": pytest.approx([100 / 3])}


def test_the_letter_a_is_an_answer_and_no_article() -> None:
    several = Question("6", "Which are right?", ("A, C", "A and C", "AC"), kind="choice")
    for text, credit in (("a, c", 100), ("C", 0), ("A and C.", 100), ("", 0), ("C, A", 0)):
        assert exact_accuracy({"row": [Answer("6", text, ())]}, [several])["row"].tolist() == [credit]


def test_signs_and_worked_solutions() -> None:
    sign = Question("7", "It rains.", ("true", "√"), kind="true or false")
    for text, credit in (("√", 100), ("True.", 100), ("\u00d7", 0), ("...", 0)):
        assert exact_accuracy({"row": [Answer("7", text, ())]}, [sign])["row"].tolist() == [credit]
    long = Question(
        "8", "How much?", ("first the one of them, then the other, and both give 9 kg",), kind="calculation"
    )
    assert np.isnan(exact_accuracy({"row": [Answer("8", "9 kg", ())]}, [long])["row"]).all()


def test_a_judge_gives_half_credit_and_ranks() -> None:
    tables = by_name(answer_tables_of_rows(answers(ROWS), QUESTIONS, judged()))
    accuracy = tables["accuracy %, judged"]
    assert accuracy.columns == ("all (4)", "calculation (1)", "choice (2)", "descriptive (1)")
    assert values(accuracy) == {
        "HCA": pytest.approx([87.5, 100, 100, 50]), "other": pytest.approx([25, 0, 50, 0]),
        "third": pytest.approx([75, 100, 50, 100]),
    }  # fmt: skip
    adequacy = values(tables["adequacy"])
    assert adequacy["HCA"][1] == 2.5  # calculation: two equal answers share the first two of three ranks
    assert adequacy["other"][1] == 1
    assert tables["adequacy"].columns[-1] == "descriptive (1)"
    assert [adequacy[name][-1] for name in ROWS] == [2, 1, 3]  # "with water", "with sand", "with water and soap"
    assert "judge costs of the rows" in tables
    shuffled = [
        by_name(answer_tables_of_rows(answers({name: ROWS[name] for name in order}), QUESTIONS, judged()))
        for order in permutations(ROWS)
    ]
    for each in shuffled:  # no row gains by its place
        assert values(each["adequacy"]) == adequacy
        assert values(each["accuracy %, judged"]) == values(accuracy)


def test_what_is_not_measured_says_why() -> None:
    unread = answers(dict.fromkeys(ROWS, [""] * 5))
    found = answer_tables_of_rows(unread, QUESTIONS, judged())
    assert {cell.reason for table in found for cells in table.rows.values() for cell in cells if cell} == {NO_READER}
    tables = by_name(answer_tables_of_rows(answers(ROWS), QUESTIONS, judged("answers")))
    assert [cell.reason for cells in tables["adequacy"].rows.values() for cell in cells if cell] == [NOT_ASKED_FOR]
    one = by_name(answer_tables_of_rows(answers({"HCA": ROWS["HCA"]}), QUESTIONS, judged()))
    assert "answers, differences" not in one
    open_only = answer_tables_of_rows(
        {"HCA": answers(ROWS)["HCA"][3:4], "other": answers(ROWS)["other"][3:4]}, QUESTIONS[3:4], SETTINGS
    )
    assert "no question of the kinds choice" in next(iter(open_only[0].rows.values()))[0].reason  # type: ignore[union-attr]
