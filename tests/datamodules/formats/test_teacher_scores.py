"""Files of a teacher's scores: how passages are named, and rows that are refused."""

import json
import math
from pathlib import Path

import pytest

from common.errors import DataError, MissingInputError
from common.records import Passage
from datamodules.formats.teacher_scores import TeacherScores

BY_ID, BY_CORPUS = Passage.of("a", "first"), Passage.of("b", "second", corpus_id="doc-2")
BY_TEXT, UNKNOWN = Passage.of("c", "third  text"), Passage.of("d", "fourth")


def written(tmp_path: Path, *rows: dict[str, object]) -> list[str]:
    file = tmp_path / "teacher.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return [str(file)]


def test_passages_are_named_by_id_by_the_corpus_id_or_by_text(tmp_path: Path) -> None:
    scores = TeacherScores(
        written(
            tmp_path,
            {"query": "who?", "passage_id": BY_ID.id, "score": 9.0},
            {"query": "who?", "passage_id": BY_ID.id, "score": 1.5},  # the last counts
            {"query": "who? ", "passage_id": "doc-2", "score": -2},
            {"query": "who?", "text": "third text", "score": "0.25"},
            {"query": "what?", "text": "fourth", "score": 3},
        )
    )
    found = scores.of("who?", [UNKNOWN, BY_TEXT, BY_CORPUS, BY_ID])
    assert math.isnan(found[0])
    assert found[1:] == (0.25, -2, 1.5)
    assert ("who?" in scores, "where?" in scores, len(scores)) == (True, False, 2)
    assert all(map(math.isnan, scores.of("where?", [BY_ID])))


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"query": "who?", "text": "x"}, "no score"),
        ({"query": "who?", "score": 1}, "no passage"),
        ({"text": "x", "score": 1}, "query"),
        ({"query": "who?", "text": "x", "score": "NaN"}, "finite"),
        ({"query": "who?", "text": "x", "score": True}, "finite"),
    ],
)
def test_rows_that_say_too_little_are_refused(tmp_path: Path, row: dict[str, object], told: str) -> None:
    with pytest.raises(DataError, match=told) as refused:
        TeacherScores(written(tmp_path, {"query": "who?", "text": "x", "score": 1}, row))
    assert "line 2" in str(refused.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError, match="teacher"):
        TeacherScores([str(tmp_path / "none.jsonl")])
