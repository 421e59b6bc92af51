"""`infer.py synthesize` refuses in one line what it cannot do, and leaves everything as it was."""

import json
from pathlib import Path

import pytest

from common.locks import exclusive
from tests.helpers.commands import command, refused
from tests.helpers.people_corpus import PEOPLE, write_corpus

GIVEN = {"--corpus": "corpus.jsonl", "--out": "synthetic", "--limit": "null"}
LLM = {"--llm": "tests.helpers.people_corpus.PeopleLlm"}


def words(*options: dict[str, str]) -> list[str]:
    merged: dict[str, str] = {}
    for one in options:
        merged |= one
    return [word for option, value in merged.items() for word in (option, value)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the corpus."""
    write_corpus(tmp_path / "corpus.jsonl")
    return tmp_path


def test_a_folder_in_use_is_left_alone(folder: Path) -> None:
    with exclusive(folder / "synthetic"):
        refused(
            command(folder, "infer.py", "synthesize", *words(GIVEN, LLM)),
            2,
            "synthetic is in use by process",
        )


def test_nothing_is_written_if_no_question_is_kept(folder: Path) -> None:
    corpus = [{"title": name, "text": f"{name} lives in {town} ."} for name, town in PEOPLE.items() if name == "Bob"]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in corpus))
    whole = {"--out_layout": "fid", "--validation_share": "0", "--test_share": "0"}
    ended = command(folder, "infer.py", "synthesize", *words(GIVEN, LLM, whole))
    refused(ended, 65, "No question was kept", "answers something else from the passages 1")
    assert not (folder / "synthetic").exists()
