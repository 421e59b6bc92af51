"""The comparison of several systems: what its report says of them, what it keeps in memory, and its intervals."""

import gc
import json
import re
from collections.abc import Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from common.records import Passage, Question
from harness.evaluation import comparison
from harness.evaluation.answer_scores import known_percent_cells, percent_cells
from harness.evaluation.comparison import best_of, kind_tables
from harness.evaluation.settings import Bootstrap
from harness.evaluation.study import Findings
from harness.retrievers.bm25 import build_bm25
from harness.systems.retrieve_read import RetrieveRead
from tests.helpers.commands import Ended, command, refused
from tests.helpers.reports import report
from tests.helpers.studied import rows_of

PASSAGES = [Passage.of("Tarn", "A tarn is a mountain lake."), Passage.of("Fell", "A fell is a hill.")]
QUESTIONS = [
    {
        "_id": title, "question": f"what is a {title}", "answer": answer, "supporting_facts": gold,
        "context": [[each.title, [each.text]] for each in PASSAGES],
    }
    for title, answer, gold in (("tarn", "lake", [["Tarn", 0]]), ("fell", "", [["Gone", 0], ["Fell", 0]]))
]  # fmt: skip


class Held:
    """What a plot holds."""


class Study:
    """Its plot holds an object."""

    def rows_of(self, system: Any) -> dict[str, Any]:
        """The system alone."""
        return {"own": system}

    def measure(self, system: Any, questions: Sequence[Question], asked: Any, settings: Any) -> Findings:
        """A plot and records."""
        held = Held()
        plots = {"empty.png": lambda path: (held, path.write_bytes(b""))}
        return Findings(plots=plots, records=[{"held": 1} for _ in questions])


class Retrieves(RetrieveRead):
    """A system with a study."""

    study = f"{__name__}:Study"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Two indexes of different corpora, a question file, and configs of a system whose study plots an object."""
    build_bm25(PASSAGES, tmp_path / "both")
    build_bm25(PASSAGES[1:], tmp_path / "fell")
    (tmp_path / "test.json").write_text(json.dumps(QUESTIONS))
    for name, index in ("odd: both", "both"), ("fell", "fell"):
        retriever = {"class_path": "harness.retrievers.bm25.Bm25Retriever", "init_args": {"index": index}}
        config = {"class_path": f"{__name__}.Retrieves", "init_args": {"retriever": retriever, "k": 1}}
        (tmp_path / f"{name}.yaml").write_text(json.dumps({"system": config}))
    return tmp_path


def compare(place: Path, *configs: str) -> Ended:
    named = [word for config in configs for word in ("--config", f"{config}.yaml")]
    options = ("--resamples", "20", "--questions", "test.json", "--out", "out", "--paper", "hotpotqa")
    return command(place, "infer.py", "evaluate", *named, *options)


def test_the_report_and_what_is_kept_in_memory(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A colon in a config's name does not make it a variant of another system.

    What DR-RAG retrieved for thousands of questions takes gigabytes, and further systems follow.
    """
    held, write = list[int](), comparison.write_comparison

    @wraps(write)
    def counted(*args: Any) -> None:
        gc.collect()
        held.append(sum(type(each).__name__ == "Held" for each in gc.get_objects()))
        write(*args)

    monkeypatch.setattr(comparison, "write_comparison", counted)
    ended = compare(place, "odd: both", "fell")
    assert ended.code == 0, ended.err
    assert held == [0]
    assert '"held": 1' in (place / "out/fell/questions.jsonl").read_text()
    lines = (place / "out/report.md").read_text().splitlines()
    assert "1 evaluated, 1 skipped" in lines[2]
    assert lines[3].startswith("- odd: both: index: bm25, 2 passages, corpus ")
    assert "holds none of the 1 gold passages" in lines[4]
    asked = report(place / "out")["questions"]
    assert (asked["asked"], asked["measured"]) == (2, 1)
    # no table of a comparison has a paper's figures; those of the systems may
    assert "published" not in "".join(lines)
    assert "published" in (place / "out/fell/report.md").read_text()


def test_questions_for_which_nothing_is_defined_are_refused(place: Path) -> None:
    (place / "test.json").write_text(json.dumps(QUESTIONS[1:]))
    for configs in ("odd: both",), ("odd: both", "fell"):
        refused(compare(place, *configs), 2, "None of the 1 questions has a gold answer or gold passages")
        assert not list(place.glob("out*"))


def test_intervals_of_rows_with_gaps_are_those_of_each_row_alone() -> None:
    random = np.random.default_rng(1)
    values_RN = random.random((5, 30))
    values_RN[1, :7] = values_RN[3, :7] = values_RN[2, 4] = np.nan
    values_RN[4] = np.nan
    *found, none = known_percent_cells(values_RN, Bootstrap(200, 3))
    assert none is None
    for cell, values_N in zip(found, values_RN, strict=False):
        (alone,) = percent_cells(values_N[~np.isnan(values_N)][None], Bootstrap(200, 3))
        assert (cell.value, *(cell.interval or ())) == pytest.approx((alone.value, *(alone.interval or (0, 0))))


BOOTSTRAP = Bootstrap(500, 0)
NAN = np.nan
KINDS = {"many": np.arange(6) > 1, "few": np.arange(6) < 2}
VALUES = {
    "plain": np.array([0, 1, 0, 0, 1, 0.0]),
    "other": np.array([1, 1, 1, 1, 1, 1.0]),
    "other: variant": np.array([0, 0, 0, 0, NAN, NAN]),
    "silent": np.full(6, NAN),
}


def test_means_and_differences_by_kind_the_most_frequent_first() -> None:
    own, differences = kind_tables("EM", VALUES, ["plain", "other", "silent"], KINDS, BOOTSTRAP)
    assert own.columns == differences.columns == ("many", "few")
    means = rows_of([own], own.name)
    assert means == {"questions": [4, 2], "plain": [25, 50], "other": [100, 100], "other: variant": [0, 0]}
    found = rows_of([differences], differences.name)
    assert found == {"other": [75, 50], "other: variant": [0, -50]}  # paired: of the questions that both know
    intervals = [cell and cell.interval for cell in (own.rows["other"][0], own.rows["plain"][0])]
    assert intervals == [(100, 100), (0, 75)]
    # no differences where the first system has no values
    few = {name: VALUES[name] for name in ("silent", "other")}
    (alone,) = kind_tables("EM", few, ["silent", "other"], KINDS, BOOTSTRAP)
    assert [*alone.rows] == ["questions", "other"]


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        ((10, 20, 40), r"c, 100\.0, wins, \+50\.0 \[\+\d.*\] to b\."),
        ((39, 10, 40), r"no clear winner; the greatest is c, 100\.0, \+2\.5 \[\+0\.0, .*\] to a\."),
        ((0, 0, 0), r"no clear winner; the greatest is a, 0\.0, \+0\.0 \[\+0\.0, \+0\.0\] to b\."),
    ],
)
def test_a_system_wins_where_the_interval_excludes_zero(counts: tuple[int, ...], sentence: str) -> None:
    """Systems a, b, c that are right on the first `count` of 40 questions."""
    ones = {name: (np.arange(40) < count).astype(float) for name, count in zip("abc", counts, strict=True)}
    assert re.fullmatch(sentence, best_of(ones, BOOTSTRAP))


def test_what_competes_and_what_is_not_measured() -> None:
    better = {**VALUES, "plain: best": np.full(6, 2.0)}  # a variant does not compete
    note = kind_tables("EM", better, ["plain", "other", "silent"], KINDS, BOOTSTRAP)[0].note
    assert "many: other, 100.0, wins, +75.0 [+25.0, +100.0] to plain." in note
    assert "plain: best" not in note
    assert best_of({"a": VALUES["plain"], "b": VALUES["silent"]}, BOOTSTRAP).startswith("not measured")
    assert "without a question in common" in best_of({"a": np.array([1, NAN]), "b": np.array([NAN, 0])}, BOOTSTRAP)
