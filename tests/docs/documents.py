"""The documentation as data.

Pages, the commands they print, their links, and the parsers of the commands.
"""

import argparse
import importlib
import inspect
import os
import pydoc
import re
import runpy
import shlex
import subprocess
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

import jsonargparse
import pytest
import yaml

import infer
from common.roots import refuse_unused
from harness.evaluation.study import class_of

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "checkpoints/README.md")]
PAGES += [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "benchmarks/results/README.md", ROOT / "documents/README.md"]
CONFIGS = sorted((ROOT / "configs").rglob("*.yaml"))
OVERLAYS = [config for config in CONFIGS if config.parent.name == "overlays"]  # given after another config
SCRIPTS = sorted((ROOT / "scripts").rglob("*.sh"))
SHELL = ("", "bash", "sh", "console")  # languages of fences that hold commands
ASSIGNMENT = re.compile(r"[A-Z_]+=\S*")
COMMAND = re.compile(r"(?:[A-Z_]+=\S* )*(?:python|torchrun|make|bash|pip install -r|lightning-rag(?:-train)?)\s.*")
INSTALLED = {"lightning-rag-train": "train", "lightning-rag": "infer"}  # commands of the package -> programs
IN_COMMENT = re.compile(r"(?:^|:\s+|\s{3})((?:[A-Z_]+=\S* )?(?:python|torchrun|bash) .*)")
OPTIONS = re.compile(r"""(?:(?<![\w`-])--[a-z][\w.]*[ =](?:'[^']*'|"[^"]*"|[^\s,;:)'"]+)(?:\s+(?=--))?)+""")
SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)


class Printed(NamedTuple):
    """A command as a page, a config or a script prints it."""

    file: Path
    text: str

    @property
    def name(self) -> str:
        """For test ids."""
        return f"{self.file.relative_to(ROOT)}: {self.text[:90]}"


def fences(page: Path) -> list[tuple[str, str]]:
    """Language and text of every fenced block."""
    return FENCE.findall(page.read_text(encoding="utf-8"))


def prose(page: Path) -> str:
    """A page without its fenced blocks."""
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def joined(text: str) -> list[str]:
    """Lines, stripped, with those that end in a backslash joined to the next."""
    return [line.strip() for line in re.sub(r"\s*\\\n\s*", " ", text).splitlines()]


def printed_on(page: Path) -> list[Printed]:
    """Commands of the fenced and indented blocks of a page, and those in its lines between backticks."""
    bare = prose(page)
    if page.name == "CHANGELOG.md":  # of a table "before | now" what works now
        bare = re.sub(r"(?m)^\| .*? \| ", "", bare)
    blocks = [text for language, text in fences(page) if language in SHELL]
    blocks.append("\n".join(line for line in bare.splitlines() if line.startswith("    ")))
    lines = [line for text in blocks for line in joined(text)]
    lines += [f"python {span}" if span.startswith(("train.py ", "infer.py ")) else span for span in SPAN.findall(bare)]
    return [Printed(page, line) for line in lines if COMMAND.fullmatch(line)]


def comments_of(file: Path) -> list[str]:
    """The joined lines of the comment header of a config or a script."""
    return joined("\n".join(re.findall(r"(?m)^#(.*?)\s*$", file.read_text(encoding="utf-8"))))


def printed_in_comments(file: Path) -> list[Printed]:
    """Commands in the comment header of a config or a script."""
    return [Printed(file, match[1]) for line in comments_of(file) if (match := IN_COMMENT.search(line))]


def options_printed_in(config: Path) -> list[Printed]:
    """Options in a config's header outside its commands; those that follow each other are one text."""
    rest = " ".join(line for line in comments_of(config) if not IN_COMMENT.search(line))
    return [Printed(config, found[0].strip().rstrip(".")) for found in OPTIONS.finditer(rest)]


def commands_of(script: str, arguments: list[str], place: Path) -> list[list[str]]:
    """The commands that a script of `scripts/` runs, in their order, each as its arguments to Python.

    It runs in `place`, an empty folder, with a stand-in for Python that writes down its arguments and does nothing
    else.
    """
    recorder = place / "python"
    recorder.write_text(
        '#!/usr/bin/env bash\n[ "$1" = -c ] && { echo asked; exit; }\n'
        f'printf "%s\\0" "$@" > $(mktemp {place}/command.$(date +%s%N).XXXXXX)\n'
    )
    recorder.chmod(0o755)
    given = {**os.environ, "PYTHON": str(recorder), "LM": "google/gemma-3-270m", "DATA": "data"}
    typed = ["bash", str(ROOT / "scripts" / script), *arguments]
    run = subprocess.run(typed, cwd=place, capture_output=True, text=True, timeout=60, env=given)
    assert run.returncode == 0, run.stderr
    return [file.read_text().split("\0")[:-1] for file in sorted(place.glob("command.*"))]


def runs_of(overlay: Path) -> list[list[str]]:
    """The options of every command in an overlay's header: a config, the overlay, and what another model needs."""
    commands = [words(printed.text) for printed in printed_in_comments(overlay)]
    runs = [command[command.index("fit") + 1 :] for command in commands]
    assert all(["--config", str(overlay.relative_to(ROOT))] == run[2:4] for run in runs)
    return runs


def words(command: str) -> list[str]:
    """A command's words, without its comment, what follows a wide gap, and assignments before it."""
    split = shlex.split(re.split(r"\s{3,}", command)[0], comments=True)
    while ASSIGNMENT.fullmatch(split[0]):
        split.pop(0)
    return split


@cache
def parser_of(program: str) -> argparse.ArgumentParser:
    """The parser that train.py, infer.py or a module builds when it is run, built once; nothing is parsed or run."""
    built: list[argparse.ArgumentParser] = []
    with pytest.MonkeyPatch.context() as patch, suppress(SystemExit):
        patch.setattr(sys, "argv", [program])
        if "import argparse" not in (ROOT / program.replace(".", "/")).with_suffix(".py").read_text(encoding="utf-8"):
            return jsonargparse.capture_parser(importlib.import_module(program).main, [])
        patch.setattr(argparse.ArgumentParser, "parse_args", lambda own, *_: built.append(own) or sys.exit())
        patch.delitem(sys.modules, program, raising=False)  # runpy warns of a module that is there already
        runpy.run_module(program, run_name="__main__")
    return built[0]


@cache
def config_of_run(name: str) -> str:
    """The config whose run is called `name`."""
    (config,) = [file for file in CONFIGS if yaml.safe_load(file.read_text()).get("name") == name]
    return str(config)


def parse(program: str, arguments: list[str]) -> None:
    """Have a program's own parser parse arguments; a saved config of a run stands for the config it was made from.

    Raises:
        AssertionError: With the parser's message, if it refuses them, or if something of the example is left.
    """
    saved = re.compile(r"checkpoints/([\w-]+)/config\.yaml")
    arguments = [config_of_run(m[1]) if (m := saved.fullmatch(word)) else word for word in arguments]
    systems = infer.systems_of(arguments) if program == "infer" else {}
    evaluated, used = [], set[str]()
    for each in systems.values() or [arguments]:
        code, parsed = 0, None
        try:
            parsed = parser_of(program).parse_args(each)
        except SystemExit as stop:  # --help and its like leave with 0
            code = stop.code
        assert not code, f"{program} refuses {each}"
        used |= getattr(parser_of(program), "used_roots", set())
        if parsed is not None and program == "infer" and "evaluate" in parsed:
            assert (parsed.evaluate.system is None) != (parsed.evaluate.run is None), f"one of both: {each}"
            evaluated += [parsed.evaluate] if parsed.evaluate.run is None else []
        if parsed is not None and program == "infer" and "ask" in parsed and parsed.ask.questions is None:
            assert parsed.ask.system.init_args.get("retriever", "own") is not None, f"nothing to search: {each}"
    # a study of one of the systems has the given options --study.*
    classes = [pydoc.locate(options.system.class_path) for options in evaluated]
    studies = [class_of(object.__new__(each), "study") for each in classes]  # type: ignore[call-overload]
    known = {name for study in studies if study for name in inspect.signature(study).parameters}
    assert all(set(options.study or {}) <= known for options in evaluated), f"no study has an option of {arguments}"
    refuse_unused(infer.configs_and_others(arguments)[1] if systems else arguments, used)


def check_python(arguments: list[str]) -> None:
    """Check what follows `python` or `torchrun --nproc-per-node N`."""
    if arguments[0] == "--no-python":
        arguments = [f"{INSTALLED[arguments[1]]}.py", *arguments[2:]]
    if arguments[:2] == ["-m", "lightning_rag"]:
        del arguments[1]
    if arguments[0] == "-m":
        module, has_main = arguments[1], ROOT / arguments[1].replace(".", "/") / "__main__.py"
        parse(f"{module}.__main__" if has_main.is_file() else module, arguments[2:])
        return
    program = ROOT / arguments[0]
    assert program.is_file(), f"{arguments[0]} does not exist"
    if len(arguments) == 2 and not arguments[1].startswith("-"):  # only names the command, as in `infer.py index`
        arguments = [*arguments, "--help"]
    parse(program.stem, arguments[1:])


def check(command: str) -> None:
    """Resolve and parse one command, from the repository's root.

    Raises:
        AssertionError: If it names what does not exist, or its parser refuses it.
    """
    program, *arguments = words(command)
    if arguments[:2] == ["-m", "lightning_rag.torchrun"]:
        program, arguments = "torchrun", arguments[2:]
    with pytest.MonkeyPatch.context() as patch:
        for folder in re.findall(r"(?<!\S)PYTHONPATH=(\S+)", command):
            patch.syspath_prepend(str(ROOT / folder))
        if program == "torchrun":
            assert (arguments[0], arguments[1].isdigit()) == ("--nproc-per-node", True)
            check_python(arguments[2:])
        elif program in INSTALLED:
            parse(INSTALLED[program], arguments)
        elif program == "python":
            check_python(arguments)
        elif program == "make":
            targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
            assert {word for word in arguments if not ASSIGNMENT.fullmatch(word)} <= {*targets}, "no such target"
        elif program == "bash":
            assert (ROOT / arguments[0]) in SCRIPTS, f"no such script: {arguments[0]}"
        else:
            assert (program, *arguments[:2]) == ("pip", "install", "-r"), f"cannot check {command}"
            assert (ROOT / arguments[2]).is_file(), f"no such file: {arguments[2]}"


def links(page: Path) -> list[str]:
    """Targets of a page's links and images."""
    return re.findall(r"\]\(([^)\s]+)\)", prose(page))
