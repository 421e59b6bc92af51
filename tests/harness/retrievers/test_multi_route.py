"""HiQA's multi-route retrieval: Eq. 2 by hand, the routes alone, the whole index, the weights by rule, refusals."""

import math
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from common.records import Passage
from documents.records import Segment, as_passage
from harness.retrievers.bm25 import Bm25Retriever, build_bm25
from harness.retrievers.dense import DenseRetriever, build_dense
from harness.retrievers.keywords import KeywordRetriever, build_keywords
from harness.retrievers.multi_route import MultiRouteRetriever, combined
from harness.retrievers.route_weights import ALPHA, BETA, weights_of_collection

pytestmark = pytest.mark.numeric
TEXTS = ("the Alto 300 weighs nine", "the Alto 500 weighs ten", "the Boreal 300 weighs six", "clean it often")


def segment(document: str, headings: tuple[str, ...], text: str, page: int) -> Passage:
    whole = Segment(document, document.title(), headings, "text", text, text, page, page)
    return as_passage(whole, whole.path)


@pytest.fixture(scope="module")
def routes(tmp_path_factory: pytest.TempPathFactory, encoder) -> tuple[DenseRetriever, Bm25Retriever, KeywordRetriever]:
    folder = tmp_path_factory.mktemp("routes")
    passages = [Passage.of("", text) for text in TEXTS]
    build_dense(passages, folder / "dense", encoder)
    build_bm25(passages, folder / "bm25")
    build_keywords(passages, folder / "keywords", max_share=0.5)
    dense = DenseRetriever(folder / "dense", "cpu", encoder=encoder.name)
    return dense, Bm25Retriever(folder / "bm25"), KeywordRetriever(folder / "keywords")


def test_equation_2_by_hand() -> None:
    scores = combined(np.array([0.2, 0.6, 0.4]), np.array([0.0, 5.0, 10.0]), np.array([0.0, 1.0, 3.0]), 0.25, 0.1)
    expected = [0, 0.25 * 1 + 0.75 * 0.5 + 0.1 * math.log(2), 0.25 * 0.5 + 0.75 * 1 + 0.1 * math.log(4)]
    assert scores == pytest.approx(expected)
    raw = combined(np.array([0.2]), np.array([4.0]), np.array([0.0]), 0.25, 0.1, "raw")
    assert raw == pytest.approx([0.25 * 0.2 + 0.75 * 4])


def test_keywords_count_once_in_any_case_and_may_be_own_ones(routes, tmp_path: Path, capfd) -> None:
    keywords = routes[2]
    assert keywords.keywords("ALTO 300, alto 300 or boreal 300?") == ["alto 300", "boreal 300"]
    assert keywords.scores("alto 300 or boreal 300").tolist() == [1, 0, 1, 0]
    (found,) = keywords.search(["alto 300 or boreal 300"], 3)
    assert [(hit.passage.text, hit.score) for hit in found] == [(TEXTS[0], 1.0), (TEXTS[2], 1.0)]
    assert keywords.search(["nothing of it"], 3) == [[]]
    (tmp_path / "own.txt").write_text("Clean it\n\n")
    for _ in range(2):
        build_keywords([Passage.of("", text) for text in TEXTS], tmp_path / "index", given=tmp_path / "own.txt")
    assert "up to date" in capfd.readouterr().err
    assert KeywordRetriever(tmp_path / "index").keywords("now clean it") == ["clean it"]


def test_a_route_alone_ranks_as_its_retriever(routes) -> None:
    for (alpha, route), candidates in product(((1.0, routes[0]), (0.0, routes[1])), (None, 2, 100)):
        alone = MultiRouteRetriever(*routes, alpha, 0.0, candidates)
        ours, theirs = (each.search(["alto 500 weighs"], 2)[0] for each in (alone, route))
        assert [hit.passage for hit in ours] == [hit.passage for hit in theirs]


def test_the_keywords_decide_among_look_alikes(routes) -> None:
    (found,) = MultiRouteRetriever(*routes, 0.5, 10.0).search(["how heavy is the boreal 300"], 4)
    assert found[0].passage.text == TEXTS[2]
    assert len(found) == 4  # all of the index is ranked
    without = MultiRouteRetriever(*routes[:2], None, 0.5, 0.0)
    assert len(without.search(["boreal 300", ""], 9)[0]) == 4
    assert without.search(["", " "], 3) == [[], []]


def test_weights_by_rule(tmp_path: Path, encoder) -> None:
    """Which is the default."""
    # structure (1/2 + 1 + 0) / 3; two documents, of 3 pages and 1: ratio 2 / 2
    rows = [("a", ("Use",), "x", 1), ("a", ("Use", "Start", "Deep"), "y", 3), ("b", (), "z", 1)]
    passages = [segment(*row) for row in rows]
    assert weights_of_collection(passages) == pytest.approx((0.4 + 0.2 * 0.5, 0.2 * 0.5))
    assert weights_of_collection([replace(passages[0], metadata=None)]) == (ALPHA, BETA) == weights_of_collection([])
    build_dense(passages[:2], tmp_path / "dense", encoder)
    build_bm25(passages[:2], tmp_path / "bm25")
    two = DenseRetriever(tmp_path / "dense", "cpu", encoder=encoder.name), Bm25Retriever(tmp_path / "bm25")
    retriever = MultiRouteRetriever(*two)
    assert (retriever.alpha, retriever.beta) == weights_of_collection(passages[:2]) != (ALPHA, BETA)
    assert MultiRouteRetriever(*two, alpha=0.9).alpha == 0.9


def test_other_options_on_the_same_indexes_are_another_retriever(routes) -> None:
    own = MultiRouteRetriever(*routes, 0.5, 0.1)
    queries = ["alto 300", "weighs six"]
    before = own.search(queries, 4)
    for alpha, beta in ((1.0, 0.0), (0.0, 0.0), (0.5, 0.0), (0.3, 2.0)):
        ours = own.with_options(alpha=alpha, beta=beta).search(queries, 4)
        theirs = MultiRouteRetriever(*routes, alpha, beta).search(queries, 4)
        assert ours == theirs
    assert own.search(queries, 4) == before
    assert own.with_options(section_words=0).section_words == 0
    assert own.section_words == 300


def test_a_route_without_weight_brings_no_candidates(routes) -> None:
    (found,) = MultiRouteRetriever(*routes, 1.0, 0.0, candidates=1).search(["alto 500 weighs"], 4)
    assert len(found) == 1
