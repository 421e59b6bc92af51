"""The manifest of preferences: what is wrong with it is said before training, not at its export."""

import json
from pathlib import Path

import pytest

from common.errors import DataError
from common.records import OTHER_TEXTS
from datamodules.formats.preferences import MANIFEST, read_manifest


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
