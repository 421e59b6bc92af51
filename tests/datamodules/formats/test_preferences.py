"""The manifest of preferences: what is wrong with it is said before training, not at its export."""

import json
from pathlib import Path

import pytest

from common.errors import DataError
from common.records import OTHER_TEXTS
from datamodules.formats.preferences import MANIFEST, ROWS, read_manifest, read_rewrite_preferences
from datamodules.formats.row_counts import RowCounts
from tests.helpers.preference_files import greedy_preferences, write_preferences


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        ({"layout": "rewrite_preferences"}, "'round'"),
        ({"layout": "rewrite_preferences", "round": 0}, "round is 0, not a whole number from 1"),
        ({"layout": "rewrite_preferences", "round": "2"}, "round is '2', not a whole number from 1"),
        ({"layout": "labels", "round": 1}, "the layout 'labels' is unknown"),
        ({"round": 1}, "'layout'"),
        (["rewrite_preferences"], "list indices"),
    ],
)
def test_an_invalid_manifest_is_refused(manifest: object, message: str, tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(
        DataError, match=rf"preferences.json is not a file of this command \({message}.*Run `python infer.py"
    ) as caught:
        read_manifest(str(tmp_path))
    assert "\n" not in str(caught.value)


def test_preferences_of_another_release_are_refused(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text(json.dumps({"layout": "rewrite_preferences", "round": 1}))
    with pytest.raises(DataError, match=rf"{OTHER_TEXTS} Run `python infer\.py preferences` again\.$"):
        read_manifest(str(tmp_path))


def test_rows_that_are_left_out_are_counted(tmp_path: Path) -> None:
    made = [each for text in ("q", "q ", "r") for each in greedy_preferences(text, {"kwr": 0.1, "par": 0.2})]
    file = write_preferences(tmp_path / "made", made) / ROWS
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    for number, change in enumerate(({"question": None}, {"candidates": []}), 4):
        lines[number] |= change
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    counts = RowCounts()
    found = read_rewrite_preferences(str(file.parent), counts)
    assert [(each.question, each.strategy) for each in found] == [("q", "kwr"), ("q", "par")]
    assert [(what, count) for what, _, count, _ in counts.as_json()] == [
        ("a row with the question and the strategy of an earlier one", 2), ("a row whose field 'question' is null", 1),
        ("a row whose field 'candidates' is empty", 1),
    ]  # fmt: skip
