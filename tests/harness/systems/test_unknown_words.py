"""The note in an answer whose question has no word that BM25's index knows, from every system."""

from pathlib import Path

import pytest

from common.records import Question
from harness.context_sources.web import WebContext
from harness.retrievers.fusion import FusedRetriever
from harness.retrievers.rm3 import Rm3Retriever
from harness.runtime.answer_text import answer_text
from harness.selection.options import SelectionOptions
from harness.systems.dmqr import Dmqr
from harness.systems.drrag import DrRag
from harness.systems.hiqa import HiQa
from harness.systems.msrag import Msrag
from harness.systems.rerag import ReRag
from harness.systems.retrieve_read import RetrieveRead
from tests.helpers.echo_reader import EchoReader
from tests.helpers.table_rewriter import TableRewriter

SYSTEMS = {
    "retrieve_read": lambda bm25, serving, encoder: RetrieveRead(bm25),
    "fused": lambda bm25, serving, encoder: RetrieveRead(FusedRetriever([bm25, Rm3Retriever(bm25)])),
    "hiqa": lambda bm25, serving, encoder: HiQa(bm25),
    "drrag": lambda bm25, serving, encoder: DrRag(bm25, selection=SelectionOptions("sm", k=2)),
    "dmqr": lambda bm25, serving, encoder: Dmqr(bm25, TableRewriter({}), ("kwr",), fusion="rrf"),
    "rerag": lambda bm25, serving, encoder: ReRag(bm25, serving, candidates=4, contexts=2, device="cpu"),
    "msrag": lambda bm25, serving, encoder: Msrag(EchoReader(), web=WebContext(bm25), sources=("web",)),
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_an_answer_says_that_no_word_of_its_question_is_known(name, bm25, serving: Path, encoder_folder: str) -> None:
    questions = [Question("a", "zzz, quagga?"), Question("b", "zzz ALBA")]
    first, second = SYSTEMS[name](bm25, serving, encoder_folder).answer(questions)
    assert first.notes["unknown_words"] == f"no word of the question is in {bm25.folder}"
    assert "Unknown words: no word of the question is in" in answer_text(questions[0], first, width=1000)
    assert "unknown_words" not in second.notes
