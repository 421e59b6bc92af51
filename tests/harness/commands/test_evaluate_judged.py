"""`infer.py evaluate --judge`.

A language model judges one system and several, and its figures are those of a plain loop.
"""

import json
from collections.abc import Sequence
from functools import wraps
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
from harness.llm.structured import json_object
from harness.retrievers.bm25 import build_bm25
from tests.helpers.commands import Ended, command
from tests.helpers.layout_rows import FRESHQA, as_csv
from tests.helpers.reports import cells, measured_cells, questions, report
from tests.helpers.scripted_lm import JUDGED, Judge, judge_options
from tests.helpers.tiny_lm import PLACES, document, question

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
    judge_options(root / "judge")
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


class Loop:
    """The judge's verdicts by a plain loop over the records of a report.

    The same model, asked one request at a time.
    """

    def __init__(self, place: Path) -> None:
        self.folder = place / "judge"
        self.lm = Judge()
        self.asked: set[str] = set()

    def fields(self, option: str, valid: Any, documents: Sequence[Passage] = (), **texts: str) -> dict[str, Any] | None:
        """The fields of a reply; None if it has no valid ones."""
        messages = Prompt.load(str(self.folder / f"{option}.yaml")).messages(documents, **texts)
        self.asked.add(f"{option} {messages}")
        (reply,) = self.lm.reply([Chat(messages, 120)])
        try:
            found = json_object(reply.text)
            return found if valid(found) else None
        except (ValueError, KeyError, TypeError):
            return None

    def grade(self, row: dict, answer: str) -> float:
        found = self.fields(
            "answer_prompt", lambda each: each["verdict"] in CREDIT and len(each) == 2, question=row["question"],
            gold=row["answer"], answer=answer,
        )  # fmt: skip
        return CREDIT[found["verdict"]] if found else np.nan

    def relevant(self, row: dict, title: str) -> float:
        (text,) = (text[0] for each in ROWS for other, text in each["context"] if other == title)
        found = self.fields(
            "passage_prompt", lambda each: isinstance(each["relevant"], bool) and len(each) == 2,
            [Passage.of(title, text)], question=row["question"],
        )  # fmt: skip
        return float(found["relevant"]) if found else np.nan


@pytest.fixture(scope="module")
def loop(place: Path) -> Loop:
    return Loop(place)


def test_the_figures_are_those_of_a_plain_loop(single: Path, loop: Loop) -> None:
    records = questions(single)
    credit = np.array([loop.grade(row, each["answer"]) for row, each in zip(ROWS, records, strict=True)])
    relevant = np.array(
        [
            [loop.relevant(row, hit["title"]) for hit in each["evidence"]]
            for row, each in zip(ROWS, records, strict=True)
        ]
    )
    assert len(set(credit[~np.isnan(credit)])) > 1  # a judge that always says the same would show nothing
    assert len(np.unique(relevant[~np.isnan(relevant)])) == 2
    found = cells(single)
    judged = {row: value for (table, row, column), value in found.items() if (table, column) == ("judged", "mean")}
    known = credit[~np.isnan(credit)]
    assert judged["answers correct %"] == pytest.approx(100 * (known == 1).mean(), rel=1e-5)
    assert judged["answers correct %, half credit"] == pytest.approx(100 * known.mean(), rel=1e-5)
    assert found["judged", "answers correct %", "questions"] == len(known)
    assert found["judged", "answers correct %", "failed verdicts"] == np.isnan(credit).sum()
    whole = relevant[~np.isnan(relevant).any(axis=1)]
    assert judged["judged P@5 %"] == pytest.approx(100 * whole.sum(axis=1).mean() / 5, rel=1e-5)
    hits = np.where(np.nansum(relevant, axis=1) > 0, 1, np.where(np.isnan(relevant).any(axis=1), np.nan, 0))
    assert judged["judged H@5 %"] == pytest.approx(100 * np.nanmean(hits), rel=1e-5)
    np.testing.assert_array_equal([np.nan if r["judged_correct"] is None else r["judged_correct"] for r in records],
                                  np.where(np.isnan(credit), np.nan, credit == 1))  # fmt: skip


def test_freshqa_is_measured_by_the_judge_and_by_kind(place: Path, loop: Loop) -> None:
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
    credit = np.array([loop.grade(row, each["answer"]) for row, each in zip(ROWS, records, strict=False)])
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
    text = (single / "report.md").read_text()
    assert f"judge: {record['model']}; answers: prompt answer_prompt, {prompt.hash}; passages: " in text
    page = (single / "report.html").read_text()
    assert all(part in page for part in ("Judged by a language model", '"not relevant"'))
    first = questions(single)[0]["judge"]
    assert set(first) == {"answer", "passages"}
    assert [each["id"] for each in first["passages"]] == [hit["id"] for hit in questions(single)[0]["evidence"]]


def test_several_systems_have_one_judge(compared: Path, single: Path, loop: Loop) -> None:
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
    ended = evaluate(place, "plain-compared", judge=False, systems=("first", "last"))
    assert ended.code == 0, ended.err
    assert ended.out.count("not measured: no judge is configured") == 1


def test_only_some_verdicts(place: Path) -> None:
    ended = evaluate(place, "some", "--judge.verdicts", "[passages]", "--judge.passages", "2")
    assert ended.code == 0, ended.err
    judged = {row for (table, row, column), value in measured_cells(place / "some").items()
        if (table, column) == ("judged", "mean")}  # fmt: skip
    assert judged == {"judged H@2 %", "judged P@2 %"}
    assert "not measured: the judge is not asked for it (--judge.verdicts)" in ended.out


def test_an_interrupted_evaluation_asks_only_what_is_missing(
    place: Path, single: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[Chat] = []
    reply = Judge.reply

    def stops(self: Judge, chats: Sequence[Chat]) -> list[Reply]:
        if len(counted) + len(chats) > 20:
            raise KeyboardInterrupt
        counted.extend(chats)
        return reply(self, chats)

    monkeypatch.setattr("harness.evaluation.judge.REQUESTS_AT_ONCE", 4)
    monkeypatch.setattr(Judge, "reply", stops)
    assert evaluate(place, "stopped").code == INTERRUPTED
    assert 16 < len(counted) <= 20
    assert [*(place / "stopped.partial").glob("verdicts-*.jsonl")]
    again: list[Chat] = []

    def counts(self: Judge, chats: Sequence[Chat]) -> list[Reply]:
        again.extend(chats)
        return reply(self, chats)

    monkeypatch.setattr(Judge, "reply", counts)
    ended = evaluate(place, "stopped")
    assert ended.code == 0, ended.err
    assert f"reusing {len(counted)} values of verdicts from earlier runs" in ended.err
    assert not set(again) & set(counted)
    assert len(again) + len(counted) == report(single)["judge"]["verdicts"]
    unlike = {key for key, value in measured_cells(single).items() if measured_cells(place / "stopped")[key] != value}
    assert unlike == set()
    assert not (place / "stopped.partial").exists()


def test_one_language_model_is_loaded_for_all_systems(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    load = Judge.__init__

    def counts(self: Judge, *args: Any, **kwargs: Any) -> None:
        loaded.append("once")
        load(self, *args, **kwargs)

    monkeypatch.setattr(Judge, "__init__", wraps(load)(counts))
    ended = evaluate(place, "loaded", "--judge.verdicts", "[passages]", systems=("first", "last"))
    assert ended.code == 0, ended.err
    assert loaded == ["once"]
