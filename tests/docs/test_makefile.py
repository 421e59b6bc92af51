"""`make clean` removes what the generated world's configurations write, and nothing else."""

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.docs.documents import ROOT

WORLD_RUNS = sorted((ROOT / "configs/train").glob("*_world.yaml"))
WORLD_COMMANDS = sorted((ROOT / "configs/infer").glob("*_world.yaml"))
KEPT = ["data/feedback/words-hotpotqa", "data/labels/hotpotqa.jsonl", "checkpoints/dmqr-choice-hotpotqa", "data/hotpotqa", ".venv"]  # fmt: skip


def written() -> list[str]:
    """What the configurations of the world write, and what an interrupted command leaves."""
    runs = [f"checkpoints/{yaml.safe_load(each.read_text())['name']}" for each in WORLD_RUNS]
    outputs = [out for each in WORLD_COMMANDS if (out := yaml.safe_load(each.read_text()).get("out"))]
    return [*runs, *outputs, *(f"{out}.partial" for out in outputs)]


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_clean_removes_what_the_world_s_configurations_write(tmp_path: Path) -> None:
    for name in [*written(), *KEPT]:
        (tmp_path / name).mkdir(parents=True)
    subprocess.run(["make", "-f", str(ROOT / "Makefile"), "clean"], cwd=tmp_path, check=True)
    assert [name for name in written() if (tmp_path / name).exists()] == []
    assert [name for name in KEPT if not (tmp_path / name).exists()] == []
