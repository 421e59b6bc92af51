"""Retrieval recall on validation.

Gold passages matched by question, recall of fused lists by hand, indexes of other corpora.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from common.errors import DataError
from common.records import Passage, passage_text
from common.retrieval import Retriever
from datamodules.dmqr_recall import Recall, asked, check_corpus, read_gold, recalls
from datamodules.examples.data_files import QuestionDataFile
from tests.helpers.table_rewriter import TableRetriever

A, B, C, D, E = (Passage.of(name, f"text of {name}") for name in "ABCDE")


def row(question: str, gold: Sequence[str] = ("A",), shipped: Sequence[str] = ("A", "B")) -> dict[str, object]:
    """HotpotQA's layout."""
    return {
        "_id": question, "question": question, "answer": "x", "supporting_facts": [[title, 0] for title in gold],
        "context": [[title, [f"text of {title}"]] for title in shipped],
    }  # fmt: skip


def source(folder: Path, *rows: dict[str, object], name: str = "gold.json") -> QuestionDataFile:
    (folder / name).write_text(json.dumps(rows))
    return QuestionDataFile(str(folder / name), "hotpotqa")


def test_recall_of_the_same_number_of_passages_by_hand() -> None:
    """k = 2, gold B and D.  q finds A B: 1 of 2.  Fused, with 1/61 and 1/62 for ranks 1 and 2:

    A = 1/61 (q), B = 1/62 + 1/61 (q, r1), D = 1/62 + 1/62 (r1, r2), E = 1/61 (r2); so B, D: 2 of 2.
    """
    retriever = TableRetriever({"q": (A, B, D), "r1": (B, D), "r2": (E, D), "p": (C, A)})
    assert isinstance(retriever, Retriever)
    gold = [[{B.id}, {D.id}], [{C.id, E.id}], [{D.id}, {E.id}]]  # of the two with one id in the corpus, one is enough
    found = recalls(retriever, 2, [("q", "r1", "r2"), ("p",), ("none", "r1")], gold)
    assert found == [Recall(1.0, 0.5), Recall(1.0, 1.0), Recall(0.5, 0.0)]
    assert len(retriever.asked) == 1


def test_gold_passages_are_matched_by_the_text_of_the_question(tmp_path: Path) -> None:
    files = [
        source(tmp_path, row("who  is A"), row("other"), row("who is A", ["B"]), name="one.json"),
        source(tmp_path, row("of both", ["A", "B"]), row("gone", ["A", "Z"]), row("none", []), name="two.json"),
    ]
    wanted = {asked(text) for text in ("who is A", "of both", "gone", "none", "not there")}
    wanted.add(asked("other", ["in a dialogue"]))
    found = {key: question.gold_passages for key, question in read_gold(files, wanted).items()}
    assert found == {asked("who is A "): (A,), asked("of both"): (A, B)}


def test_gold_passages_of_a_corpus_are_found_by_its_ids(tmp_path: Path) -> None:
    (tmp_path / "corpus.csv").write_text(f"id,title,text\nx,{A.title},{A.text}\ny,{B.title},{B.text}\n")
    (tmp_path / "own.csv").write_text("question,gold\nwho is A,x\nof both,x|y\n")
    file = QuestionDataFile(str(tmp_path / "own.csv"), corpus=str(tmp_path / "corpus.csv"))
    found = read_gold([file], {asked("who is A"), asked("of both")})
    assert {key: question.gold_passages for key, question in found.items()} == {
        asked("who is A"): (A,),
        asked("of both"): (A, B),
    }


def test_an_index_of_another_corpus_is_refused() -> None:
    own = TableRetriever({passage_text(A): (E, A)})
    check_corpus(own, [(B,), (A,)], 2)
    with pytest.raises(DataError, match=r"data.retriever finds none of 2 gold passages by its own text, such as 'B'"):
        check_corpus(own, [(B,), (A,)], 1)  # E alone
