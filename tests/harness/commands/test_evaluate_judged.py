"""`infer.py evaluate --judge`.

A judge that follows a rule judges one system and several, and its figures are those of a plain loop.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from common.chat import Chat, Reply
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


def evaluate(place: Path, out: str, *more: str, systems: Sequence[str] = ("last",), judge: bool = True) -> Ended:
    named = [word for system in systems for word in ("--config", f"{system}.yaml")]
    judged = [*judge_options(place / "judge"), "--judge.repairs", "0"] if judge else []
    return command(
        place, "infer.py", "evaluate", *named, "--questions", "questions.json", "--out", out, "--resamples", "50",
        *judged, *more,
    )  # fmt: skip


@pytest.fixture(scope="module")
def single(place: Path) -> Path:
    ended = evaluate(place, "single")
    assert ended.code == 0, ended.err
    assert not (place / "single.partial").exists()
    return place / "single"


@pytest.fixture(scope="module")
def compared(place: Path) -> Path:
    ended = evaluate(place, "compared", systems=("first", "last"))
    assert ended.code == 0, ended.err
    assert not (place / "compared.partial").exists()
    return place / "compared"


def credits(records: list[dict[str, Any]]) -> np.ndarray:
    """(N,) credit of each answer, NaN where the verdict is invalid."""
    grades = [GRADES[VALUES.index(record["answer"]) % len(GRADES)] for record in records]
    return np.array([CREDIT.get(grade, np.nan) for grade in grades])


def relevance(records: list[dict[str, Any]]) -> np.ndarray:
    """(N, 3) whether each passage is relevant."""
    place_of = {title: VALUES.index(text[0].split()[-2]) for row in ROWS for title, text in row["context"]}
    return np.array([[place_of[hit["title"]] % 2 == 0 for hit in record["evidence"]] for record in records], float)


def test_the_figures_are_those_of_a_plain_loop(single: Path) -> None:
    records = questions(single)
    credit, relevant = credits(records), relevance(records)
    assert len(set(credit[~np.isnan(credit)])) == 3
    assert np.isnan(credit).any()
    assert 0 < relevant.mean() < 1
    found = cells(single)
    judged = {row: value for (table, row, column), value in found.items() if (table, column) == ("judged", "mean")}
    known = credit[~np.isnan(credit)]
    assert judged["answers correct %"] == pytest.approx(100 * (known == 1).mean(), rel=1e-5)
    assert judged["answers correct %, half credit"] == pytest.approx(100 * known.mean(), rel=1e-5)
    assert found["judged", "answers correct %", "questions"] == len(known)
    assert found["judged", "answers correct %", "failed verdicts"] == np.isnan(credit).sum()
    assert judged["judged P@5 %"] == pytest.approx(100 * relevant.sum(axis=1).mean() / 5, rel=1e-5)
    assert judged["judged H@5 %"] == pytest.approx(100 * relevant.any(axis=1).mean(), rel=1e-5)
    np.testing.assert_array_equal([np.nan if r["judged_correct"] is None else r["judged_correct"] for r in records],
                                  np.where(np.isnan(credit), np.nan, credit == 1))  # fmt: skip


def test_freshqa_is_measured_by_the_judge_and_by_kind(place: Path) -> None:
    """Its questions ship no passages, so the user's own index is searched; the split TEST alone is asked."""
    kinds = ("never-changing", "fast-changing", "never-changing", "false-premise")
    rows = [
        FRESHQA | {
            "id": str(number), "split": "TEST" if number < 8 else "DEV", "question": row["question"],
            "answer_0": row["answer"], "answer_1": None,
            "false_premise": str(kinds[number % 4] == "false-premise").upper(),
            "fact_type": kinds[number % 4].replace("false-premise", "slow-changing"),
        }
        for number, row in enumerate(ROWS)
    ]  # fmt: skip
    (place / "fresh.csv").write_text(as_csv(rows), newline="")
    more = ("--layout", "freshqa", "--questions", "fresh.csv:TEST", "--judge.verdicts", "[answers]")
    ended = evaluate(place, "fresh", *more)
    assert ended.code == 0, ended.err
    records = questions(place / "fresh")
    assert len(records) == 8
    credit = credits(records)
    found = cells(place / "fresh")
    assert found["judged", "answers correct %", "mean"] == pytest.approx(
        100 * (credit[~np.isnan(credit)] == 1).mean(), rel=1e-5
    )
    for kind, places in (("never-changing", [0, 2, 4, 6]), ("fast-changing", [1, 5]), ("false-premise", [3, 7])):
        known = credit[places][~np.isnan(credit[places])]
        assert found["judged by kind", kind, "questions"] == len(places)
        mean = found.get(("judged by kind", kind, "answers correct %, half credit"))
        assert mean == (pytest.approx(100 * known.mean(), rel=1e-5) if len(known) else None)
    assert report(place / "fresh")["questions"]["sha256"] == sha256(place / "fresh.csv")


def test_the_report_carries_verdicts_prompts_failures_and_costs(single: Path, place: Path) -> None:
    record = report(single)["judge"]
    prompt = Prompt.load(str(place / "judge" / "answer_prompt.yaml"))
    assert record["model"] == Judge.name
    assert record["prompts"]["answers"] == {"name": "answer_prompt", "hash": prompt.hash}
    found = cells(single)
    assert record["verdicts"] == found["judge costs", "all", "verdicts"]
    assert sum(record["failures"].values()) == found["judge costs", "all", "failed"]
    assert ("judge costs", "all", "US dollars") not in found  # a local model has no price
    assert found["judge costs", "all", "calls"] == record["verdicts"]  # no repairs
    assert found["judge costs", "all", "tokens written"] > 0
    assert '"not relevant"' in (single / "report.html").read_text()
    first = questions(single)[0]["judge"]
    assert set(first) == {"answer", "passages"}
    assert [each["id"] for each in first["passages"]] == [hit["id"] for hit in questions(single)[0]["evidence"]]


def test_several_systems_have_one_judge(compared: Path, single: Path) -> None:
    found, alone = cells(compared), measured_cells(single)
    of_last = {key: value for key, value in measured_cells(compared / "last").items() if key[0] == "judged"}
    assert of_last == {key: value for key, value in alone.items() if key[0] == "judged"}
    for column, row in (("judged correct %", "answers correct %"), ("judged P@5 %", "judged P@5 %")):
        assert found["quality", "last", column] == alone["judged", row, "mean"]
    first, last = (
        np.array([np.nan if r["judged_correct"] is None else r["judged_correct"] for r in questions(compared / name)])
        for name in ("first", "last")
    )
    both = 100 * (last - first)
    assert found["differences", "last", "judged correct, points"] == pytest.approx(np.nanmean(both), rel=1e-5)
    # both systems found the same passages: their verdicts were asked for once
    both_costs = found["judge costs", "passages", "verdicts"]
    assert both_costs == cells(compared / "first")["judge costs", "passages", "verdicts"]
    assert set(report(compared)["judge"]["means"]) == {"first", "last"}


def test_without_a_judge_one_line_says_so(place: Path) -> None:
    ended = evaluate(place, "plain", judge=False)
    assert ended.code == 0, ended.err
    assert ended.out.count("not measured: no judge is configured") == 1
    assert report(place / "plain")["judge"] is None


def test_an_interrupted_evaluation_asks_only_what_is_missing(
    place: Path, single: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Chat] = []
    reply, most = Judge.reply, 20

    def stops(self: Judge, chats: Sequence[Chat]) -> list[Reply]:
        if len(asked) + len(chats) > most:
            raise KeyboardInterrupt
        asked.extend(chats)
        return reply(self, chats)

    monkeypatch.setattr("harness.evaluation.judge.REQUESTS_AT_ONCE", 4)
    monkeypatch.setattr(Judge, "reply", stops)
    assert evaluate(place, "stopped").code == INTERRUPTED
    assert 16 < len(asked) <= 20
    assert [*(place / "stopped.partial").glob("verdicts-*.jsonl")]
    most = 10_000
    ended = evaluate(place, "stopped")
    assert ended.code == 0, ended.err
    assert len({repr(chat) for chat in asked}) == len(asked) == report(single)["judge"]["verdicts"]  # each once
    assert measured_cells(place / "stopped") == measured_cells(single)
    assert not (place / "stopped.partial").exists()


def test_only_some_verdicts_by_one_model_that_is_loaded_once(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[Judge] = []
    monkeypatch.setattr(Judge, "load", lambda self: loaded.append(self), raising=False)
    ended = evaluate(
        place, "some", "--judge.verdicts", "[passages]", "--judge.passages", "2", systems=("first", "last")
    )
    assert ended.code == 0, ended.err
    assert len(loaded) == 1
    judged = {row for (table, row, _), value in measured_cells(place / "some/last").items() if table == "judged"}
    assert judged == {"judged H@2 %", "judged P@2 %"}
    assert "(--judge.verdicts)" in reasons(place / "some/last")["judged", "answers correct %", "mean"]
