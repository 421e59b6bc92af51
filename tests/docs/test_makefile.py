"""`make clean` removes what the quickstarts and the generated world's configurations write, and nothing else."""

import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from tests.docs.documents import ROOT, commands_of

WORLD = [yaml.safe_load(each.read_text()) for each in sorted((ROOT / "configs/quickstart").glob("*.yaml"))]
SYSTEMS = ("drrag", "rerag", "dmqr", "msrag", "hiqa", "all")
KEPT = ["data/labels/hotpotqa.jsonl", "checkpoints/dmqr-extractive-hotpotqa",
    "data/hotpotqa", "indexes/mine", ".venv"]  # fmt: skip


def written(place: Path) -> list[str]:
    """What the quickstarts and the configurations of the world write, and what an interrupted command leaves."""
    runs = [f"checkpoints/{each['name']}" for each in WORLD if each.get("name", "").endswith("-world")]
    outputs = [each["out"].replace("$data_root", "data") for each in WORLD if "out" in each]
    for system in SYSTEMS:
        (place / system).mkdir(parents=True)
        for command in commands_of("quickstart.sh", [system], place / system):
            outputs += [value for option, value in pairwise(command) if option in ("--out", "--reading.document_cache")]
    return [*runs, *outputs, *(f"{out}.partial" for out in outputs)]


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_clean_removes_what_the_world_s_configurations_write(tmp_path: Path) -> None:
    made, place = written(tmp_path / "commands"), tmp_path / "project"
    for name in [*made, *KEPT]:
        (place / name).mkdir(parents=True, exist_ok=True)
    subprocess.run(["make", "-f", str(ROOT / "Makefile"), "clean"], cwd=place, check=True)
    assert [name for name in made if (place / name).exists()] == []
    assert [name for name in KEPT if not (place / name).exists()] == []
