"""What `evaluate`, `mine` and `index` find wrong in files, numbers and folders before they load anything.

No index, serving folder or encoder that these commands name exists: a check that came after loading would name it
instead.
"""

import json
from pathlib import Path

import pytest

from tests.conftest import hotpot_rows
from tests.helpers.commands import command, refused
from tests.helpers.retrieval_world import corpus, write_jsonl

BM25 = "harness.retrievers.bm25.Bm25Retriever"
INDEX = ("--strategy.retriever", BM25, "--strategy.retriever.index", "no/index")
STRATEGY = ("--strategy", "harness.strategies.drrag.DrRag", "--strategy.serving", "no/serving", *INDEX)
RERAG = ("--strategy", "harness.strategies.rerag.ReRag", "--strategy.serving", "no/serving", *INDEX)
PLAIN = ("--strategy", "harness.strategies.retrieve_read.RetrieveRead", *INDEX)
TYPED = {
    "evaluate": STRATEGY,
    "mine": ("--retriever", BM25, "--retriever.index", "no/index"),
}
ASKED = ("--questions", "questions.json", "--out", "out")
QUESTION_MISTAKES = [
    (("--questions", "nowhere.json"), 66, "nowhere.json does not exist"),
    (("--questions", "corpus.jsonl"), 65, "corpus.jsonl"),
    (("--questions", "empty.json"), 65, "empty.json is empty"),
    (("--layout", "hotpot"), 2, "unknown layout 'hotpot'"),
    (("--layout", "jsonl"), 2, "layout 'jsonl' is a corpus and has no questions"),
    (("--layout", "musique"), 65, "looks like hotpotqa"),
    (("--out", "questions.json"), 2, "questions.json exists and is not a"),
    (("--out", "questions.json/out"), 74, "questions.json is a file"),
    (("--out", "."), 2, "--out . does not name"),
]
MISTAKES = [
    *(("evaluate", *mistake) for mistake in QUESTION_MISTAKES),
    *(
        ("evaluate", (*system, *mistake[0]), *mistake[1:])
        for system in (RERAG, PLAIN)
        for mistake in QUESTION_MISTAKES[::3]
    ),
    *(("mine", *mistake) for mistake in QUESTION_MISTAKES[::3]),
    ("evaluate", ("--ks", "[0]"), 2, "ks is [0]; it must be"),
    ("evaluate", ("--resamples", "0"), 2, "resamples must be at least 1"),
    ("evaluate", ("--limit", "0"), 2, "limit is 0"),
    ("evaluate", ("--study.rows", "[QDC, best]"), 2, "study.rows contains 'best'; allowed: SM, QDC"),
    ("evaluate", ("--study.bm25", "no/bm25"), 66, "no/bm25: no such index"),
    ("evaluate", ("--study.bm25", "empty"), 74, "empty is not a complete index"),
    ("evaluate", ("--study.scores", "out"), 2, "--study.scores out must be a folder outside --out out"),
    ("evaluate", ("--study.scores", "out/scores"), 2, "must be a folder outside --out"),
    ("evaluate", ("--study.scores", "out.partial"), 2, "must be a folder outside --out out and out.partial"),
    ("evaluate", ("--study.scores", "questions.json"), 2, "must be a folder outside --out"),
    ("evaluate", ("--ks", "[5, 1]"), 2, "ks is [5, 1]; it must be"),
    ("evaluate", ("--limit=-1",), 2, "limit is -1"),
    ("evaluate", ("--study.ks", "[0]"), 2, "study.ks is [0]; it must be"),
    ("evaluate", ("--study.ks", "[3, 3]"), 2, "study.ks is [3, 3]; it must be"),
    ("evaluate", ("--study.ks", "many"), 2, "study.ks is 'many'; allowed: a list"),
    (
        "evaluate",
        ("--study.row", "[QDC]"),
        2,
        "study.row is no option of drrag's study; allowed: rows, ks, bm25, scores, tune, grid, most_documents, "
        "ceilings.",
    ),
    (
        "evaluate",
        (*PLAIN, "--study.rows", "[QDC]"),
        2,
        "study.rows: retrieve_read has no study of its own: omit the option.",
    ),
    (
        "evaluate",
        (*RERAG, "--study.rows", "[QDC]"),
        2,
        "study.rows is no option of rerag's study; allowed: temperature_questions",
    ),
    ("evaluate", (*RERAG, "--study.temperature_questions", "nowhere.json"), 66, "nowhere.json does not exist"),
    (
        "evaluate",
        (*RERAG, "--study.temperature_questions", "questions.json", "--study.temperature_limit", "0"),
        2,
        "limit is 0",
    ),
    (
        "evaluate",
        (*RERAG, "--study.temperature_limit", "few"),
        2,
        "study.temperature_limit is 'few'; allowed: a whole number",
    ),
    (
        "evaluate",
        (*RERAG, "--study.baseline_serving", "nowhere"),
        66,
        "study.baseline_serving: nowhere is no serving folder",
    ),
    ("mine", ("--per_question", "0"), 2, "per_question must be at least 1, got 0"),
    ("mine", ("--questions", "[]"), 2, "questions names no file"),
    ("mine", ("--questions", "[questions.json, nowhere.json]"), 66, "nowhere.json does not exist"),
]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "questions.json").write_text(json.dumps(hotpot_rows(2)))
    (tmp_path / "empty.json").write_text("")
    (tmp_path / "empty").mkdir()
    write_jsonl(tmp_path / "corpus.jsonl", corpus(3))
    return tmp_path


@pytest.mark.parametrize(("program", "mistake", "code", "part"), MISTAKES)
def test_mistakes_are_named_before_anything_is_loaded(
    program: str, mistake: tuple[str, ...], code: int, part: str, place: Path
) -> None:
    before = sorted(path.name for path in place.rglob("*"))
    line = refused(command(place, "infer.py", program, *TYPED[program], *ASKED, *mistake), code, part)
    assert "no/index" not in line
    assert sorted(path.name for path in place.rglob("*")) == before


def test_without_a_mistake_the_index_is_opened(place: Path) -> None:
    for program, typed in (*TYPED.items(), ("evaluate", RERAG), ("evaluate", PLAIN)):
        refused(command(place, "infer.py", program, *typed, *ASKED), 66, "no/index: no such index")


@pytest.mark.parametrize(
    ("mistake", "code", "part"),
    [
        (("--corpus", "nowhere.jsonl"), 66, "nowhere.jsonl does not exist"),
        (("--layout", "json"), 2, "unknown layout 'json'"),
        (("--chunk_passages", "0"), 2, "chunk_passages must be at least 1, got 0"),
        (("--max_tokens", "0"), 2, "max_tokens must be at least 1, got 0"),
        (("--batch_tokens=-5",), 2, "batch_tokens must be at least 1, got -5"),
        (("--nlist", "0"), 2, "nlist must be at least 1, got 0"),
        (("--kind", "bm25", "--b", "2"), 2, "b must lie in [0, 1], got 2.0"),
        (("--kind", "bm25", "--k1=-1"), 2, "k1 must be at least 0, got -1.0"),
    ],
)
def test_index_checks_before_the_encoder_is_loaded(mistake: tuple[str, ...], code: int, part: str, place: Path) -> None:
    typed = ("--corpus", "corpus.jsonl", "--encoder", "no/encoder", "--out", "out")
    refused(command(place, "infer.py", "index", *typed, *mistake), code, part)
    assert not (place / "out").exists()


def test_without_a_mistake_the_encoder_is_loaded(place: Path) -> None:
    typed = ("--corpus", "corpus.jsonl", "--encoder", "no/encoder", "--out", "out")
    refused(command(place, "infer.py", "index", *typed), 66, "no/encoder")
