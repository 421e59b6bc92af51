"""`infer.py mine` on a small BM25 index: what it writes, what counts as gold, options, bad input."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from common.records import Passage
from harness.commands.mine import QUESTIONS_AT_ONCE
from harness.indexing.index_folder import Build
from harness.retrievers.bm25 import build_bm25
from harness.retrievers.links import build_links
from tests.helpers.commands import apart, command
from tests.helpers.killing_retriever import KILLED_AT
from tests.helpers.mined_files import read_mined

# The question asks for "kiln". Three passages hold the word; "amber" leads on from the gold one, "delta" from the
# hidden one.
GOLD = Passage.of("north", "kiln amber")
NOISE = Passage.of("south", "kiln kiln")
BEHIND_GOLD = Passage.of("east", "amber jetty")
HIDDEN = Passage.of("west", "kiln delta meadow")
BEHIND_HIDDEN = Passage.of("far", "delta glade")
UNREACHED = Passage.of("none", "orchard basin")
CORPUS = [GOLD, NOISE, BEHIND_GOLD, HIDDEN, BEHIND_HIDDEN, UNREACHED]


def row(id_: str, question: str = "kiln") -> dict[str, Any]:
    """A question whose file ships one gold passage and names another, "west", by its title alone."""
    return {
        "_id": id_, "question": question, "answer": "amber", "type": "bridge", "level": "hard",
        "supporting_facts": [["north", 0], ["west", 0]],
        "context": [["north", ["kiln amber"]], ["elsewhere", ["orchard"]]],
    }  # fmt: skip


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with `index` and `train.json` of one question, to run in."""
    build_bm25(CORPUS, tmp_path / "index")
    (tmp_path / "train.json").write_text(json.dumps([row("q1")]))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*more: str, questions: str = "train.json") -> int:
    """What the shell would see."""
    typed = ("--retriever", "harness.retrievers.bm25.Bm25Retriever", "--retriever.index", "index", "--questions")
    ended = command(Path.cwd(), "infer.py", "mine", *typed, questions, "--out", "mined.jsonl", *more)
    print(ended.err, file=sys.stderr)
    return ended.code


def mined(id_: str = "q1") -> Sequence[Passage]:
    return read_mined(["mined.jsonl"])[id_]


def hits() -> dict[str, list[str]]:
    """The titles that each anchor found, by the anchor's."""
    titles = {passage.id: passage.title for passage in CORPUS}
    found = read_mined(["mined.jsonl"])["q1"].hits
    return {titles[anchor]: [titles[id_] for id_ in own] for anchor, own in found.items()}


def test_both_stages_are_mined_and_gold_is_left_out(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    earlier = '{"question_id": "q0", "passages": []}\n'
    (place / "mined.jsonl").write_text(earlier)
    assert run(questions="nowhere.json") == 66
    assert (place / "mined.jsonl").read_text() == earlier
    assert run() == 0
    # first stage, "kiln": south (twice the word), north, west.  Second stage, with each of them: east and far.
    assert mined()[0] == NOISE  # best ranks first
    assert set(mined()) == {NOISE, BEHIND_GOLD, BEHIND_HIDDEN}
    assert "mined.jsonl: 3 hard negatives for 1 questions." in capsys.readouterr().err
    (line,) = (place / "mined.jsonl").read_text().splitlines()
    assert json.loads(line)["passages"][0] == {"title": "south", "text": "kiln kiln"}
    # q* of south: "kiln south kiln kiln", of north: "kiln north kiln amber". West, gold by its title alone, is left out
    assert hits() == {"south": ["north"], "north": ["south", "east"]}

    copies = [Passage.of("north (copy)", "Kiln  amber"), Passage.of("", "west: kiln delta meadow")]
    build_bm25([*CORPUS, *copies], place / "index", build=Build(overwrite=True))
    assert run() == 0
    assert set(mined()) == {NOISE, BEHIND_GOLD, BEHIND_HIDDEN}
    said = "mined.jsonl: 3 hard negatives for 1 questions; 2 passages with a gold passage's text are none."
    assert said in capsys.readouterr().err


def test_a_second_retriever_searches_the_second_stage(place: Path) -> None:
    """Title links find only what a passage names: nothing here but the passage itself."""
    build_links(CORPUS, place / "links")
    links = ("--second_retriever", "harness.retrievers.links.LinkRetriever", "--second_retriever.index")
    assert run(*links, "links") == 0
    assert set(mined()) == {NOISE}  # of the first stage
    assert hits() == {"north": [], "south": []}
    build_links(CORPUS[1:], place / "other")
    assert run(*links, "other", "--out", "refused.jsonl") == 74
    assert not (place / "refused.jsonl").exists()


BOTH = {"south": ["north"], "north": ["south", "east"]}


@pytest.mark.parametrize(
    ("question", "option", "found", "expected"),
    [
        ("kiln", "--per_question=1", ["south"], {"south": ["north"], "north": ["south"]}),  # east is not kept
        ("kiln", "--anchors=1", ["south", "east"], BOTH),  # south, the first, leads nowhere: "far" is behind the third
        ("kiln", "--depth=1", ["south", "east"], BOTH),  # one first-stage document, and one more for the gold one
        ("kiln", "--anchors=0", ["south"], {}),  # east is behind north, far behind west
        # "delta kiln amber": "amber", in a shorter passage, is worth more than one "delta" and less than two
        ("delta", "--question_weight=1", ["far", "east", "south"], {"far": [], "north": ["east", "far", "south"]}),
        ("delta", "--question_weight=2", ["far", "east", "south"], {"far": [], "north": ["far", "east", "south"]}),
        # finds "far" alone, and with it ("delta glade") nothing new but west, which is gold; the gold document, which
        # is joined even where the question does not find it, finds south and east
        ("glade", "--anchors=1", ["far", "south", "east"], {"far": [], "north": ["far", "east", "south"]}),
    ],
)
def test_what_an_option_lets_be_found(
    place: Path, question: str, option: str, found: list[str], expected: dict[str, list[str]]
) -> None:
    (place / "train.json").write_text(json.dumps([row("q1", question)]))
    assert run(option) == 0
    assert sorted(passage.title for passage in mined()) == sorted(found)
    assert mined()[0].title == found[0]
    assert hits() == expected


def test_several_files_and_more_questions_than_fit_a_chunk(place: Path) -> None:
    (place / "more.json").write_text(json.dumps([row(f"m{number}") for number in range(260)]))
    assert run(questions="[train.json, more.json]") == 0
    found = read_mined(["mined.jsonl"])
    assert list(found) == ["q1", *(f"m{number}" for number in range(260))]
    assert all(passages == found["q1"] for passages in found.values())


def started(place: Path, out: str, processes: int, killed_at: str = "") -> subprocess.CompletedProcess[str]:
    """Mining by the command line in so many processes; with `killed_at` killed before that search."""
    killing = "tests.helpers.killing_retriever.KillingRetriever"
    typed = ["mine", "--retriever", killing, "--retriever.index", "index", "--questions", "many.json", "--out", out]
    return apart(place, *typed, processes=processes, **{KILLED_AT: killed_at})


@pytest.mark.whole_run
def test_processes_share_the_work_and_a_killed_run_resumes_with_the_same_bytes(place: Path) -> None:
    words = ["kiln", "delta", "amber", "glade"]
    rows = [row(f"m{number}", words[number % 4]) for number in range(5 * QUESTIONS_AT_ONCE + 3)]
    (place / "many.json").write_text(json.dumps(rows))
    whole = started(place, "whole.jsonl", 1)
    assert whole.returncode == 0, whole.stderr
    shared = started(place, "shared.jsonl", 2)
    assert shared.returncode == 0, shared.stderr
    assert shared.stderr.count("hard negatives for 1,283 questions.") == 1  # only the first process prints
    killed = started(place, "killed.jsonl", 1, killed_at="5")  # two searches a batch: two batches are kept
    assert killed.returncode == -9
    assert not (place / "killed.jsonl").exists()
    resumed = started(place, "killed.jsonl", 2)
    assert resumed.returncode == 0, resumed.stderr
    assert "2 of 6 batches are there from an earlier run" in resumed.stderr
    assert len({(place / f"{name}.jsonl").read_bytes() for name in ("whole", "shared", "killed")}) == 1
    assert not (place / "killed.jsonl.partial").exists()


def test_gold_passages_named_by_the_ids_of_a_corpus(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = {"id": "q1", "question": "kiln", "gold_doc_ids": ["north-1", "west-1"]}
    (place / "train.json").write_text(json.dumps([asked]))
    rows = [{"_id": f"{p.title}-1", "title": p.title, "text": p.text} for p in CORPUS]
    (place / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    layout = ("--layout", "corpus_questions")
    assert run(*layout) == 2
    assert "names its gold passages by the ids of a corpus, such as 'north-1'" in capsys.readouterr().err
    assert not (place / "mined.jsonl").exists()
    assert run(*layout, "--corpus", "no.jsonl") == 66
    assert "no.jsonl does not exist" in capsys.readouterr().err
    assert run(*layout, "--corpus", "corpus.jsonl") == 0
    assert {p.title for p in mined()} == {"south", "east", "far"}  # each gold passage leads on
