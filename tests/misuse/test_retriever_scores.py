"""Retriever scores: what `score`, `answers`, a strategy and training refuse about them, each in one line."""

import json
from pathlib import Path

import pytest

from tests.conftest import hotpot_rows
from tests.helpers.commands import command, refused
from tests.helpers.rerag_data import fid_rows


@pytest.mark.parametrize(
    ("mistake", "code", "part"),
    [
        (("--questions", "nowhere.json"), 66, "nowhere.json does not exist"),
        (("--questions", "hotpot.json"), 65, "hotpot.json looks like hotpotqa"),
        (("--out", "fid.json"), 2, "fid.json exists and is not a question file with scores of `infer.py score`"),
        (("--out", "."), 2, "--out . does not name"),
        (("--questions", "bare.json"), 65, "bare.json: no question has passages to score"),
        (("--questions", "torn.json"), 65, "torn.json is truncated: 1 rows read"),
    ],
)
def test_score_refuses_and_writes_nothing(
    mistake: tuple[str, ...], code: int, part: str, tmp_path: Path, checkpoints: dict[str, Path]
) -> None:
    (tmp_path / "fid.json").write_text(json.dumps(fid_rows(2)))
    (tmp_path / "torn.json").write_text(json.dumps(fid_rows(2))[:-40])
    (tmp_path / "bare.json").write_text(json.dumps([fid_rows(1)[0] | {"ctxs": []}]))
    (tmp_path / "hotpot.json").write_text(json.dumps(hotpot_rows(1)))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    encoder = str(checkpoints["bert"]) if code == 65 else "no/encoder"
    typed = ("--questions", "fid.json", "--out", "out.jsonl", "--encoder", encoder, "--device", "cpu", *mistake)
    refused(command(tmp_path, "infer.py", "score", *typed), code, part)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
