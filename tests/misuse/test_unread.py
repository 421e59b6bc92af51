"""An unknown layout or a missing package is refused before any model, index or data file is read: every command."""

import os
import shlex
import sys
from collections.abc import Callable, Iterator
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


@pytest.fixture(autouse=True)
def _watching() -> Iterator[None]:
    OPENED.clear()
    yield
    WATCHED.clear()


def typed_in(folder: Path, typed: str, said: str) -> None:
    """A line is refused with exit code 2, opens no file of its folder but configs, and leaves none."""
    before = sorted(folder.rglob("*"))
    WATCHED.append(f"{folder}/")
    ended = command(folder, *shlex.split(Template(typed).substitute(NAMES)))
    WATCHED.clear()
    refused(ended, 2, said)
    assert OPENED == []
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize(("place", "typed", "said"), LINES["layouts"])
def test_an_unknown_layout(made: Callable[[str], Path], place: str, typed: str, said: str) -> None:
    typed_in(made(place), typed, said)


@pytest.mark.parametrize(("module", "place", "typed", "said"), PACKAGES)
def test_a_missing_package(
    made: Callable[[str], Path], module: str, place: str, typed: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in filter(None, (module, OTHERS.get(module))):
        monkeypatch.setitem(sys.modules, name, None)  # as if it were not installed
    typed_in(made(place), typed, said)


def test_files_that_are_opened_are_seen(made: Callable[[str], Path]) -> None:
    folder = made("asking")
    WATCHED.append(f"{folder}/")
    command(folder, "infer.py", "ask", "--config", "plain.yaml", "--questions", "questions.json", "--limit", "1")
    assert {Path(file).relative_to(folder).parts[0] for file in OPENED} == {"questions.json", "bm25"}
