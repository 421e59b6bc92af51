"""What holds for every system: of texts, batches, odd questions, words that no index knows, and failed searches."""

import json
from dataclasses import asdict

import pytest

from common.errors import SearchFailedError
from common.records import Question
from harness.answer_selection.estimator import EstimatedRelevance
from harness.context_sources.web import WebContext
from harness.interfaces import System
from harness.retrievers.fusion import FusedRetriever
from harness.retrievers.hard_negatives import HardNegatives
from harness.retrievers.rm3 import Rm3Retriever
from harness.runtime.failures import Failure, each_apart, failure_of
from harness.selection.options import SelectionOptions
from harness.systems.dmqr import Dmqr
from harness.systems.drrag import DrRag
from harness.systems.hiqa import HiQa
from harness.systems.msrag import Msrag
from harness.systems.rerag import ReRag
from harness.systems.retrieve_read import RetrieveRead
from tests.helpers.echo_reader import EchoReader
from tests.helpers.river_corpus import gold_scorer
from tests.helpers.table_rewriter import TableRewriter
from tests.helpers.tolerances import model_close

ASKED = [Question("1", "alba river"), Question("2", "lost alba"), Question("3", "elbe mountain")]
QDC = SelectionOptions("qdc", k=2)
SYSTEMS = {
    "retrieve_read": lambda search, serving: RetrieveRead(search, 2),
    "fused": lambda search, serving: RetrieveRead(FusedRetriever([search, Rm3Retriever(search)])),
    "hiqa": lambda search, serving: HiQa(search),
    "drrag": lambda search, serving: DrRag(search, selection=QDC),
    "ranked": lambda search, serving: DrRag(search, scorer=gold_scorer(), selection=SelectionOptions("ranked", k=50)),
    "dmqr": lambda search, serving: Dmqr(search, TableRewriter({}), ("kwr",), fusion="rrf"),
    "rerag": lambda search, serving: ReRag(search, serving, candidates=4, contexts=2, device="cpu"),
    "msrag": lambda search, serving: Msrag(EchoReader(), EstimatedRelevance(), WebContext(search), sources=("web",)),
}
SEARCHES = ("retrieve_read", "hiqa", "drrag", "ranked", "dmqr", "rerag")  # those whose failed search is an error
every = pytest.mark.parametrize("name", SYSTEMS)


@every
def test_texts_and_batches_change_nothing(name: str, bm25, serving) -> None:
    system = SYSTEMS[name](bm25, serving)
    assert isinstance(system, System)
    assert system.answer([]) == []
    together = system.answer(ASKED)
    json.dumps([asdict(answer) for answer in together], allow_nan=False)
    for question, answer in zip(ASKED, together, strict=True):
        for asked in (question.text, [question.text], [question]):
            (alone,) = system.answer(asked)
            assert alone.text == answer.text
            assert [hit.passage for hit in alone.evidence] == [hit.passage for hit in answer.evidence]
            assert [alone.logprob or 0.0] == model_close([answer.logprob or 0.0])
        assert (alone.question_id, alone.notes.keys()) == (question.id, answer.notes.keys())


@every
def test_an_odd_question_fails_or_finds_nothing_alone_and_the_answer_says_why(name: str, bm25, serving) -> None:
    odd = [Question("e", ""), Question("u", "zzz, quagga?"), Question("k", "zzz ALBA")]
    empty, unknown, known = SYSTEMS[name](bm25, serving).answer(odd)
    assert "is empty" in str(empty.notes["error"])
    assert empty.evidence == unknown.evidence == ()
    assert unknown.notes["unknown_words"] == f"no word of the question is in {bm25.folder}"
    assert "unknown_words" not in known.notes
    assert known.evidence[0].passage.title == "Alba"


class PartlyFailing:
    """A search that fails for some words, as a web search does: all of a call raise, some have no passage."""

    def __init__(self, retriever, word="lost") -> None:
        self.retriever, self.word, self.failures = retriever, word, {}

    def search(self, queries, k: int):
        self.failures = {query: "HTTP 418" for query in queries if self.word in query}
        if queries and len(self.failures) == len({*queries}):
            raise SearchFailedError("all searches failed: HTTP 418")
        found = self.retriever.search(queries, k)
        return [[] if query in self.failures else hits for query, hits in zip(queries, found, strict=True)]


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_that_fails_is_its_question_s_error(name: str, bm25, serving) -> None:
    alone, lost, other = SYSTEMS[name](PartlyFailing(bm25), serving).answer(ASKED)
    assert "HTTP 418" in failure_of(lost)
    assert not lost.evidence
    for answer, known in zip((alone, other), SYSTEMS[name](bm25, serving).answer([ASKED[0], ASKED[2]]), strict=True):
        assert [hit.passage.id for hit in answer.evidence] == [hit.passage.id for hit in known.evidence]
        assert not failure_of(answer)


def test_a_failed_search_of_the_second_stage_is_an_error_too_and_gives_no_negatives(bm25) -> None:
    second = PartlyFailing(bm25, "Elbe")  # the title of the first document stands in q*
    answers = DrRag(bm25, selection=QDC, second_retriever=second).answer([ASKED[0], ASKED[2]])
    assert [bool(failure_of(each)) for each in answers] == [False, True]
    mined = each_apart(HardNegatives(PartlyFailing(bm25), 3, 1, 2, 1).of, ASKED)
    assert [isinstance(each, Failure) for each in mined] == [False, True, False]
