"""The file of word labels: written and read back, and one clear line for each corrupt row."""

import json
from pathlib import Path

import pytest

from common.errors import DataError
from common.records import OTHER_TEXTS, TEXT_VERSION, Passage
from common.words import WORDS
from datamodules.formats.row_counts import RowCounts
from datamodules.formats.word_labels import (
    WordLabels,
    averaged,
    is_word_labels,
    to_row,
    word_label_rows,
)

LABELS = WordLabels(
    "q1", "Who built the Kiln?", 0.45454545, {"kiln": -0.45454545, "who": 0.00004}, {"amber": 0.25, "jetty": -0.00012},
    (Passage.of("north", "the café in amber"), Passage.of("", "jetty")),
)  # fmt: skip
ROW = {
    "question_id": "q1", "question": "Who built the Kiln?", "recall": 0.4545, "without": {"kiln": -0.4545},
    "with": {"amber": 0.25, "jetty": -0.0001},
    "passages": [{"title": "north", "text": "the café in amber"}, {"title": "", "text": "jetty"}],
    "text_version": TEXT_VERSION, "words": WORDS,
}  # fmt: skip


def test_rounded_to_four_decimals_and_zero_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "labels.jsonl"
    assert to_row(LABELS) == ROW
    file.write_text(json.dumps(to_row(LABELS)) + "\n")
    (read,) = word_label_rows(str(file))
    assert read == WordLabels(
        "q1", LABELS.question, 0.4545, {"kiln": -0.4545}, {"amber": 0.25, "jetty": -0.0001}, LABELS.passages
    )
    assert is_word_labels(file)
    file.write_text(json.dumps({name: value for name, value in ROW.items() if name != "words"}) + "\n")
    assert is_word_labels(file)  # of release 0.1: may be replaced, is not read
    with pytest.raises(DataError, match="labels of another version"):
        list(word_label_rows(str(file)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"recall": 1.5}, "field 'recall' is 1.5, not a number from 0 to 1"),
        ({"with": {"amber": "0.25"}}, "'amber' in field 'with' is \"0.25\", not a number from -1 to 1"),
        ({"with": {"amber": -2}}, "'amber' in field 'with' is -2, not a number from -1 to 1"),
        ({"without": ["kiln"]}, "field 'without' is a list, not an object"),
        ({"passages": ["amber"]}, "item 1 of field 'passages' is a string, not an object"),
        ({"passages": [{"title": "north"}]}, "field 'text' is missing"),
        ({"text_version": None}, OTHER_TEXTS.rstrip(".")),
        ({"words": 1}, "these are labels of another version, which told words apart otherwise"),
    ],
)
def test_a_corrupt_row_is_named(tmp_path: Path, change: dict[str, object], message: str) -> None:
    file = tmp_path / "labels.jsonl"
    file.write_text(json.dumps(ROW) + "\n" + json.dumps({**ROW, **change}) + "\n")
    with pytest.raises(DataError) as caught:
        list(word_label_rows(str(file)))
    assert str(caught.value) == f"{file}, line 2: {message}. Run `python infer.py label --out {file} ...` again."


def test_rows_that_are_left_out_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "labels.jsonl"
    made = [ROW, {**ROW, "recall": None}, {**ROW, "question": " "}, {**ROW, "recall": 0.1}]
    file.write_text("".join(json.dumps(row) + "\n" for row in made))
    counts = RowCounts()
    assert [each.recall for each in word_label_rows(str(file), counts=counts)] == [0.4545, 0.1]
    assert [(what, count) for what, _, count, _ in counts.as_json()] == [
        ("a row whose field 'recall' is null", 1), ("a row whose field 'question' is empty", 1),
    ]  # fmt: skip
    assert len(list(word_label_rows(str(file), 3))) == 1
    with pytest.raises(DataError, match=r"line 2: a row whose field 'recall' is null\. Correct it, or omit strict"):
        list(word_label_rows(str(file), counts=RowCounts(strict=True)))


def test_the_mean_of_several_retrievers_by_hand() -> None:
    kiln, jetty, mill = Passage.of("Kiln", "amber ash"), Passage.of("", "jetty ash"), Passage.of("Mill", "amber")
    one = WordLabels("q1", "who built it", 0.5, {"who": 0.2}, {"amber": 0.4, "ash": -0.1}, (kiln, jetty))
    other = WordLabels("q1", "who built it", 0.3, {"who": -0.1, "built": -0.4}, {"amber": 0.1}, (mill,))
    both = averaged([one, other])
    assert both.recall == pytest.approx(0.4)
    assert both.without_word == pytest.approx({"who": 0.05, "built": -0.2})
    # amber is in passages of both; the others are in the first one's alone
    assert both.with_word == pytest.approx({"kiln": 0.0, "amber": 0.25, "ash": -0.1, "jetty": 0.0, "mill": 0.0})
    assert both.passages == (kiln, mill, jetty)
    assert averaged([one]) == one
