"""Searches of which some of a batch fail: those questions have an error, the others their answers."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from common.errors import SearchFailedError
from common.records import Question, Ranked
from harness.interfaces import Retriever
from harness.retrievers.hard_negatives import HardNegatives
from harness.runtime.failures import Failure, each_apart, failure_of
from harness.selection.options import SelectionOptions
from harness.systems.dmqr import Dmqr
from harness.systems.drrag import DrRag
from harness.systems.rerag import ReRag
from harness.systems.retrieve_read import RetrieveRead

ASKED = [Question("1", "alba river"), Question("2", "lost alba"), Question("3", "elbe mountain")]


class PartlyFailing:
    """A search that fails for some words, as a web search does: all of a call raise, some have no passage."""

    def __init__(self, retriever: Retriever, word: str = "lost") -> None:
        self.retriever, self.word, self.failures = retriever, word, dict[str, str]()

    def search(self, queries: Sequence[str], k: int) -> list[list[Ranked]]:
        self.failures = {query: "HTTP 418" for query in queries if self.word in query}
        if queries and len(self.failures) == len({*queries}):
            raise SearchFailedError("all searches failed: HTTP 418")
        found = self.retriever.search(queries, k)
        return [[] if query in self.failures else hits for query, hits in zip(queries, found, strict=True)]


SYSTEMS = {
    "retrieve_read": lambda search, serving: RetrieveRead(search, k=2),
    "drrag": lambda search, serving: DrRag(search, selection=SelectionOptions("qdc", k=2)),
    "dmqr": lambda search, serving: Dmqr(search, fusion="rrf"),
    "rerag": lambda search, serving: ReRag(search, serving, candidates=4, contexts=2, device="cpu"),
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_search_that_fails_is_its_question_s_error(name: str, bm25, serving: Path) -> None:
    alone, lost, other = SYSTEMS[name](PartlyFailing(bm25), serving).answer(ASKED)
    assert "HTTP 418" in failure_of(lost)
    assert not lost.evidence
    for answer, known in zip((alone, other), SYSTEMS[name](bm25, serving).answer([ASKED[0], ASKED[2]]), strict=True):
        assert [hit.passage.id for hit in answer.evidence] == [hit.passage.id for hit in known.evidence]
        assert not failure_of(answer)


def test_a_failed_search_of_the_second_stage_is_an_error_too(bm25) -> None:
    second = PartlyFailing(bm25, "Elbe")  # the title of the first document stands in q*
    answers = DrRag(bm25, selection=SelectionOptions("qdc", k=2), second_retriever=second).answer([ASKED[0], ASKED[2]])
    assert [bool(failure_of(each)) for each in answers] == [False, True]


def test_negatives_are_not_mined_from_a_failed_search(bm25) -> None:
    mined = each_apart(HardNegatives(PartlyFailing(bm25), 3, 1, 2, 1).of, ASKED)
    assert [isinstance(each, Failure) for each in mined] == [False, True, False]
