"""`infer.py synthesize` refuses in one line what it cannot do, and leaves everything as it was."""

import json
from pathlib import Path

import pytest

from common.files import digests
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


@pytest.mark.parametrize(
    ("changed", "code", "parts"),
    [
        ({"--corpus": "no.jsonl"}, 66, ["no.jsonl does not exist"]),
        ({"--corpus": "empty.jsonl"}, 65, ["empty.jsonl is empty"]),
        ({"--corpus": "[]"}, 2, ["No corpus was given"]),
        ({"--layout": "squad"}, 2, ["unknown layout 'squad'", "hotpotqa"]),
        ({"--out_layout": "musique"}, 2, ["out_layout", "hotpotqa", "fid"]),
        ({"--hops": "3"}, 2, ["hops"]),
        ({"--limit": "0"}, 2, ["limit must be at least 1"]),
        ({"--contexts": "2"}, 2, ["contexts must be at least 3"]),
        ({"--least_f1": "60"}, 2, ["least_f1 must lie in [0, 1]"]),
        ({"--validation_share": "0.5", "--test_share": "0.5"}, 2, ["leave no passage for training"]),
        ({"--retriever": "harness.retrievers.bm25.Bm25Retriever", "--retriever.index": "i"}, 2, ["--found_within"]),
        ({"--reader": "harness.readers.t5.PackedReader", "--reader.serving": "nothing"}, 66, ["nothing"]),
        ({"--out": "notes"}, 2, ["notes exists and is not a folder of synthetic questions"]),
        ({"--corpus": "untitled.jsonl"}, 65, ["no passage has a title", "--out_layout fid"]),
        ({"--corpus": "alone.jsonl"}, 65, ["mentions the title of another", "--hops 1"]),
    ],
)
def test_what_cannot_be_done_is_one_line(folder: Path, changed: dict[str, str], code: int, parts: list[str]) -> None:
    (folder / "empty.jsonl").touch()
    (folder / "untitled.jsonl").write_text('{"text": "Ann lives in Rome"}\n')
    (folder / "alone.jsonl").write_text('{"title": "Ann", "text": "Ann lives in Rome"}\n')
    (folder / "notes").mkdir()
    (folder / "notes/thesis.tex").write_text("the only copy")
    before = digests(folder)
    refused(command(folder, "infer.py", "synthesize", *words(GIVEN, LLM, changed)), code, *parts)
    assert digests(folder) == before


def test_someone_must_write(folder: Path) -> None:
    refused(command(folder, "infer.py", "synthesize", *words(GIVEN)), 2, "--llm: not given, but required")


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
