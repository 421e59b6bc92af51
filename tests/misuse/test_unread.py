"""An unknown layout or a missing package is refused before any model, index or data file is read: every command."""

import os
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from string import Template
from typing import Any

import pytest
import yaml

from tests.helpers.commands import command, refused
from tests.misuse.test_lines import NAMES

LINES = yaml.safe_load(Path(__file__).with_name("unread.yaml").read_text())
PACKAGES = [(module, *line) for module, lines in LINES["packages"].items() for line in lines]
OTHERS = {"tensorboard": "tensorboardX"}  # modules that do as well
WATCHED: list[str] = []  # a folder in which files are opened
OPENED: list[str] = []


def watch(event: str, arguments: tuple[Any, ...]) -> None:
    """Note the files of the watched folder that Python opens, but configs and locks."""
    if event == "open" and WATCHED and isinstance(arguments[0], str):
        file = os.path.abspath(arguments[0])
        if file.startswith(WATCHED[0]) and not file.endswith((".yaml", ".lock")):
            OPENED.append(file)


sys.addaudithook(watch)  # it stays: none can be removed


@contextmanager
def opened(folder: Path) -> Iterator[list[str]]:
    """The files of a folder that are opened meanwhile."""
    OPENED.clear()
    WATCHED.append(f"{folder}/")
    try:
        yield OPENED
    finally:
        WATCHED.clear()


@pytest.mark.parametrize(("module", "place", "typed", "said"), [*PACKAGES, *(("", *line) for line in LINES["layouts"])])
def test_an_unknown_layout_or_a_missing_package(
    made: Callable[[str], Path], module: str, place: str, typed: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line is refused with exit code 2, opens no file of its folder but configs, and leaves none."""
    for name in filter(None, (module, OTHERS.get(module))):
        monkeypatch.setitem(sys.modules, name, None)  # as if it were not installed
    folder = made(place)
    before = sorted(folder.rglob("*"))
    with opened(folder) as files:
        ended = command(folder, *shlex.split(Template(typed).substitute(NAMES)))
    refused(ended, 2, said)
    assert files == []
    assert sorted(folder.rglob("*")) == before


def test_files_that_are_opened_are_seen(made: Callable[[str], Path]) -> None:
    folder = made("asking")
    with opened(folder) as files:
        command(folder, "infer.py", "ask", "--config", "plain.yaml", "--questions", "questions.json", "--limit", "1")
    assert {Path(file).relative_to(folder).parts[0] for file in files} == {"questions.json", "bm25"}
