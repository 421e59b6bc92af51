"""The script for a card, rehearsed on the CPU, with a step that fails; its table and what finds no room, by hand."""

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import torch

from benchmarks.gpu_day.__main__ import STEPS
from benchmarks.gpu_day.table import write_table
from benchmarks.gpu_day.turns import OURS, compared, row
from tests.helpers.runs import ROOT

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
    "ids and scores as on the CPU | queries | 8 of 8",
    "exact search of 3,000",
    "256 tokens | tokens/s",
)


def gpu_day(out: Path, *options: str, python: str = sys.executable) -> tuple[int, list[dict]]:
    """Exit code of a rehearsal, and how its steps ended."""
    ended = subprocess.run(
        ["bash", str(ROOT / "scripts/gpu_day.sh"), "--rehearse", "--out", str(out), *options],
        env={**os.environ, "PYTHON": python}, stdout=subprocess.PIPE, text=True, timeout=600,
    )  # fmt: skip
    return ended.returncode, [json.loads(line) for line in (out / "steps.jsonl").read_text().splitlines()]


@pytest.mark.whole_run
def test_the_whole_day_is_rehearsed_on_the_cpu(tmp_path: Path) -> None:
    code, steps = gpu_day(tmp_path)
    logs = {step["step"]: (tmp_path / f"{step['step']}.log").read_text()[-2000:] for step in steps if step["exit"]}
    assert (code, logs) == (0, {})
    assert {step["step"] for step in steps} == TESTS | set(STEPS)
    assert sum(step["limit"] for step in steps) == 3 * 480  # on a card eight minutes
    for name in STEPS:
        assert json.loads((tmp_path / f"{name}.json").read_text())["rows"], name
    for name in TESTS:
        assert set(json.loads((tmp_path / f"{name}.json").read_text())["outcomes"].values()) == {"passed"}, name
    table = (tmp_path / "table.md").read_text()
    assert [each for each in MEASURED if each not in table] == []
    with tarfile.open(tmp_path / "gpu_day.tar.gz") as archive:
        assert {f"./{name}.{kind}" for name in TESTS | set(STEPS) for kind in ("json", "log")} < set(archive.getnames())


@pytest.mark.whole_run
def test_a_step_that_fails_is_reported_and_stops_no_other(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/usr/bin/env bash\n[ "$3" = card ] && exit 3\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    code, steps = gpu_day(tmp_path / "out", "--only", "search", "--only", "card", python=str(python))
    assert code == 1
    assert [(step["step"], step["exit"]) for step in steps] == [("card", 3), ("search", 0)]
    table = (tmp_path / "out/table.md").read_text()
    assert "| card | 3 |" in table
    assert "exact search" in table


def test_without_a_gpu_it_says_how_to_rehearse(tmp_path: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    command = [sys.executable, "-m", "benchmarks.gpu_day", "card", "--out", str(tmp_path)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "torch sees no GPU: add --rehearse" in ended.stderr


def test_what_finds_no_room_is_left_out_and_named() -> None:
    tried = []

    def too_large() -> None:
        tried.append(1)
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9 GiB")

    rate, _ = compared("scoring", {OURS: lambda: None, "theirs": too_large}, 10, "pairs", 3)
    assert rate["measure"] == "pairs/s"
    assert rate[OURS] > 0
    assert rate["beside"] == {}
    assert rate["no_room"] == {"theirs": "CUDA out of memory"}
    assert len(tried) == 1


def test_the_table_by_hand(tmp_path: Path) -> None:
    rows = [
        row("training", "tokens/s", {OURS: 3000.0, "transformers": 1500.0}),
        row("scoring", "pairs/s", {OURS: 20.0}, no_room={"CrossEncoder": "CUDA out of memory"}),
        row("ids", "queries", {OURS: 7}, of=8),
    ]
    tests = {
        "outcomes": {"a": "passed", "b": "failed", "c": "skipped"},
        "why": {"b": "AssertionError: x\nmore", "c": "no"},
    }
    (tmp_path / "one.json").write_text(json.dumps({"rows": rows}))
    (tmp_path / "two.json").write_text(json.dumps(tests))
    steps = [
        {"step": name, "exit": code, "seconds": 5, "limit": 9} for name, code in (("one", 0), ("two", 1), ("lost", 124))
    ]
    (tmp_path / "steps.jsonl").write_text("".join(json.dumps(step) + "\n" for step in steps))
    assert write_table(tmp_path).splitlines()[2:12] == [
        "| training | tokens/s | 3,000 | transformers | 1,500 | 2.00 |",
        "| scoring | pairs/s | 20 | CrossEncoder | no room |  |",
        "| ids | queries | 7 of 8 |  |  |  |",
        "| two | tests | 1 passed |  |  | 1 failed, 1 skipped |",
        "| failed: b |  |  |  |  | AssertionError: x |",
        "",
        "| step | exit code | seconds | limit |",
        "| --- | --- | --- | --- |",
        "| one | 0 | 5 | 9 |",
        "| two | 1 | 5 | 9 |",
    ]


def test_outcomes_of_tests_are_written(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(
        "import pytest\n\ndef test_good(): pass\n\ndef test_bad(): assert 1 == 2\n\n"
        "@pytest.mark.skip(reason='no card')\ndef test_left_out(): pass\n\n"
        "@pytest.fixture\ndef broken(): raise ValueError('no model')\n\ndef test_unset(broken): pass\n"
    )
    plugin = ("-p", "benchmarks.gpu_day.outcomes", "--outcomes", "found.json", "-n", "1", "-c", os.devnull)
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugin, "test_some.py"], cwd=tmp_path, check=False, capture_output=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    found = json.loads((tmp_path / "found.json").read_text())
    outcomes = {name.partition("::")[2]: outcome for name, outcome in found["outcomes"].items()}
    assert outcomes == {"test_good": "passed", "test_bad": "failed", "test_left_out": "skipped", "test_unset": "failed"}
    why = {name.partition("::")[2]: text for name, text in found["why"].items()}
    assert "1 == 2" in why["test_bad"]
    assert "no card" in why["test_left_out"]
    assert "no model" in why["test_unset"]
