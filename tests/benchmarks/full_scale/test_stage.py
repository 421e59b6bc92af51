"""Measuring a command and all that it starts.

Core-seconds of orphans, memory by rank, the first step, the kill of every process.

Each test measures in a process of its own, which adopts and ends its descendants.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.runs import ROOT

BUSY = "import time\nwhile time.process_time() < {seconds}: pass\n"


def measured(folder: Path, script: str, options: str = "") -> dict[str, Any]:
    """The cost of a Python script, measured in a process of its own.

    What it raised as `error`, what it left as `left`.
    """
    (folder / "script.py").write_text(script)
    driver = f"""
import json, os, sys
from pathlib import Path
from benchmarks.full_scale.process_memory import descendants
from benchmarks.full_scale.stage import Training, measure
from common.errors import UserError
try:
    cost = measure("test", [sys.executable, "script.py"], Path({str(folder)!r}), {{}}, \
Path({str(folder / "log")!r}){options})
    print(json.dumps(cost.to_row() | {{"left": descendants(os.getpid())}}))
except UserError as error:
    print(json.dumps({{"error": str(error), "left": descendants(os.getpid())}}))
"""
    ended = subprocess.run([sys.executable, "-c", driver], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def test_core_seconds_are_of_all_processes_also_of_orphans(tmp_path: Path) -> None:
    busy = BUSY.format(seconds=0.3)
    script = f"""
import subprocess, sys
subprocess.Popen([sys.executable, "-c", "import subprocess, sys; subprocess.Popen([sys.executable, '-c', \
sys.argv[1]])", {busy!r}]).wait()
{busy}
import time; time.sleep(1)
"""
    cost = measured(tmp_path, script)
    assert 0.6 <= cost["core_seconds"] < 2.0
    assert cost["seconds"] >= 1.0
    assert cost["left"] == []


def test_memory_is_of_a_ranks_processes_together(tmp_path: Path) -> None:
    hold = "import sys, time; held = b'x' * (int(sys.argv[1]) * 2**20); time.sleep(2)"
    script = f"""
import os, subprocess, sys
def start(rank, size): return subprocess.Popen([sys.executable, "-c", {hold!r}, str(size)], env=os.environ | {{"RANK": \
rank}})
for each in [start("0", 60), start("0", 40), start("1", 30)]: each.wait()
"""
    cost = measured(tmp_path, script)
    own = {rank: size / 2**20 for rank, size in cost["own_bytes"].items()}
    assert own["0"] == pytest.approx(110, abs=10)  # with two interpreters of some 5 MiB
    assert own["1"] == pytest.approx(35, abs=5)
    assert own[""] < 20
    assert cost["all_own_bytes"] == pytest.approx(sum(cost["own_bytes"].values()), rel=0.1)


TRAINING = """
import subprocess, sys, time
from pathlib import Path
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"], start_new_session=True)
Path("run").mkdir(exist_ok=True)
for step in range(100):
    time.sleep(0.1)
    with open("run/metrics.jsonl", "a") as file:
        file.write('{"step": 1, "train/loss": 2.0}\\n{"step": 1, "train/time": 2.0}\\n')
"""


def test_a_training_is_killed_at_its_step_with_all_its_processes(tmp_path: Path) -> None:
    options = f", Training(Path({str(tmp_path / 'run')!r}), kill_after=8)"
    cost = measured(tmp_path, TRAINING, options)
    assert 0.1 < cost["first_step_seconds"] < 0.8 <= cost["seconds"] < 5
    assert cost["left"] == []
    logged = (tmp_path / "run/metrics.jsonl").read_text().count("train/loss")
    assert 8 <= logged < 15
    again = measured(tmp_path, TRAINING, options.replace("=8", f"={logged + 3}"))  # steps of earlier starts count, too
    assert again["first_step_seconds"] < 1.5
    assert (tmp_path / "run/metrics.jsonl").read_text().count("train/loss") >= logged + 3


def test_failures_are_refused_with_the_last_line_of_the_log(tmp_path: Path) -> None:
    cost = measured(tmp_path, "print('before')\nraise SystemExit('no such file')")
    assert cost["error"] == f"test ended with 1: no such file All of it is in {tmp_path / 'log'}."
    options = f", Training(Path({str(tmp_path / 'run')!r}), kill_after=1)"
    assert "test ended with 0" in measured(tmp_path, "print('it ends before its first step')", options)["error"]
