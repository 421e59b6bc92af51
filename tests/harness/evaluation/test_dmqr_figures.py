"""Figures of DMQR-RAG's study by hand.

Scores, rewrites, and the costs that each method is charged.
"""

from pathlib import Path

import numpy as np

from common.records import Passage, Question, Ranked
from common.rewrites import Rewrites
from harness.evaluation.dmqr.figures import rewrites_of
from harness.evaluation.dmqr.methods import Method
from harness.evaluation.dmqr.search import Found, restricted
from harness.evaluation.dmqr.tables import score_methods
from harness.retrievers.bm25 import Bm25Retriever
from harness.retrievers.multi_query import MultiQueryHits, QueryHits
from harness.strategies.dmqr import Dmqr
from tests.helpers.rewriting_study import STRATEGIES, measured, table, value
from tests.helpers.river_corpus import IDS, PASSAGES, write_index
from tests.helpers.table_rewriter import TableRewriter


def test_h_p_and_recall_by_hand() -> None:
    passages = {name: Passage.of(name, f"the {name}") for name in "abcdef"}
    ranked = [[Ranked(passages[name], 0.0) for name in row] for row in ("abcde", "fb", "")]
    found = Found(
        Method("row", None, (), 5, "rrf"),
        [MultiQueryHits((QueryHits("q", ("question",), tuple(hits)),), None, tuple(hits), 0) for hits in ranked],
    )
    ids = {name: each.id for name, each in passages.items()}
    everything = tuple(passages.values())
    gold = [
        Question("1", "?", ("b",), everything, (ids["b"], ids["e"])),
        Question("2", "?", (), everything, (ids["a"],)),
        Question("3", "?", (), everything, (ids["a"],), ("elsewhere",)),
    ]
    row = score_methods(gold, {"row": found}, True, 5, (4,))["row"]
    np.testing.assert_array_equal(row["H@5"], [1, 0, np.nan])
    np.testing.assert_allclose(row["P@5"], [2 / 5, 0, np.nan])
    np.testing.assert_allclose(row["recall@4"], [1 / 2, 0, np.nan])
    np.testing.assert_allclose(row["recall of all"], [1, 0, np.nan])
    answered = [Question(str(n), "?", answers) for n, answers in enumerate((("b", "c"), ("f",), ()))]
    row = score_methods(answered, {"row": found}, False, 2, (1,))["row"]
    np.testing.assert_array_equal(row["H@2"], [1, 1, np.nan])
    np.testing.assert_array_equal(row["P@2"], [0.5, 0.5, np.nan])
    np.testing.assert_array_equal(row["recall@1"], [0, 1, np.nan])


def test_the_number_of_rewrites_and_the_cases(tmp_path: Path) -> None:
    retriever = Bm25Retriever(write_index(tmp_path))
    everything = tuple(PASSAGES.values())
    asked = [
        Question("a", "alba river", ("x",), everything, (IDS["Elbe"], IDS["Alba"])),
        Question("b", "elbe", ("x",), everything, (IDS["Elbe"],)),
    ]
    rewriter = TableRewriter(
        {"alba river": {"kwr": ["elbe mountain"], "par": ["alba brune"]}, "elbe": {"par": ["dorn"]}}
    )
    found = measured(Dmqr(retriever, rewriter, ("kwr", "par"), 3, 2, "rrf"), tmp_path, asked)
    # a: the question finds Alba, Calder, Alba (ship); kwr Elbe, Fulda; par Alba (ship), Alba, Brune. b: Elbe; Elbe;
    # Calder, Dorn
    assert [value(found, "rewrites", "DMQR-RAG", column) for column in ("mean", "0 %", "1 %", "2 %")] == [
        1.5,
        0,
        50,
        50,
    ]
    assert value(found, "recall", "DMQR-RAG", "recall of all %") == 100
    (case,) = found.findings.cases[0]
    assert case.rows[1] == ("kwr", "elbe mountain", "2", "2", "Elbe (1)")
    assert found.findings.cases[1][0].note == "kwr: the question itself, because it is missing"
    assert 'A complex query (Figure 5): a. question: "alba river" found 3 passages' in found.findings.notes


def test_rewrites_are_counted_once_for_equal_queries() -> None:
    searches = tuple(
        QueryHits(query, made_by, ()) for query, made_by in (("q", ("question", "kwr")), ("r", ("par", "cce")))
    )
    assert rewrites_of(MultiQueryHits(searches, None, (), 0)) == 1


def test_a_rewriter_that_writes_one_by_one_is_charged_one_by_one() -> None:
    queries = {name: (name,) for name in STRATEGIES}
    each = Rewrites(queries, {"par": "why"}, "", {"model_calls": 3.0, "tokens": 30.0, "fallbacks": 1.0})
    assert restricted(each, ("par",)).costs == {"model_calls": 1.0, "tokens": 10.0, "fallbacks": 1.0}
    together = Rewrites(queries, {"par": "why"}, "", {"model_calls": 1.0, "tokens": 30.0, "fallbacks": 1.0})
    one = restricted(together, ("kwr", "cce"))
    assert (one.costs, one.fallbacks) == ({"model_calls": 1.0, "tokens": 30.0}, {})
    assert list(one.queries) == ["kwr", "cce"]
    assert restricted(each, STRATEGIES) is each


def test_the_cost_of_the_choice_is_not_divided_among_the_strategies() -> None:
    each = Rewrites({name: (name,) for name in STRATEGIES}, {}, "", {"model_calls": 3.0, "choice_calls": 1.0})
    assert restricted(each, ("par",)).costs == {"model_calls": 1.0, "choice_calls": 1.0}


def test_an_index_without_the_gold_passages_is_measured_by_has_answer(tmp_path: Path) -> None:
    retriever = Bm25Retriever(write_index(tmp_path))
    gold = Passage.of("Other", "of another corpus")
    asked = [Question("a", "alba river", ("joins",), (gold,), (gold.id,))]
    found = measured(Dmqr(retriever, k=5, fusion="rrf"), tmp_path, asked)
    assert "relevance by has-answer" in table(found, "methods").title
    assert value(found, "methods", "OQR", "H@5 %") == 100
