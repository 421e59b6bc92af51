"""DMQR-RAG's study: every row is what a system configured like it answers, and nothing is computed twice."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from common.errors import UserError
from common.records import Gold, Passage, Question, Ranked
from common.rewrites import Rewrites, restricted
from harness.evaluation.dmqr.figures import rewrites_of, strategies_of
from harness.evaluation.dmqr.study import Study
from harness.evaluation.dmqr.tables import Scored, method_tables, score_methods
from harness.evaluation.engine import MeasuredSystem, measure
from harness.evaluation.judge import Judge
from harness.evaluation.settings import Bootstrap
from harness.evaluation.tables import Cell
from harness.retrievers.bm25 import Bm25Retriever, build_bm25
from harness.retrievers.multi_query import MultiQueryHits, QueryHits
from harness.retrievers.rerank_prior import PRIOR, RerankPrior
from harness.retrievers.rm3 import Rm3Retriever
from harness.systems.dmqr import Dmqr
from harness.tuning.dmqr import Tuning
from harness.tuning.rerank_prior import WEIGHTS
from models.calibration import Calibration
from tests.helpers.rewriting_study import (
    ASKED,
    CORPUS,
    STRATEGIES,
    TABLE,
    dmqr_of,
    measured,
    settings,
    table,
    value,
)
from tests.helpers.river_corpus import IDS, PASSAGES, write_index
from tests.helpers.scripted_lm import ScriptedLm
from tests.helpers.small_world import WORDS
from tests.helpers.studied import Titles, counted
from tests.helpers.table_rewriter import CountingRetriever, TableRewriter, WorstFirst
from tests.helpers.word_scorer import WordScorer


@pytest.fixture(scope="module")
def bm25(tmp_path_factory: pytest.TempPathFactory) -> Bm25Retriever:
    folder = tmp_path_factory.mktemp("index") / "bm25"
    build_bm25(CORPUS, folder)
    return Bm25Retriever(folder)


@pytest.mark.parametrize(("reranked", "prior_weight"), [(True, None), (True, 2.0), (False, None)])
def test_every_row_is_what_a_system_configured_like_it_answers(
    bm25: Bm25Retriever, tmp_path: Path, reranked: bool, prior_weight: float | None
) -> None:
    scorer = WordScorer() if reranked else None
    rewriter, reader = TableRewriter(TABLE), Titles()
    own: dict[str, Any] = {"strategies": STRATEGIES}
    alone: dict[str, Any] = {}
    if prior_weight is not None:
        PRIOR.write(tmp_path / "prior.json", RerankPrior(prior_weight, Calibration()).content)
        alone = {"prior": tmp_path / "prior.json"}
        own |= alone
    found = measured(dmqr_of(bm25, scorer, rewriter=rewriter, reader=reader, **own), tmp_path)
    own["rewriter"] = TableRewriter(TABLE)
    systems = {
        "dmqr": dmqr_of(bm25, scorer, **own),
        "OQR": dmqr_of(bm25, scorer, **alone),
        "OQR deep": dmqr_of(bm25, scorer, per_query=20, **alone),
        **{one: dmqr_of(bm25, scorer, **{**own, "strategies": (one,)}) for one in STRATEGIES},
        **{
            f"w/o {one}": dmqr_of(bm25, scorer, **{**own, "strategies": tuple(s for s in STRATEGIES if s != one)})
            for one in STRATEGIES
        },
        **({"DMQR-RAG, rrf": dmqr_of(bm25, None, **{**own, "prior": None})} if reranked else {}),
    }
    assert set(found.systems) == set(systems)
    for each in systems.values():
        each.reader = reader
    assert_rows_are_systems(found, systems)
    for name in ("dmqr", "OQR"):
        for one, other in zip(found.systems[name], systems[name].answer(ASKED), strict=True):
            assert one.notes == other.notes
    rows = [record["rows"] for record in found.findings.records]
    for name in systems.keys() - {"dmqr"}:
        shown = [[hit.passage.id for hit in answer.evidence] for answer in found.systems[name]]
        assert [row[name]["passages"] for row in rows] == shown  # type: ignore[index]
    passages = np.mean([len(hits) for hits in bm25.search([q.text for q in ASKED], 20)])
    assert value(found, "methods", "OQR deep", "passages") == pytest.approx(passages)


def test_tuning_chooses_the_weight_with_the_greatest_recall_of_the_whole_system(
    bm25: Bm25Retriever, tmp_path: Path
) -> None:
    def built(**more: Any) -> Dmqr:
        return dmqr_of(bm25, WordScorer(), rewriter=TableRewriter(TABLE), strategies=STRATEGIES, **more)

    asked = []
    for question in ASKED:  # gold is what the last two queries find first, which the question alone ranks low
        queries = [question.text, *(each for texts in TABLE[question.text].values() for each in texts)]
        first = [hits[0].passage.id for hits in bm25.search(queries, 1) if hits]
        asked.append(replace(question, support=tuple(dict.fromkeys(first))[-2:]))
    said = Tuning().tune(built(), asked, tmp_path / "prior.json", settings(tmp_path))
    recalls = {}
    for weight in WEIGHTS:
        PRIOR.write(tmp_path / "tried.json", RerankPrior(weight, Calibration()).content)
        answers = built(prior=tmp_path / "tried.json").answer(asked)
        found = [[hit.passage.id for hit in answer.evidence] for answer in answers]
        recalls[weight] = np.mean([
            len({*ids[:k]} & {*question.support}) / len(question.support)
            for question, ids in zip(asked, found, strict=True)
            for k in range(1, 5)
        ])  # fmt: skip
    chosen = PRIOR.read(tmp_path / "prior.json").weight
    assert chosen > 0
    assert recalls[chosen] == pytest.approx(max(recalls.values()))
    assert f"{100 * recalls[chosen]:.2f} %; by the estimator alone {100 * recalls[0.0]:.2f} %" in said[0]
    for system in (dmqr_of(bm25, None), built(prior=tmp_path / "prior.json")):
        with pytest.raises(UserError, match=r"fusion is rrf|prior is what"):
            Tuning().check(system)


def test_passages_judged_by_a_rewrite(bm25: Bm25Retriever, tmp_path: Path) -> None:
    own = {"rewriter": TableRewriter(TABLE), "strategies": STRATEGIES, "judged_by": "kwr"}
    scorer = WordScorer()
    found = measured(
        dmqr_of(bm25, scorer, **own), tmp_path, rows=["par", "OQR, judged by kwr", "OQR deep, judged by kwr"]
    )
    assert list(table(found, "methods").rows) == [
        "OQR", "OQR deep", "OQR, judged by kwr", "OQR deep, judged by kwr", "par", "DMQR-RAG",
    ]  # fmt: skip
    assert len(set(scorer.asked)) == len(scorer.asked)
    systems = {"dmqr": dmqr_of(bm25, WordScorer(), **own), "OQR": dmqr_of(bm25, WordScorer())}
    assert_rows_are_systems(found, systems)
    for question, one in zip(ASKED, found.systems["OQR deep, judged by kwr"], strict=True):
        judge = " ".join(TABLE[question.text].get("kwr", [question.text]))
        passages = [hit.passage for hit in bm25.search([question.text], 20)[0]]
        scores = WordScorer().scores([(judge, passage) for passage in passages])
        assert [hit.score for hit in one.evidence] == sorted(scores, reverse=True)[:4]
    for question, one in zip(ASKED, found.systems["par"], strict=True):
        judge = " ".join(TABLE[question.text].get("kwr", [question.text]))
        assert [hit.score for hit in one.evidence] == WordScorer().scores(
            [(judge, hit.passage) for hit in one.evidence]
        )
    assert "judged by the rewrite by kwr" in found.findings.notes


def test_nothing_is_asked_searched_scored_or_read_twice(bm25: Bm25Retriever, tmp_path: Path) -> None:
    scorer, rewriter, reader, retriever = WordScorer(), TableRewriter(TABLE), Titles(), CountingRetriever(bm25)
    system = dmqr_of(retriever, scorer, rewriter=rewriter, strategies=STRATEGIES, reader=reader)
    found = measured(system, tmp_path)
    assert rewriter.asked == [[each.text for each in ASKED]]
    assert len(set(scorer.asked)) == len(scorer.asked)
    assert f"{len(scorer.asked)} (question, passage) scored once each" in " ".join(found.findings.facts)
    assert len(set(reader.read_sets)) == len(reader.read_sets)
    searched = [(query, k) for queries, k in retriever.asked for query in queries]
    assert len(set(searched)) == len(searched)


def test_rows_can_be_chosen(bm25: Bm25Retriever, tmp_path: Path) -> None:
    system = dmqr_of(bm25, WordScorer(), rewriter=TableRewriter(TABLE), strategies=STRATEGIES, reader=Titles())
    found = measured(system, tmp_path, rows=["par"], deep=8)
    assert list(table(found, "methods").rows) == ["OQR", "OQR deep", "par", "DMQR-RAG"]
    assert {name for name, answers in found.systems.items() if answers[0].text} == {"OQR", "OQR deep", "par", "dmqr"}
    assert not any(each.name == "ablation" for each in found.findings.tables)
    assert len(found.systems["par"][0].evidence) == 4
    assert value(found, "methods", "OQR deep", "passages") > value(found, "methods", "OQR", "passages")


class FirstWords:
    """A rewriter that reads the first search: its query by a strategy is a word of the best passage."""

    name, feedback_passages = "first words", 3

    def rewrite(
        self, questions: Sequence[Question], strategies: Sequence[str], found: Sequence[Sequence[Ranked]]
    ) -> list[Rewrites]:
        """One record per question."""
        return [
            Rewrites({name: (hits[0].passage.text.split()[len(name) % 2 - 1],) for name in strategies if hits}, {}, "",
                {"model_calls": 1.0})
            for hits in found
        ]  # fmt: skip


def assert_rows_are_systems(found: MeasuredSystem, systems: dict[str, Dmqr]) -> None:
    """Evidence, texts and counted costs of rows are those of systems that are configured like them."""
    for name, each in systems.items():
        for one, other in zip(found.systems[name], each.answer(ASKED), strict=True):
            assert counted(one)[:-1] == counted(other)[:-1], name  # not the notes, which some rows leave out


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_rewriter_that_reads_what_its_or_another_retriever_finds(
    bm25: Bm25Retriever, tmp_path: Path, elsewhere: bool
) -> None:
    own = {
        "rewriter": FirstWords(),
        "strategies": ("kwr", "core"),
        **({"feedback_retriever": bm25} if elsewhere else {}),
    }
    searched = WorstFirst(bm25) if elsewhere else bm25
    found = measured(dmqr_of(searched, WordScorer(), **own), tmp_path)
    rows = {"dmqr": own, "kwr": {**own, "strategies": ("kwr",)}, "OQR": {}}
    assert_rows_are_systems(found, {name: dmqr_of(searched, WordScorer(), **options) for name, options in rows.items()})


def test_questions_with_earlier_turns_are_asked_with_them(bm25: Bm25Retriever, tmp_path: Path) -> None:
    asked = [replace(ASKED[0], history=(ASKED[1].text,)), *ASKED[1:]]
    found = measured(dmqr_of(bm25, None, rewriter=TableRewriter(TABLE), strategies=STRATEGIES), tmp_path, asked)
    for one, other in zip(found.systems["OQR"], dmqr_of(bm25, None).answer(asked), strict=True):
        assert one.evidence == other.evidence


def test_a_system_with_another_retriever_is_a_row(
    bm25: Bm25Retriever, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = dmqr_of(Rm3Retriever(bm25), None)
    monkeypatch.setattr("harness.evaluation.dmqr.study._system", lambda *_: other)
    system = dmqr_of(bm25, None, rewriter=TableRewriter(TABLE), strategies=STRATEGIES)
    found = measured(system, tmp_path, rows=["RM3"], rewriters={"RM3": tmp_path})
    assert list(found.systems) == ["dmqr", "OQR", "OQR deep", "RM3"]
    for one, expected in zip(found.systems["RM3"], other.answer(ASKED), strict=True):
        assert one.evidence == expected.evidence


def test_without_a_rewriter_the_baselines_are_measured(bm25: Bm25Retriever, tmp_path: Path) -> None:
    found = measured(dmqr_of(bm25, None), tmp_path, deep=9)
    assert list(found.systems) == ["dmqr", "OQR deep"]
    assert not {"rewrites", "ablation"} & {each.name for each in found.findings.tables}
    assert "OQR deep" not in measured(dmqr_of(bm25, None), tmp_path).systems  # as deep as OQR
    only = Dmqr(bm25, TableRewriter(TABLE), ("par",), 5, "rrf", original=False, k=4)
    assert list(measured(only, tmp_path).systems) == ["dmqr", "OQR"]  # one query: OQR deep would be OQR


@pytest.mark.parametrize(("paper", "first", "other"), [("hotpotqa", 42.24, "EM %"), ("freshqa", 71.5, "Acc %")])
def test_the_paper_s_figures_stand_beside_ours(
    bm25: Bm25Retriever, tmp_path: Path, paper: Any, first: float, other: str
) -> None:
    system = dmqr_of(bm25, None, rewriter=TableRewriter(TABLE), strategies=STRATEGIES)
    found = measure(system, ASKED, Study(), settings(tmp_path, paper=paper))
    methods = table(found, "methods")
    cells = dict(zip(methods.columns, methods.paper["OQR (Table 2)"], strict=True))
    assert cells["H@5 %"] is not None
    assert cells["H@5 %"].value == first
    assert cells[other] is not None
    assert methods.paper["RQ-RAG (Table 2)"][methods.columns.index("H@5 %")] is None
    ablation = table(found, "ablation")
    fall = ablation.columns.index("fall %")
    assert [ablation.paper[f"{row} (Table 4)"][fall] for row in ("Ours", "w/o PAR")] == [None, Cell(1.34)]
    assert ablation.rows["DMQR-RAG"][fall] is None
    assert not found.tables[0].paper  # DR-RAG's on the same data set
    assert found.findings.paper == "DMQR-RAG"


def test_a_judge_judges_every_row_and_is_asked_once(bm25: Bm25Retriever, tmp_path: Path) -> None:
    """It finds relevant what names the first word of the corpus, and every answer correct."""
    relevant = {each.id: WORDS[0] in f"{each.title} {each.text}" for each in CORPUS}
    replies = {}
    for passage in CORPUS:
        verdict = "true" if relevant[passage.id] else "false"
        replies[f">\n{passage.title}\n{passage.text}\n"] = [f'{{"reason": "so", "relevant": {verdict}}}']
    llm = ScriptedLm(replies)
    judge = Judge(llm, ("passages",), passages=2)
    system = dmqr_of(bm25, WordScorer(), rewriter=TableRewriter(TABLE), strategies=STRATEGIES)
    found = measure(system, ASKED, Study(rows=["par"]), settings(tmp_path, judge=judge))
    for row, answers in {"DMQR-RAG": found.answers, "par": found.systems["par"]}.items():
        shares_N = [sum(relevant[hit.passage.id] for hit in each.evidence[:2]) / 2 for each in answers]
        assert value(found, "methods", row, "judged P@2 %") == pytest.approx(100 * np.mean(shares_N))
        assert value(found, "methods", row, "judged H@2 %") == pytest.approx(100 * np.mean(np.array(shares_N) > 0))
    asked = [chat for call in llm.asked for chat in call]
    assert len({repr(chat) for chat in asked}) == len(asked)
    assert value(found, "judge costs of the methods", "all", "verdicts") == len(asked)


class ChoosesByLength:
    """A rewriter that chooses strategies by the number of letters of the question."""

    adaptive, name = True, "by length"

    def __init__(self) -> None:
        self.inner = TableRewriter(TABLE)

    def without_choice(self) -> TableRewriter:
        return self.inner

    def rewrite(self, questions: Sequence[Question], strategies: Sequence[str]) -> list[Rewrites]:
        """One record per question."""
        return [
            restricted(made, strategies[: len(question.text) % 4])
            for question, made in zip(questions, self.inner.rewrite(questions, strategies), strict=True)
        ]


def test_a_system_that_chooses_is_measured_with_and_without_the_choice(bm25: Bm25Retriever, tmp_path: Path) -> None:
    options = {"strategies": STRATEGIES, "judged_by": "kwr", "reader": Titles()}
    system = dmqr_of(bm25, WordScorer(), rewriter=ChoosesByLength(), **options)
    found = measured(system, tmp_path, rows=["kwr"])
    assert list(table(found, "methods").rows) == ["OQR", "OQR deep", "all strategies", "kwr", "DMQR-RAG"]
    rewriters = {"dmqr": ChoosesByLength(), "all strategies": TableRewriter(TABLE)}
    assert_rows_are_systems(
        found, {name: dmqr_of(bm25, WordScorer(), rewriter=each, **options) for name, each in rewriters.items()}
    )
    written = [{*made.queries} - {*made.fallbacks} for made in TableRewriter(TABLE).rewrite(ASKED, STRATEGIES)]
    chosen = [len(own & {*STRATEGIES[: len(each.text) % 4]}) for each, own in zip(ASKED, written, strict=True)]
    every = float(np.mean([*map(len, written)]))
    assert 0 in chosen
    assert every < 3  # one fell back to the question: it made no rewrite
    assert value(found, "rewrites", "DMQR-RAG", "strategies") == pytest.approx(np.mean(chosen))
    assert value(found, "rewrites", "all strategies", "strategies") == pytest.approx(every)
    for row in rewriters:
        name = "DMQR-RAG" if row == "dmqr" else row
        searched = value(found, "methods", name, "queries")
        assert searched == pytest.approx(value(found, "rewrites", name, "mean") + 1)
    with pytest.raises(UserError, match="'all strategies' is the name of another row"):
        Study(rewriters={"all strategies": tmp_path}).check(system)


def test_h_p_and_recall_by_hand() -> None:
    passages = {name: Passage.of(name, f"the {name}") for name in "abcdef"}
    ranked = [[Ranked(passages[name], 0.0) for name in row] for row in ("abcde", "fb", "")]
    found = [MultiQueryHits((QueryHits("q", ("question",), tuple(hits)),), None, tuple(hits), 0) for hits in ranked]
    ids = {name: each.id for name, each in passages.items()}
    everything = tuple(passages.values())
    gold = [
        Question("1", "?", ("b",), everything, (ids["b"], ids["e"])),
        Question("2", "?", (), everything, (ids["a"],)),
        Question("3", "?", (), everything, (ids["a"],), gold=Gold(titles=("elsewhere",))),
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


def test_how_much_precision_falls_without_a_strategy() -> None:
    precision = {"DMQR-RAG": [0.6, 0.4], "w/o a": [0.2, 0.4]}
    scored = {name: Scored({"P@5": np.array(values)}) for name, values in precision.items()}
    made = method_tables(scored, "DMQR-RAG", ["w/o a"], ["P@5"], "", Bootstrap(10))
    (ablation,) = [each for each in made if each.name == "ablation"]
    place = ablation.columns.index("fall %")
    falls = {row: cells[place] and cells[place].value for row, cells in ablation.rows.items()}
    assert falls == {"DMQR-RAG": None, "w/o a": pytest.approx(20)}


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
    found = measured(Dmqr(retriever, rewriter, ("kwr", "par"), 3, "rrf", k=2), tmp_path, asked)
    # a: the question finds Alba, Calder, Alba (ship); kwr Elbe, Fulda; par Alba (ship), Alba, Brune. b: Elbe; Elbe;
    # Calder, Dorn
    shares = [value(found, "rewrites", "DMQR-RAG", column) for column in ("mean", "0 %", "1 %", "2 %")]
    assert shares == [1.5, 0, 50, 50]
    assert value(found, "recall", "DMQR-RAG", "recall of all %") == 100
    (case,) = found.findings.cases[0]
    assert case.rows[1] == ("kwr", "elbe mountain", "2", "2", "Elbe (1)")
    assert found.findings.cases[1][0].note == "kwr: the question itself, because it is missing"


def test_no_strategy_is_none_in_the_figures() -> None:
    alone, itself = (QueryHits("q", made_by, ()) for made_by in (("question",), STRATEGIES))
    failed = dict.fromkeys(STRATEGIES, "HTTP 500")
    for search, rewrites, count in (
        (alone, Rewrites({}, {}, "no strategy is needed"), 0),
        (itself, Rewrites(dict.fromkeys(STRATEGIES, ("q",)), failed), 0),  # the question is not searched besides
        (itself, Rewrites(dict.fromkeys(STRATEGIES, ("q",)), {STRATEGIES[0]: "it is missing"}), len(STRATEGIES) - 1),
        (alone, None, 0),
    ):
        hits = MultiQueryHits((search,), rewrites, (), 0, "q")
        assert (strategies_of(hits), rewrites_of(hits)) == (count, 0)
    equal = tuple(QueryHits(query, by, ()) for query, by in (("q", ("question", "kwr")), ("r", ("par", "cce"))))
    assert rewrites_of(MultiQueryHits(equal, None, (), 0)) == 1


def test_a_rewriter_that_writes_one_by_one_is_charged_one_by_one() -> None:
    queries = {name: (name,) for name in STRATEGIES}
    each = Rewrites(queries, {"par": "why"}, "", {"model_calls": 3.0, "tokens": 30.0, "fallbacks": 1.0})
    assert restricted(each, ("par",)).costs == {"model_calls": 1.0, "tokens": 10.0, "fallbacks": 1.0}
    together = Rewrites(queries, {"par": "why"}, "", {"model_calls": 1.0, "tokens": 30.0, "fallbacks": 1.0})
    one = restricted(together, ("kwr", "cce"))
    assert (one.costs, one.fallbacks) == ({"model_calls": 1.0, "tokens": 30.0}, {})
    assert list(one.queries) == ["kwr", "cce"]
    assert restricted(each, STRATEGIES) is each


def test_an_index_without_the_gold_passages_is_measured_by_has_answer(tmp_path: Path) -> None:
    retriever = Bm25Retriever(write_index(tmp_path))
    gold = Passage.of("Other", "of another corpus")
    asked = [Question("a", "alba river", ("joins",), (gold,), (gold.id,))]
    found = measured(Dmqr(retriever, k=5, fusion="rrf"), tmp_path, asked)
    assert "relevance by has-answer" in table(found, "methods").title
    assert value(found, "methods", "OQR", "H@5 %") == 100
