"""Questions that are in the corpus themselves, as ArguAna's: left out of what every system and command retrieves."""

import json
from collections.abc import Sequence

import pytest

from common.records import Answer, Passage, Question
from harness.evaluation.drrag.study import Study
from harness.evaluation.engine import ask_rows
from harness.retrievers.bm25 import Bm25Retriever, build_bm25
from harness.retrievers.hard_negatives import HardNegatives
from harness.runtime.memo import Memo
from harness.selection.options import SelectionOptions
from harness.systems.dmqr import Dmqr
from harness.systems.drrag import DrRag
from harness.systems.retrieve_read import RetrieveRead
from tests.helpers.commands import command, done, refused
from tests.helpers.reports import questions, report
from tests.helpers.table_rewriter import TableRewriter

ROWS = [
    {"_id": 7, "title": "", "text": "jade market hall"},
    {"_id": "7", "title": "Market", "text": "jade market hall, its second half"},
    {"_id": "copy", "title": "Other", "text": "jade market hall"},
    {"_id": "d1", "title": "", "text": "jade market of the north"},
    {"_id": "d2", "title": "", "text": "the hall of a market"},
    {"_id": "d3", "title": "", "text": "jade lake"},
    {"_id": "d4", "title": "", "text": "orchard basin"},
]
ASKED = [{"id": 7, "question": "jade market hall", "answer": "x", "gold_doc_ids": ["d1"]},
         {"id": "d2", "question": "the market of jade", "answer": "x", "gold_doc_ids": ["d1"]}]  # fmt: skip
QUESTIONS = [Question(str(row["id"]), str(row["question"])).excluding_self() for row in ASKED]
BM25 = ("--system.retriever", "harness.retrievers.bm25.Bm25Retriever", "--system.retriever.index", "index")
SYSTEM = ("--system", "harness.systems.retrieve_read.RetrieveRead", *BM25, "--system.k", "2")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory):
    """A folder with `index` and `q.jsonl`."""
    folder = tmp_path_factory.mktemp("exclude_self")
    build_bm25([Passage.of(row["title"], row["text"], corpus_id=str(row["_id"])) for row in ROWS], folder / "index")
    for name, rows in (("corpus.jsonl", ROWS), ("q.jsonl", ASKED)):
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.fixture(scope="module")
def bm25(place) -> Bm25Retriever:
    return Bm25Retriever(place / "index")


def ids(hits) -> list[str]:
    return [hit.passage.corpus_id for hit in hits]


def others(bm25: Bm25Retriever, query, k: int) -> list[list[str]]:
    """The first k of all that the queries find, without each question's own passages, which are written down here."""
    found = zip(bm25.search([query(question) for question in QUESTIONS], 100), (("7", "copy"), ("d2",)), strict=True)
    return [[id_ for id_ in ids(hits) if id_ not in own][:k] for hits, own in found]


def test_what_a_system_retrieves(bm25) -> None:
    whole = RetrieveRead(bm25, 2).answer([Question("7", "jade market hall")])
    assert set(ids(whole[0].evidence)) <= {"7", "copy"}  # without the option
    for system in (RetrieveRead(bm25, 2), DrRag(bm25, selection=SelectionOptions("sm", k=2))):
        found = [ids(answer.evidence) for answer in system.answer(QUESTIONS)]
        assert found == others(bm25, lambda question: question.text, 2)
        assert sorted(found[0]) == ["d1", "d2"]


def test_queries_that_two_questions_share_find_the_one_for_the_other(bm25) -> None:
    """`hall` finds d2, which is the second question, for the first alone."""
    table = {question.text: {"kwr": ["hall"]} for question in QUESTIONS}
    system = Dmqr(bm25, TableRewriter(table), ("kwr",), per_query=2, k=9, fusion="rrf")
    lists = [[ids(search.hits) for search in each.searches] for each in system.search.find(QUESTIONS, 9).results]
    own, shared = others(bm25, lambda question: question.text, 2), others(bm25, lambda _: "hall", 2)
    assert lists == [list(each) for each in zip(own, shared, strict=True)]
    assert ("d2" in shared[0], sorted(shared[1])) == (True, ["7", "copy"])


def test_both_searches_of_drrag_its_study_and_mining(bm25) -> None:
    answers = [DrRag(bm25, selection=SelectionOptions("qdc", k=4)).answer(QUESTIONS)]
    studied = ask_rows(Study(ks=(2, 4)).rows_of(DrRag(bm25, selection=SelectionOptions("sm"))), QUESTIONS, Memo())
    assert len(studied) == 6
    for first, second in (*answers, *studied.values()):
        assert not {*ids(first.evidence)} & {"7", "copy"}
        assert "d2" not in ids(second.evidence)
    mined = HardNegatives(bm25, 24, 2, 3, 1).of(QUESTIONS)
    assert [{passage.corpus_id for passage in each} & {"7", "copy", "d2"} for each in mined] == [{"d2"}, {"7", "copy"}]


class Plain(RetrieveRead):
    """A system from outside, which searches itself."""

    def answer(self, questions: Sequence[Question]) -> list[Answer]:
        return super().answer([Question(each.id, each.text) for each in questions])


def test_commands(place) -> None:
    asked, exclude = ("--questions", "q.jsonl", "--layout", "corpus_questions"), ("--exclude_self", "true")
    measured = (*asked, "--gold", "index", "--ks", "[1,2]", "--resamples", "50", *exclude)
    done(place, "infer.py", "evaluate", *SYSTEM, *measured, "--out", "without")
    assert report(place / "without")["questions"]["exclude_self"]
    rows = questions(place / "without")
    assert [len(row["evidence"]) for row in rows] == [2, 2]
    assert "7" not in {hit["corpus_id"] for hit in rows[0]["evidence"]}
    ended = done(place, "infer.py", "ask", *SYSTEM, *asked, *exclude, "--json", "true")
    first, _ = map(json.loads, ended.out.splitlines())
    assert sorted(hit["passage"]["corpus_id"] for hit in first["evidence"]) == ["d1", "d2"]
    bm25 = ("--retriever", "harness.retrievers.bm25.Bm25Retriever", "--retriever.index", "index")
    done(place, "infer.py", "mine", *bm25, "--corpus", "corpus.jsonl", *asked, "--out", "mined.jsonl", *exclude)
    texts = [{p["text"] for p in json.loads(line)["passages"]} for line in (place / "mined.jsonl").open()]
    assert ["jade market hall" in each for each in texts] == [False, True]
    plain = ("evaluate", "--system", f"{__name__}.Plain", *BM25, *measured, "--out", "outside")  # leaves none out
    refused(command(place, "infer.py", *plain), 2, "retrieves question '7' itself", "common.retrieval.search_for")
