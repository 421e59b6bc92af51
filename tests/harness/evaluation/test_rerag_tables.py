"""RE-RAG's tables of answers, rankings and contexts, worked out by hand on invented pools."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from common.errors import UserError
from common.records import Answer, Question
from harness.evaluation import paper_figures
from harness.evaluation.answer_scores import answer_tables, costs_table, percent_cells, score_answers
from harness.evaluation.rerag import tables as rerag_tables
from harness.evaluation.rerag.baseline import bm25_of_shipped
from harness.evaluation.rerag.tables import ABLATION, Scoring, ablation_table, llm_table, read_settings
from harness.evaluation.study import Settings
from harness.evaluation.tables import Cell, Table, not_measured, tables_csv, tables_markdown, tables_not_measured
from harness.retrievers.bm25 import Bm25Retriever, build_bm25
from models.rerag.calibration import Calibration
from models.rerag.temperature import fit_temperature
from tests.helpers.candidate_sets import FEW, NAN, POOLS, values
from tests.helpers.rerag_world import corpus, questions

pytestmark = pytest.mark.numeric


def test_temperature_matches_the_frequency_of_hits() -> None:
    # two contexts a margin of 0.2 apart; the better one holds the answer in 3 of 4: sigmoid(0.2 / T) = 3/4
    scores = [np.array([0.7, 0.5])] * 4
    holds = [np.array([True, False])] * 3 + [np.array([False, True])]
    silent = ([np.array([0.1, 0.2]), np.array([5.0, 1.0])], [np.array([True, True]), np.array([False, False])])
    expected = 0.2 / math.log(3)
    assert fit_temperature(scores, holds) == pytest.approx(expected, rel=3e-3)
    assert fit_temperature(scores + silent[0], holds + silent[1]) == pytest.approx(expected, rel=3e-3)
    assert fit_temperature([10 * s for s in scores], holds) == pytest.approx(10 * expected, rel=3e-3)
    with pytest.raises(UserError, match="questions: no question has both"):
        fit_temperature(*silent)


def test_recall_table_by_hand() -> None:
    table = rerag_tables.recall_table(POOLS, (1, 2, 3), FEW, "nq")
    assert values(table, "retriever") == [50, 50, 75, 75]
    assert values(table, "RE") == [50, 50, 75, 75]
    assert values(table, "RE - retriever") == [0, 0, 0, 0]
    assert list(table.rows) == ["retriever", "RE", "RE - retriever"]
    low, high = table.rows["RE - retriever"][0].interval
    assert low < 0 < high
    assert [None if c is None else c.value for c in table.paper["FiD-KD"]] == [49.4, None, None, 89.3]


def test_recall_beside_another_order() -> None:
    backwards = [[2, 1, 0]] * 4
    table = rerag_tables.recall_table(POOLS, (1, 2), FEW, None, {"backwards": backwards})
    assert list(table.rows) == ["retriever", "backwards", "RE", "RE - retriever", "RE - backwards"]
    assert values(table, "backwards") == [25, 25, 75]
    assert values(table, "RE - backwards") == [25, 25, 0]


def test_bm25_of_own_passages_is_that_of_an_index_of_all(tmp_path: Path) -> None:
    passages = corpus(12)
    asked = questions(passages, 4, 5)
    asked.append(Question("q9", "zebra", passages=tuple(passages[:2])))
    shipped = list({p.id: p for q in asked for p in q.passages}.values())
    build_bm25(shipped, tmp_path / "bm25")
    found = Bm25Retriever(tmp_path / "bm25").search([q.text for q in asked], len(shipped))
    for question, own, hits in zip(asked, bm25_of_shipped(asked), found, strict=True):
        everywhere = {hit.passage.id: hit.score for hit in hits}
        assert list(own) == [p.id for p in question.passages]
        assert own == pytest.approx({id_: everywhere.get(id_, 0.0) for id_ in own})


def test_ablation_by_hand() -> None:
    scoring = rerag_tables.Scoring("squad", FEW)
    # of two contexts; question 0 needs the estimator's contexts and weights, 1 the estimator's weights or two contexts
    table = rerag_tables.ablation_table(
        POOLS, rerag_tables.read_settings(POOLS, 2, rerag_tables.BY_GENERATOR), scoring, 2, "triviaqa"
    )
    exact = {name: [c.value if c else None for c in table.rows[name]][::2] for name in rerag_tables.ABLATION}
    # question 0: the estimator keeps 2, 1; the retriever's weights (1 against 2) then prefer the wrong one
    # question 1: gold and one wrong: gold wins by 1.0 against 0.9; question 3: the estimator keeps the wrong ones
    assert exact["Baseline"] == [50, 50]  # 1 and 3
    assert exact["RE score"] == [25, 25]  # 1; in 3 the estimator's weights prefer the wrong one
    assert exact["RE context"] == [25, 25]  # 1
    assert exact["RE context, score"] == [50, 50]  # 0 and 1
    assert table.rows["Baseline"][1] is None
    assert table.rows["RE context, score"][1].value == 0
    assert table.rows["RE score"][1].value == -25
    assert [cell.value for cell in table.paper["RE-RAG base"][:1]] == [68.2]


def test_ablation_with_a_generator_trained_without_the_estimator() -> None:
    scoring = rerag_tables.Scoring("squad", FEW)
    joint = rerag_tables.read_settings(POOLS, 2, rerag_tables.BY_GENERATOR)
    alone = rerag_tables.ablation_table(POOLS, joint, scoring, 2, "nq")
    assert "jointly trained generator, under other weights than it was trained with" in alone.note
    assert not [name for name in alone.rows if name.startswith(rerag_tables.BASELINE)]

    # a generator that never answers right, except in question 3
    wrong = [
        replace(
            p,
            matrix=replace(p.matrix, written=("x",) * 3, candidates=("x",), answer_logp_AN=p.matrix.answer_logp_AN[:1]),
        )
        for p in POOLS[:3]
    ]
    baseline = rerag_tables.read_settings([*wrong, POOLS[3]], 2, rerag_tables.BY_GENERATOR, rerag_tables.BASELINE)
    table = rerag_tables.ablation_table(POOLS, joint | baseline, scoring, 2, "nq")
    own = [rerag_tables.BASELINE + name for name in rerag_tables.ABLATION]
    assert list(table.rows)[:8] == [*own, *rerag_tables.ABLATION]
    assert [values(table, name)[::2] for name in own] == [[25, 25], [0, 0], [0, 0], [0, 0]]
    assert values(table, own[1])[1::2] == [-25, -25]  # to its own baseline
    for name in rerag_tables.ABLATION:
        assert table.rows[name] == alone.rows[name]
    gains = {name: values(table, f"{name} - {rerag_tables.BASELINE}{name}")[::2] for name in rerag_tables.ABLATION}
    assert gains == {"Baseline": [25, 25], "RE score": [25, 25], "RE context": [25, 25], "RE context, score": [50, 50]}
    assert values(table, f"RE context, score - {own[0]}") == [25, None, 25, None]
    assert set(list(table.rows)[8:]) <= table.signed
    assert "under other weights" not in table.note


def test_contexts_table_by_hand() -> None:
    table = rerag_tables.contexts_table(POOLS, rerag_tables.Scoring("squad", FEW), 3)
    assert list(table.rows) == ["1", "2", "3"]
    assert table.columns == tuple(f"EM %, {n}, {m}" for n in ("RE", "retriever") for m in ("thorough", "fast"))
    assert values(table, "1") == [50, 50, 50, 50]
    assert list(rerag_tables.contexts_table(POOLS, rerag_tables.Scoring("squad", FEW), 25).rows) == ["1", "2", "3"]
    # with three contexts two wrong ones outvote gold in question 1 for the retriever, and in 0 they always did
    assert values(table, "3") == [50, 50, 25, 25]
    assert rerag_tables.context_counts(25) == [1, 2, 5, 10, 15, 20, 25]
    assert rerag_tables.context_counts(7) == [1, 2, 5, 7]
    assert rerag_tables.context_counts(1) == [1]


def test_quality_by_hand() -> None:
    confidences = {
        "estimator": rerag_tables.calibrated(POOLS, Calibration(1.0, 0.0)),
        "retriever": rerag_tables.retriever_confidence([replace(p, retriever_temperature=2.0) for p in POOLS]),
    }
    # scores run from 0.9 to 3 (times the temperature): (score - 0.9) / 2.1
    assert confidences["retriever"][0] == pytest.approx([1.0, 1.1 / 2.1, 0.1 / 2.1])
    cosines = [replace(pool, source="cosine", retriever_temperature=0.1) for pool in POOLS[:2]]
    assert rerag_tables.retriever_confidence(cosines)[0] == pytest.approx([0.3, 0.2, 0.1])
    mixed = rerag_tables.retriever_confidence([cosines[0], replace(POOLS[1], source="given"), POOLS[2]])
    assert [each.tolist() for each in mixed] == [
        pytest.approx([0.3, 0.2, 0.1]),
        [1, 0, 0],
        [1, 0.5, 0],
    ]  # each by itself
    exact = {"estimator": np.array([1.0, 1, 0, 0]), "retriever": np.array([0.0, 0, 0, 1])}
    table = rerag_tables.quality_table(POOLS, confidences, exact, 3)
    assert values(table, "none")[:2] == [1, 0]
    assert values(table, "30-40%")[:2] == [2, 100]  # one of three contexts, in 0 and 1
    assert values(table, "60-70%") == [1, 0, 3, pytest.approx(33.3333)]
    assert sum(cells[0].value for cells in table.rows.values()) == 4


def test_answers_are_judged_under_every_protocol_and_by_kind() -> None:
    asked = [Question("a", "?", ("U.S.",), kind="single"), Question("b", "?", ("Paris",), kind="bridge")]
    asked.append(Question("c", "?", ("yes",), kind="bridge"))
    given = [
        Answer("a", "u s", (), costs={"calls": 3.0, "usd": 0.00012}),
        Answer("b", "in Paris", ()),
        Answer("c", "", ()),
    ]
    main, kinds = answer_tables(asked, given, Settings("nq", "triviaqa", (1,), None, FEW, Path("unused")))
    costs = costs_table(given)
    assert costs is not None
    assert list(main.rows) == ["ours, triviaqa", "ours, squad", "ours, re_rag"]
    # TriviaQA's blanks make "u s" equal; SQuAD deletes the points: "us"
    assert values(main, "ours, triviaqa") == [33.3333, round(100 * (1 + 2 / 3) / 3, 4), 66.6667]
    assert values(main, "ours, squad") == [0, round(100 * (2 / 3) / 3, 4), 33.3333]
    assert values(kinds, "bridge") == [2, 0, round(100 * (2 / 3) / 2, 4), 50]
    assert list(kinds.rows) == ["bridge", "single"]
    assert values(costs, "calls") == [1]
    assert values(costs, "US dollars per 1,000 questions") == [0.04]
    assert score_answers([""], asked[2:], "squad")[1].tolist() == [0]


def test_tables_as_files() -> None:
    table = Table(
        "t",
        "T",
        ("x %",),
        {"a": [Cell(1234.5, (-1.0, 2.0))], "d": [Cell(2)], "e": [Cell(2.0)]},
        {"p": [Cell(NAN)]},
        signed=frozenset("e"),
    )
    assert tables_csv([table]).splitlines()[1:] == [
        "t,a,x %,1234.5,-1,2,ours,",
        "t,d,x %,2,,,ours,",
        "t,e,x %,2,,,ours,",
        "t,p,x %,,,,paper,",
    ]
    text = tables_markdown("Title", ["fact"], [table], "")
    assert "| a | 1234.50 [-1.00, 2.00] |" in text
    assert "| d | 2 |" in text
    assert "| e | +2.00 |" in text
    assert "| *paper:* p |  |" in text
    with pytest.raises(ValueError, match="2 cells"):
        Table("t", "T", ("x",), {"a": [None, None]})


def test_what_is_not_measured_says_so() -> None:
    nothing, none = not_measured("every set holds an answer"), not_measured("none refused")
    rows = {"a": [nothing, nothing], "b": [Cell(1.0), none]}
    mixed = Table("t", "T", ("x %", "y %"), rows, {"p": [Cell(2.0), None]})
    text = tables_markdown("Title", [], [mixed], "")
    assert "| a | not measured: every set holds an answer |  |" in text
    assert "| b | 1.00 | not measured: none refused |" in text
    assert tables_csv([mixed]).splitlines()[1:] == [
        "t,a,x %,,,,ours,not measured: every set holds an answer",
        "t,a,y %,,,,ours,not measured: every set holds an answer",
        "t,b,x %,1,,,ours,",
        "t,b,y %,,,,ours,not measured: none refused",
        "t,p,x %,2,,,paper,",
    ]
    silent = Table("s", "S", ("x %",), {"a": [nothing], "b": [nothing]}, note="0 of 2.")
    assert tables_markdown("Title", [], [silent], "").splitlines()[2:] == [
        *["", "## S", "", "not measured: every set holds an answer.", "", "0 of 2."]
    ]
    published = Table("s", "S", ("x %",), {"a": [nothing]}, {"p": [Cell(2.0)]})
    assert "answer.\n\n|  | x % |\n| --- | ---: |\n| *paper:* p | 2.00 |" in tables_markdown(
        "Title", [], [published], ""
    )
    assert tables_not_measured([mixed, Table("u", "U", ("x",), {"a": [None], "b": [Cell(1)]})]) == {
        "t": {"a": dict.fromkeys(("x %", "y %"), nothing.reason), "b": {"y %": "none refused"}}
    }
    assert (
        percent_cells(np.zeros((2, 0)), FEW, "no set holds an answer") == [not_measured("no set holds an answer")] * 2
    )


def test_recall_without_an_answer_in_any_candidate_is_not_measured() -> None:
    table = rerag_tables.recall_table(POOLS[2:3], (1, 3, 5), FEW, None)
    text = tables_markdown("Title", [], [table], "")
    assert "not measured: no candidate holds an answer." in text
    assert "0.00" not in text
    assert "No question has more than 3 candidates: the order does not matter for R@3, R@5." in text
    assert "does not matter" not in rerag_tables.recall_table(POOLS, (1, 2), FEW, None).note


def test_published_figures() -> None:
    assert [c.value for c in paper_figures.answers("hotpotqa", 4)["Llama3-8B, CFS, k = 4 (Table 3)"]] == [
        48.30,
        62.81,
        55.22,
    ]
    assert "Llama3-8B, CIS w/o QDC, k = 4 (Table 4)" in paper_figures.answers("hotpotqa", 4)
    assert not [name for name in paper_figures.answers("musique") if "Table 4" in name]
    assert paper_figures.answers("triviaqa")["RE-RAG mixed, 25"][0].value == 69.5
    table_5 = paper_figures.re_rag("nq", 5, (None, 0, 1, None, 2))
    assert [c and c.value for c in table_5["RE-RAG base"]] == [None, 58.3, 54.9, None, 51.3]
    assert paper_figures.recall("hotpotqa", (1,)) == paper_figures.re_rag(None, 7, (0,)) == {}


FAST = Scoring("squad", FEW, ("fast",))


def test_table_6_by_hand() -> None:
    table = llm_table(POOLS, FAST, 12, "nq")
    assert table.columns == ("EM %, top-5", "EM %, top-10")  # no pool has more than three contexts
    # the retriever's weights are right about the last pool alone, the estimator's about the first two
    assert values(table, "LLM w/ retriever") == [25, 25]
    assert values(table, "LLM w/ RE") == [50, 50]
    assert values(table, "RE - retriever") == [25, 25]
    assert [cell.value for cell in table.paper["GPT w/ RE"]] == [48.8, 49.3]
    assert [cell.value for cell in table.paper["GPT w/ Retriever"]] == [41.7, 42.9]


def test_table_6_with_other_numbers_of_contexts() -> None:
    table = llm_table(POOLS, FAST, 1, "nq")
    assert table.columns == ("EM %, top-1",)
    assert values(table, "LLM w/ retriever") == [50]  # its first context knows in two pools
    assert values(table, "LLM w/ RE") == [50]
    assert table.paper == {}  # the paper has no such figure
    table = llm_table(POOLS, FAST, 7, "nq")
    assert table.columns == ("EM %, top-5", "EM %, top-7")
    assert [cell and cell.value for cell in table.paper["GPT w/ RE"]] == [48.8, None]


@pytest.mark.parametrize("marginals", [("fast",), ("thorough", "fast")])
def test_the_ablation_of_a_language_model_stands_alone(marginals: tuple) -> None:
    """The paper's rows are of trained generators; `fast` alone has half as many columns."""
    scoring = Scoring("squad", FEW, marginals)
    table = ablation_table(POOLS, read_settings(POOLS, 2, marginals), scoring, 2, "nq", by_llm=True)
    assert list(table.rows) == list(ABLATION)
    assert len(table.columns) == 2 * len(marginals)
    assert table.paper == {}
    assert "trained in all but" not in table.note
    assert "baseline_serving" not in table.note
