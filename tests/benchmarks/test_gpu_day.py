"""The script for a card, rehearsed on the CPU, with a step that fails; its table and what finds no room, by hand."""

import json
import os
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from multiprocessing.connection import Listener
from pathlib import Path

import pytest
import torch

from benchmarks.gpu_day.__main__ import STEPS
from benchmarks.gpu_day.turns import OURS, compared
from tests.helpers.forked import ROOT, forked

TESTS = {"equal", "bf16", "ranks", "memory"}
MEASURED = (  # a row of the table for each
    "matrix product in bfloat16",
    "DR-RAG, BigBird-base, triples | tokens/s",
    "RE-RAG, two T5-base, 4 contexts | tokens/s",
    "causal LM of 0.5 B with LoRA | tokens/s",
    "% of the matrix rate",
    "peak GiB",
    "scoring triples, BigBird-base | triples/s",
    "reranking passages, BERT-base | passages/s",
)


PYTHON = """#!{python}
import os, sys
from multiprocessing.connection import Client
with Client({address!r}) as asked:
    asked.send((sys.argv[1:], dict(os.environ)))
    code, out, err = asked.recv()
sys.stdout.write(out)
sys.stderr.write(err)
raise SystemExit(code if code >= 0 else 128 - code)
"""


@pytest.fixture
def python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An interpreter for `-m MODULE ...` whose packages are loaded already."""
    folder = tmp_path_factory.mktemp("python")
    (folder / "python").write_text(PYTHON.format(python=sys.executable, address=str(folder / "socket")))
    (folder / "python").chmod(0o755)
    with Listener(str(folder / "socket")) as listener:

        def serve() -> None:
            while True:
                with listener.accept() as asked:
                    (option, module, *arguments), environment = asked.recv()
                    assert option == "-m"
                    ended = forked(module, ROOT, *arguments, **environment)
                    asked.send((ended.returncode, ended.stdout, ended.stderr))

        threading.Thread(target=serve, daemon=True).start()
        yield str(folder / "python")


@pytest.mark.whole_run
def test_the_whole_day_is_rehearsed_on_the_cpu(tmp_path: Path, python: str) -> None:
    typed = ["bash", str(ROOT / "scripts/gpu_day.sh"), "--rehearse", "--out", str(tmp_path)]
    code = subprocess.run(typed, env={**os.environ, "PYTHON": python}, stdout=subprocess.PIPE, timeout=600).returncode
    steps = [json.loads(line) for line in (tmp_path / "steps.jsonl").read_text().splitlines()]
    logs = {step["step"]: (tmp_path / f"{step['step']}.log").read_text()[-2000:] for step in steps if step["exit"]}
    assert (code, logs) == (0, {})
    assert {step["step"] for step in steps} == TESTS | set(STEPS)
    assert sum(step["limit"] for step in steps) == 3 * 600  # on a card ten minutes
    made = {step["step"]: json.loads((tmp_path / f"{step['step']}.json").read_text()) for step in steps}
    assert all(made[name]["rows"] for name in STEPS)
    assert {outcome for name in TESTS for outcome in made[name]["outcomes"].values()} == {"passed"}
    table = (tmp_path / "table.md").read_text()
    assert [each for each in MEASURED if each not in table] == []
    with tarfile.open(tmp_path / "gpu_day.tar.gz") as archive:
        assert {f"./{name}.{kind}" for name in made for kind in ("json", "log")} < set(archive.getnames())


def test_what_finds_no_room_is_left_out_and_named() -> None:
    tried = []

    def too_large() -> None:
        tried.append(1)
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9 GiB")

    rate, _ = compared("scoring", {OURS: lambda: None, "theirs": too_large}, 10, "pairs", 3)
    assert rate[OURS] > 0
    assert [rate[key] for key in ("measure", "beside", "no_room")] == ["pairs/s", {}, {"theirs": "CUDA out of memory"}]
    assert len(tried) == 1
