"""`infer.py label` on a small BM25 index: the file, its last line, and a run that was interrupted."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from common.records import TEXT_VERSION, Passage, Ranked
from common.words import WORDS
from datamodules.formats.word_labels import word_label_rows
from harness.retrievers.bm25 import Bm25Retriever, build_bm25
from tests.helpers.commands import Ended, command

BM25 = "harness.retrievers.bm25.Bm25Retriever"
SOUTH = Passage.of("south", "kiln kiln")
GOLD = Passage.of("north", "kiln amber")
OTHERS = [Passage.of("east", "amber jetty"), Passage.of("far", "delta glade")]


def row(id_: str, question: str, gold: tuple[str, str] = ("north", "kiln amber")) -> dict[str, Any]:
    """A question with one gold passage."""
    return {
        "_id": id_, "question": question, "answer": "amber", "type": "bridge", "level": "hard",
        "supporting_facts": [[gold[0], 0]], "context": [[gold[0], [gold[1]]], ["elsewhere", ["orchard"]]],
    }  # fmt: skip


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with `index`, `saturated` of the same corpus and `train.json` of one question."""
    build_bm25([SOUTH, GOLD, *OTHERS], tmp_path / "index")
    build_bm25([SOUTH, GOLD, *OTHERS], tmp_path / "saturated", k1=0.0)
    (tmp_path / "train.json").write_text(json.dumps([row("q1", "The kiln?")]))
    return tmp_path


def label(place: Path, *more: str) -> Ended:
    typed = ("--retriever", BM25, "--retriever.index", "index", "--questions", "train.json")
    return command(place, "infer.py", "label", *typed, "--out", "labels/train.jsonl", *more)


def test_the_file_and_the_last_line(place: Path) -> None:
    ended = label(place, "--passages", "2")
    assert ended.code == 0, ended.err
    (line,) = (place / "labels" / "train.jsonl").read_text().splitlines()
    assert json.loads(line) == {
        "question_id": "q1", "question": "The kiln?", "recall": 0.9615,  # 100 / 104
        "without": {"kiln": -0.9615},
        "with": {"north": 0.0286, "amber": 0.0286},  # 100 / 101 - 100 / 104
        "passages": [{"title": "south", "text": "kiln kiln"}, {"title": "north", "text": "kiln amber"}],
        "text_version": TEXT_VERSION,
        "words": WORDS,
    }  # fmt: skip
    told = re.findall(r"\d+(?= )", ended.err.splitlines()[-1])
    assert told == ["1", "3", "2", "0", "2", "1", "0"]  # questions, words of passages that help, harm, of questions
    assert {path.name for path in (place / "labels").iterdir()} == {"train.jsonl", "train.jsonl.sha256"}


def test_the_passages_of_another_retriever_join_and_the_labels_stay_those_of_the_first(place: Path) -> None:
    assert label(place, "--passages", "1").code == 0
    (alone,) = word_label_rows(str(place / "labels/train.jsonl"))
    feedback = json.dumps([{"class_path": BM25, "init_args": {"index": "saturated"}}])
    ended = label(place, "--passages", "2", "--half_rank", "1", "--feedback_retrievers", feedback)
    assert ended.code == 0, ended.err
    # without saturation by k1, all with "kiln" score alike
    (labels,) = word_label_rows(str(place / "labels/train.jsonl"))
    assert (alone.passages, labels.passages) == ((SOUTH,), (SOUTH, GOLD))
    assert labels.recall == 0.2  # 1 / (1 + 2²)
    assert labels.with_word == {"north": 0.3, "amber": 0.3}


def test_questions_without_gold_passages_in_the_index_are_skipped_and_counted(place: Path) -> None:
    rows = [row("q0", "kiln", ("alba", "river")), row("q1", "kiln"), row("q2", "kiln", ("a", "b")), row("q3", "amber")]
    (place / "train.json").write_text(json.dumps(rows))
    ended = label(place)
    assert "; 2 questions skipped" in ended.err
    assert [labels.question_id for labels in word_label_rows(str(place / "labels/train.jsonl"))] == ["q1", "q3"]
    assert "; 1 questions skipped" in label(place, "--limit", "2").err


def test_ctrl_c_keeps_what_is_done(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "train.json").write_text(json.dumps([row(f"q{number}", "kiln") for number in range(20)]))
    search, calls = Bm25Retriever.search, []

    def stopped(retriever: Bm25Retriever, queries: Sequence[str], k: int) -> list[list[Ranked]]:
        calls.append(k)
        if len(calls) == 3:  # the second batch's first
            raise KeyboardInterrupt
        return search(retriever, queries, k)

    monkeypatch.setattr(Bm25Retriever, "search", stopped)
    assert (label(place).code, len(calls)) == (130, 3)
    assert "1 of 2 batches are there from an earlier run" in label(place).err
    assert {path.name for path in (place / "labels").iterdir()} == {"train.jsonl", "train.jsonl.sha256"}
    assert len([*word_label_rows(str(place / "labels/train.jsonl"))]) == 20
    calls.clear()
    assert label(place, "--out", "labels/other.jsonl").code == 130
    said = label(place, "--out", "labels/other.jsonl", "--depth", "3").err
    assert "saved by a run that differs in: depth. Starting over." in said
