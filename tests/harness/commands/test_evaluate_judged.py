"""`infer.py evaluate --judge`.

A judge that follows a rule judges one system and several, and its figures are those of a plain loop.
"""

import json
from collections.abc import Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from common.errors import INTERRUPTED
from common.files import sha256
from common.records import Passage
from harness.evaluation.judge import CREDIT
from harness.llm.prompts import Prompt
from harness.retrievers.bm25 import build_bm25
from tests.helpers.commands import Ended, command
from tests.helpers.layout_rows import FRESHQA, as_csv
from tests.helpers.reports import cells, measured_cells, questions, reasons, report
from tests.helpers.scripted_lm import GRADES, JUDGED, Judge, judge_options
from tests.helpers.tiny_lm import PLACES, VALUES, document, question

RETRIEVER = {"class_path": "harness.retrievers.bm25.Bm25Retriever", "init_args": {"index": "index"}}
ROWS = [
    {
        "_id": f"q{number}", "question": question("river", place), "answer": JUDGED[number % len(JUDGED)],
        "type": ("bridge", "comparison")[number % 2], "level": "hard", "supporting_facts": [[f"{place} 0", 0]],
        "context": [
            [f"{place} {other}", [document("river", place, JUDGED[(number + other * 3) % len(JUDGED)])]]
            for other in range(3)
        ],
    }
    for number, place in enumerate(PLACES[:10])
]  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten questions, an index of their passages, two systems, and a judge."""
    root = tmp_path_factory.mktemp("judged")
    build_bm25([Passage.of(title, text[0]) for row in ROWS for title, text in row["context"]], root / "index")
    for name, reader in (("first", "FirstPassage"), ("last", "LastPassage")):
        system = {
            "class_path": "harness.systems.retrieve_read.RetrieveRead",
            "init_args": {"retriever": RETRIEVER, "k": 3, "reader": f"tests.helpers.echo_reader.{reader}"},
        }
        (root / f"{name}.yaml").write_text(yaml.safe_dump({"system": system}))
    (root / "questions.json").write_text(json.dumps(ROWS))
    return root


def evaluate(place: Path, out: str, *more: str, systems: Sequence[str] = ("last",)) -> Ended:
    named = [word for system in systems for word in ("--config", f"{system}.yaml")]
    typed = ("--questions", "questions.json", "--out", out, "--resamples", "50", *judge_options(place / "judge"))
    return command(place, "infer.py", "evaluate", *named, *typed, "--judge.repairs", "0", *more)


@pytest.fixture(scope="module")
def single(place: Path) -> Path:
    ended = evaluate(place, "single")
    assert ended.code == 0, ended.err
    return place / "single"


def credits(records: list[dict[str, Any]]) -> np.ndarray:
    """(N,) credit of each answer, NaN where the verdict is invalid."""
    grades = [GRADES[VALUES.index(record["answer"]) % len(GRADES)] for record in records]
    return np.array([CREDIT.get(grade, np.nan) for grade in grades])


def relevance(records: list[dict[str, Any]]) -> np.ndarray:
    """(N, 3) whether each passage is relevant."""
    place_of = {title: VALUES.index(text[0].split()[-2]) for row in ROWS for title, text in row["context"]}
    return np.array([[place_of[hit["title"]] % 2 == 0 for hit in record["evidence"]] for record in records], float)


def correct(out: Path) -> np.ndarray:
    """(N,) what the records say of each answer, NaN where the verdict is invalid."""
    return np.array([np.nan if r["judged_correct"] is None else r["judged_correct"] for r in questions(out)])


def test_the_figures_are_those_of_a_plain_loop(single: Path) -> None:
    records, found = questions(single), cells(single)
    credit, relevant = credits(records), relevance(records)
    known = credit[~np.isnan(credit)]
    assert len({*known}) == 3
    assert len(known) < len(credit)
    assert 0 < relevant.mean() < 1
    expected = {
        "answers correct %": (known == 1).mean(), "answers correct %, half credit": known.mean(),
        "judged P@5 %": relevant.sum(axis=1).mean() / 5, "judged H@5 %": relevant.any(axis=1).mean(),
    }  # fmt: skip
    assert {row: value for (table, row, column), value in found.items() if (table, column) == ("judged", "mean")} == {
        row: pytest.approx(100 * value, rel=1e-5) for row, value in expected.items()
    }
    assert found["judged", "answers correct %", "questions"] == len(known)
    assert found["judged", "answers correct %", "failed verdicts"] == len(credit) - len(known)
    np.testing.assert_array_equal(correct(single), np.where(np.isnan(credit), np.nan, credit == 1))
    for place, kind in enumerate(("bridge", "comparison")):
        assert found["judged by kind", kind, "questions"] == 5
        half = found["judged by kind", kind, "answers correct %, half credit"]
        assert half == pytest.approx(100 * np.nanmean(credit[place::2]), rel=1e-5)


def test_the_report_carries_verdicts_prompts_failures_and_costs(single: Path, place: Path) -> None:
    record, found = report(single)["judge"], cells(single)
    assert record["model"] == Judge.name
    hashed = Prompt.load(str(place / "judge" / "answer_prompt.yaml")).hash
    assert record["prompts"]["answers"] == {"name": "answer_prompt", "hash": hashed}
    assert record["verdicts"] == found["judge costs", "all", "verdicts"]
    assert sum(record["failures"].values()) == found["judge costs", "all", "failed"]
    assert ("judge costs", "all", "US dollars") not in found  # a local model has no price
    assert found["judge costs", "all", "calls"] == record["verdicts"]  # no repairs
    assert found["judge costs", "all", "tokens written"] > 0
    assert '"not relevant"' in (single / "report.html").read_text()
    first = questions(single)[0]
    assert set(first["judge"]) == {"answer", "passages"}
    assert [each["id"] for each in first["judge"]["passages"]] == [hit["id"] for hit in first["evidence"]]


def test_several_systems_have_one_judge(place: Path, single: Path) -> None:
    ended = evaluate(place, "compared", systems=("first", "last"))
    assert ended.code == 0, ended.err
    compared = place / "compared"
    assert not (place / "compared.partial").exists()
    found, alone = cells(compared), measured_cells(single)
    of_last = {key: value for key, value in measured_cells(compared / "last").items() if key[0] == "judged"}
    assert of_last == {key: value for key, value in alone.items() if key[0] == "judged"}
    for column, row in (("judged correct %", "answers correct %"), ("judged P@5 %", "judged P@5 %")):
        assert found["quality", "last", column] == alone["judged", row, "mean"]
    both = 100 * (correct(compared / "last") - correct(compared / "first"))
    assert found["differences", "last", "judged correct, points"] == pytest.approx(np.nanmean(both), rel=1e-5)
    # both systems found the same passages: their verdicts were asked for once
    both_costs = found["judge costs", "passages", "verdicts"]
    assert both_costs == cells(compared / "first")["judge costs", "passages", "verdicts"]
    assert set(report(compared)["judge"]["means"]) == {"first", "last"}


def test_only_some_verdicts_by_one_model_that_is_loaded_once(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one split of FreshQA, whose questions ship no passages: the user's own index is searched."""
    rows = [FRESHQA | {"split": split, "question": ROWS[0]["question"]} for split in ("TEST", "DEV")]
    (place / "fresh.csv").write_text(as_csv(rows), newline="")
    loaded, most, reply = list[Judge](), list[int](), Judge.reply

    @wraps(reply)
    def counted(self: Judge, chats: Any) -> Any:
        most.append(len(chats))
        if len(most) == 2:
            raise KeyboardInterrupt
        return reply(self, chats)

    monkeypatch.setattr(Judge, "load", lambda self: loaded.append(self), raising=False)
    monkeypatch.setattr(Judge, "reply", counted)
    monkeypatch.setattr("harness.evaluation.judge.REQUESTS_AT_ONCE", 1)  # what is saved before more is asked
    more = (
        "--layout",
        "freshqa",
        "--questions",
        "fresh.csv:TEST",
        "--judge.passages",
        "2",
        "--judge.verdicts",
        "[passages]",
    )
    assert evaluate(place, "some", *more, systems=("first", "last")).code == INTERRUPTED
    ended = evaluate(place, "some", *more, systems=("first", "last"))
    assert ended.code == 0, ended.err
    assert (len(loaded), most) == (2, [1, 1, 1])  # once a run; the verdict that was interrupted is asked for again
    assert len(questions(place / "some/last")) == 1
    assert report(place / "some")["questions"]["sha256"] == sha256(place / "fresh.csv")
    judged = {row for (table, row, _), value in measured_cells(place / "some/last").items() if table == "judged"}
    assert judged == {"judged H@2 %", "judged P@2 %"}
    assert "(--judge.verdicts)" in reasons(place / "some/last")["judged", "answers correct %", "mean"]
