"""MSRAG's study on a web search that is down.

The web is lost in every row that searches it, and the study ends with the other sources.
"""

from pathlib import Path

from harness.choice.agreement import Agreement
from harness.choice.answer_encoder import AnswerEncoder
from harness.evaluation.msrag.study import Study
from harness.retrievers.bm25 import Bm25Retriever
from harness.retrievers.web import WebRetriever
from harness.sources.facts import IndexedFacts
from harness.sources.web import WebContext
from harness.strategies.msrag import Msrag
from tests.harness.evaluation.test_msrag_study import QUESTIONS, cells, settings
from tests.harness.strategies.test_msrag import WordReader
from tests.helpers.river_corpus import write_index
from tests.helpers.studied import studied


def test_rows_that_search_the_web_have_lost_it(tmp_path: Path, encoder_folder: str) -> None:
    web = WebRetriever("searxng", "http://127.0.0.1:9", read_pages=False, max_retries=0, cache=None)
    facts = IndexedFacts(Bm25Retriever(write_index(tmp_path)))
    selector = Agreement(loaded=AnswerEncoder(encoder_folder, "cpu"))
    system = Msrag(WordReader("lake"), selector, WebContext(web), facts)
    findings = studied(Study(encoder=encoder_folder), system, QUESTIONS, settings(tmp_path))
    one = cells(findings, "table 1")
    assert (one["web alone"][0], one["SR-RAG"][0]) == (0.0, 0.0)
    assert one["MSRAG, agreement"][0] == 100.0  # the facts', and from memory where they have none
    assert all(each.notes["lost"] for each in findings.variants["web alone"])
    assert all("cannot be reached" in str(each.notes["missing"]) for each in findings.variants["SR-RAG"])
