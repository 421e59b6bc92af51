"""Help and version: quick, complete, with the classes that can be given; closed pipes and Ctrl-C leave no traceback."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import infer
import train
from common.errors import CLOSED_PIPE, INTERRUPTED
from common.version import VERSION
from scripts.train_help import page
from tests.docs.documents import ROOT
from tests.helpers.commands import done
from trainers.run.help import FILE

HEAVY = {"torch", "transformers", "numpy", "datasets", "faiss", "pytorch_lightning", "jsonargparse"}


@pytest.mark.parametrize(
    ("program", "arguments"),
    [("train", ["--help"]), ("train", ["fit", "--model.help"]), ("train", ["--version"]), ("infer", ["--help"])],
)
def test_help_imports_no_large_package(program: str, arguments: list[str]) -> None:
    """So it takes well below a second, where Lightning alone takes several to import."""
    heavy = HEAVY if program == "train" else HEAVY - {"jsonargparse"} | {"openai"}
    shown = f"print('loaded:', *({heavy} & set(sys.modules)))"
    code = f"import sys, {program}\ntry: {program}.main({arguments})\nexcept SystemExit: pass\n{shown}"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "loaded:"


def test_help_of_train_is_that_of_its_parser() -> None:
    """If this fails after a change of options or classes: python -m scripts.train_help."""
    assert FILE.read_text(encoding="utf-8") == page()


@pytest.mark.parametrize(("program", "module"), [("train.py", train), ("infer.py", infer)])
def test_help_and_version(program: str, module: ModuleType, tmp_path: Path) -> None:
    examples = [line for line in (module.__doc__ or "").splitlines() if line.startswith("    ")]
    assert set(examples) <= set(done(tmp_path, program, "--help").out.splitlines())
    assert len(examples) > 4
    assert done(tmp_path, program, "--version").out.split()[-1] == VERSION
    for asked in (["ask", "--help"], ["ask", "--system.help", "harness.systems.drrag.DrRag"]):
        assert "<class" not in done(tmp_path, "infer.py", *asked).out  # no internal names of types
    read, write = os.pipe()
    os.close(read)  # the reader of the output has gone, as after `| head -1`
    typed = [sys.executable, str(ROOT / program), "--help"]
    run = subprocess.run(typed, stdout=write, stderr=subprocess.PIPE, text=True, timeout=60)
    os.close(write)
    assert (run.returncode, run.stderr) == (CLOSED_PIPE, "")


SLOW = """
import time
from harness.systems.retrieve_read import RetrieveRead

class Slow(RetrieveRead):
    def __init__(self) -> None:
        print("loading", flush=True)
        time.sleep(60)
"""


def test_ctrl_c_ends_a_command_with_one_line(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "infer.py"), "ask", "--system", "slow.Slow", "--question", "x"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "loading\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (INTERRUPTED, "infer.py: interrupted.\n")


@pytest.mark.parametrize(("name", "resumes"), [("index", True), ("label", True), ("evaluate", True), ("export", False)])
def test_after_ctrl_c_a_command_says_how_to_go_on(name: str, resumes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["infer.py", name, "--out", "x"])
    assert ("type the same command again" in infer.kept()) == resumes


def test_shell_completion(tmp_path: Path) -> None:
    """The script that docs/command_line.md has the shell read."""
    run = subprocess.run(
        [sys.executable, str(ROOT / "infer.py"), "--print_completion=shtab-bash"],
        env={**os.environ, "JSONARGPARSE_ADD_PRINT_COMPLETION_ARGUMENT": "true"}, cwd=tmp_path,
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    checked = subprocess.run(["bash", "-n"], input=run.stdout, capture_output=True, text=True)
    assert (checked.returncode, checked.stderr) == (0, "")
    assert "--system.help" in run.stdout
