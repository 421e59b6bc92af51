"""scripts/full_scale.sh from the generated files to the evaluation, at a few questions of each data set."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.full_scale.systems import SYSTEMS
from tests.helpers.runs import ROOT


@pytest.mark.slow
@pytest.mark.parametrize("system", SYSTEMS)
def test_a_run_is_killed_resumed_exported_and_evaluated(tmp_path: Path, system: str) -> None:
    out = tmp_path / "full"
    command = ["bash", str(ROOT / "scripts/full_scale.sh"), "--share", "0.0008", "--out", str(out), "--systems", system]
    ended = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=900, env=os.environ | {"PYTHON": sys.executable}
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    folder = out / "0.0008"
    costs = {row["stage"]: row for row in json.loads((folder / f"{system}.json").read_text())["stages"]}
    started, again, resumed = (
        costs[name] for name in ("first start, killed", "second start, killed", "resume to the export")
    )
    for each in (started, again, resumed):
        assert 0 < each["first_step_seconds"] <= each["seconds"]
        assert each["own_bytes"].keys() >= {"0", "1"}
        assert each["core_seconds"] > 0
    if system == "drrag":
        assert costs["mining of the training questions"]["own_bytes"].keys() >= {"0", "1"}
        with_mined = costs["start with mined passages, killed"]
        assert 0 < with_mined["first_step_seconds"] <= with_mined["seconds"]
        questions = json.loads((folder / "data/hotpotqa_train.json").read_text())
        mined = [json.loads(line) for line in (folder / "data/mined.jsonl").read_text().splitlines()]
        assert [row["question_id"] for row in mined] == [question["_id"] for question in questions]
        settings = (folder / "checkpoints/drrag-mined/config.yaml").read_text()
        assert "data/mined.jsonl" in settings
    steps = [
        json.loads(line)["step"]
        for line in (folder / "checkpoints" / system / "metrics.jsonl").read_text().splitlines()
        if "train/loss" in line
    ]
    assert steps == list(range(12))  # each step once: the run went on where a checkpoint was
    assert (folder / "checkpoints" / system / "serving/serving.json").is_file()
    assert (folder / "reports" / system / "report.md").is_file()
    assert ended.stdout == (folder / f"{system}.md").read_text() + "\n"
