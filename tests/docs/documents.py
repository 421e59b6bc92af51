"""The documentation as data.

Pages, the commands they print, their links and headings, and the parsers of the commands.
"""

import argparse
import importlib
import inspect
import os
import re
import runpy
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple, NoReturn

import jsonargparse
import pytest
import yaml

import infer
from common.roots import refuse_unused
from harness.evaluation.study import class_of

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "checkpoints/README.md", ROOT / "benchmarks/results/README.md", ROOT / "documents/README.md",
]  # fmt: skip
CONFIGS = sorted((ROOT / "configs").rglob("*.yaml"))
LISTS = [config for config in CONFIGS if "systems" in yaml.safe_load(config.read_text())]  # of a comparison's systems
OVERLAYS = [config for config in CONFIGS if config.parent.name == "overlays"]  # given after another config
SWEEPS = [config for config in CONFIGS if config.parent.name == "sweep"]  # for `wandb sweep`
SCRIPTS = sorted((ROOT / "scripts").rglob("*.sh"))
SHELL = ("", "bash", "sh", "console")  # languages of fences that hold commands
ASSIGNMENT = re.compile(r"[A-Z_]+=\S*")
COMMAND = re.compile(r"(?:[A-Z_]+=\S* )*(?:python|torchrun|make|bash|pip install -r|lightning-rag(?:-train)?)\s.*")
INSTALLED = {"lightning-rag-train": "train", "lightning-rag": "infer"}  # commands of the package -> programs
IN_COMMENT = re.compile(r"(?:^|:\s+|\s{3})((?:[A-Z_]+=\S* )?(?:python|torchrun|bash) .*)")
OPTIONS = re.compile(r"""(?:(?<![\w`-])--[a-z][\w.]*[ =](?:'[^']*'|"[^"]*"|[^\s,;:)'"]+)(?:\s+(?=--))?)+""")
SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")


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
    return re.findall(r"^```(\w*)\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def prose(page: Path) -> str:
    """A page without its fenced blocks."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def joined(text: str) -> list[str]:
    """Lines, stripped, with those that end in a backslash joined to the next."""
    return [line.strip() for line in re.sub(r"\s*\\\n\s*", " ", text).splitlines()]


def printed_on(page: Path) -> list[Printed]:
    """Commands of the fenced and indented blocks of a page, and those in its lines between backticks."""
    blocks = [text for language, text in fences(page) if language in SHELL]
    bare = prose(page)
    blocks.append("\n".join(line for line in bare.splitlines() if line.startswith("    ")))
    lines = [line for text in blocks for line in joined(text)]
    lines += [f"python {span}" if span.startswith(("train.py ", "infer.py ")) else span for span in SPAN.findall(bare)]
    return [Printed(page, line) for line in lines if COMMAND.fullmatch(line)]


def comments_of(file: Path) -> str:
    """The comment header of a config or a script."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return "\n".join(line[1:].rstrip() for line in lines if line[:1] == "#")


def printed_in_comments(file: Path) -> list[Printed]:
    """Commands in the comment header of a config or a script."""
    found = [IN_COMMENT.search(line) for line in joined(comments_of(file))]
    return [Printed(file, match[1]) for match in found if match]


def commands_of(script: str, arguments: list[str], place: Path) -> list[list[str]]:
    """The commands that a script runs, each as its arguments to Python.

    Args:
        script: File of `scripts/`, which runs with a stand-in for Python that writes down its arguments and does
            nothing else.
        arguments: Of the script.
        place: An empty folder in which it runs.
    """
    recorder, record = place / "python", place / "commands"
    recorder.write_text(
        '#!/usr/bin/env bash\nset -e\n[ "$1" = -c ] && { echo asked; exit; }\n'
        # one write: some run beside others
        f'{{ printf "%s\\0" "$@"; printf "\\n"; }} > {record}.$$\ncat {record}.$$ >> {record}\n'
    )
    recorder.chmod(0o755)
    run = subprocess.run(
        ["bash", str(ROOT / "scripts" / script), *arguments],
        cwd=place, capture_output=True, text=True, timeout=60,
        env={**os.environ, "PYTHON": str(recorder), "LM": "google/gemma-3-270m", "DATA": "data"},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return [line.split("\0")[:-1] for line in record.read_text().splitlines()]


def runs_of(overlay: Path) -> list[list[str]]:
    """The options of every command in an overlay's header: a config, the overlay, and what another model needs."""
    commands = [words(printed.text) for printed in printed_in_comments(overlay)]
    runs = [command[command.index("fit") + 1 :] for command in commands]
    assert all(["--config", str(overlay.relative_to(ROOT))] == run[2:4] for run in runs)
    return runs


def trial_of(sweep: Path, value: float = 1e-05) -> list[str]:
    """What W&B's agent types after `python train.py` for a trial of a sweep, each parameter with one value."""
    config = yaml.safe_load(sweep.read_text())
    typed = [word for word in config["command"] if not word.startswith("${")]
    return [*typed, *(f"--{name}={value}" for name in config["parameters"])]


def options_printed_in(config: Path) -> list[Printed]:
    """Options in a config's header outside its commands; those that follow each other are one text."""
    rest = " ".join(line for line in joined(comments_of(config)) if not IN_COMMENT.search(line))
    return [Printed(config, found[0].strip().rstrip(".")) for found in OPTIONS.finditer(rest)]


def words(command: str) -> list[str]:
    """A command's words, without its comment, what follows a wide gap, and assignments before it."""
    split = shlex.split(re.split(r"\s{3,}", command)[0], comments=True)
    while ASSIGNMENT.fullmatch(split[0]):
        split.pop(0)
    return split


class Built(Exception):  # noqa: N818 (no error: it hands over a parser)
    """Carries an argparse parser out of a command's main."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self.parser = parser


def hand_over(parser: argparse.ArgumentParser, *_: object, **__: object) -> NoReturn:
    """Stands in for argparse's `parse_args`."""
    raise Built(parser)


@cache
def parser_of(program: str) -> argparse.ArgumentParser:
    """The parser that train.py, infer.py or a module builds when it is run, built once; nothing is parsed or run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [program])
        if "import argparse" not in (ROOT / program.replace(".", "/")).with_suffix(".py").read_text(encoding="utf-8"):
            return jsonargparse.capture_parser(importlib.import_module(program).main, [])
        patch.setattr(argparse.ArgumentParser, "parse_args", hand_over)
        patch.delitem(sys.modules, program, raising=False)  # runpy warns of a module that is there already
        with pytest.raises(Built) as built:
            runpy.run_module(program, run_name="__main__")
    return built.value.parser


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
            evaluated.append(parsed.evaluate)
        if parsed is not None and program == "infer" and "ask" in parsed and parsed.ask.questions is None:
            assert parsed.ask.system.init_args.get("retriever", "own") is not None, f"nothing to search: {each}"
    check_study_options(evaluated)
    refuse_unused(infer.configs_and_others(arguments)[1] if systems else arguments, used)


def check_study_options(evaluated: list[jsonargparse.Namespace]) -> None:
    """Check that a study of one of the systems of a parsed `infer.py evaluate` has the given options `--study.*`."""
    known: set[str] = set()
    for options in evaluated:
        module, _, name = options.system.class_path.rpartition(".")
        system = getattr(importlib.import_module(module), name)
        study = class_of(system.__new__(system), "study")
        known |= set(inspect.signature(study).parameters) if study else set()
    for options in evaluated:
        assert set(options.study or {}) <= known, f"no system's study has these options: {options.study}"


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


def make_targets() -> set[str]:
    """Targets of the Makefile."""
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))


def check(command: str) -> None:
    """Resolve and parse one command, from the repository's root.

    Raises:
        AssertionError: If it names what does not exist, or its parser refuses it.
    """
    with pytest.MonkeyPatch.context() as patch:
        for folder in re.findall(r"(?<!\S)PYTHONPATH=(\S+)", command):
            patch.syspath_prepend(str(ROOT / folder))
        _check(*words(command))


def _check(program: str, *given: str) -> None:
    arguments = list(given)
    if arguments[:2] == ["-m", "lightning_rag.torchrun"]:
        program, arguments = "torchrun", arguments[2:]
    if program == "torchrun":
        option, processes, *rest = arguments
        assert option == "--nproc-per-node"
        assert processes.isdigit()
        check_python(rest)
    elif program in INSTALLED:
        parse(INSTALLED[program], arguments)
    elif program == "python":
        check_python(arguments)
    elif program == "make":
        targets = [word for word in arguments if not ASSIGNMENT.fullmatch(word)]
        assert set(targets) <= make_targets(), f"no such target: {targets}"
    elif program == "bash":
        assert (ROOT / arguments[0]) in SCRIPTS, f"no such script: {arguments[0]}"
    else:
        assert (program, *arguments[:2]) == ("pip", "install", "-r"), f"cannot check {[program, *given]}"
        assert (ROOT / arguments[2]).is_file(), f"no such file: {arguments[2]}"


def links(page: Path) -> list[str]:
    """Targets of a page's links and images."""
    return re.findall(r"\]\(([^)\s]+)\)", prose(page))
