"""DMQR-RAG's study: every row is what a system configured like it answers, and nothing is computed twice."""

import json
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
from harness.evaluation.dmqr.tables import score_methods
from harness.evaluation.engine import MeasuredSystem, measure
from harness.evaluation.judge import Judge
from harness.evaluation.tables import Cell
from harness.retrievers.bm25 import Bm25Retriever, build_bm25
from harness.retrievers.multi_query import MultiQueryHits, QueryHits
from harness.retrievers.rerank_prior import PRIOR, RerankPrior
from harness.retrievers.rm3 import Rm3Retriever
from harness.systems.dmqr import Dmqr
from harness.tuning.dmqr import Tuning
from harness.tuning.rerank_prior import WEIGHTS
from models.calibration import Calibration
from tests.helpers.rewriting_study import ASKED, CORPUS, STRATEGIES, TABLE, dmqr_of, measured, settings, table, value
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


def options_of(**more: Any) -> dict[str, Any]:
    """Of a system that rewrites by the table."""
    return {"rewriter": TableRewriter(TABLE), "strategies": STRATEGIES, **more}


def prior_of(tmp_path: Path, weight: float) -> Path:
    PRIOR.write(tmp_path / "prior.json", RerankPrior(weight, Calibration()).content)
    return tmp_path / "prior.json"


def assert_rows_are_systems(found: MeasuredSystem, systems: dict[str, Dmqr]) -> None:
    """Evidence, texts and counted costs of rows are those of systems that are configured like them."""
    for name, each in systems.items():
        for one, other in zip(found.systems[name], each.answer(ASKED), strict=True):
            assert counted(one)[:-1] == counted(other)[:-1], name  # not the notes, which some rows leave out
            assert one.notes == other.notes or name not in ("dmqr", "OQR")


@pytest.mark.parametrize(("reranked", "weight"), [(True, None), (True, 2.0), (False, None)])
def test_every_row_is_a_system_s_answers(bm25: Bm25Retriever, tmp_path: Path, reranked: bool, weight: Any) -> None:
    """Of a system that is configured like it; nothing is computed twice."""
    scorers = (WordScorer(), WordScorer()) if reranked else (None, None)
    rewriter, reader, retriever = TableRewriter(TABLE), Titles(), CountingRetriever(bm25)
    alone = {"prior": prior_of(tmp_path, weight)} if weight else {}
    own = options_of(**alone, reader=reader)
    found = measured(dmqr_of(retriever, scorers[0], **own | {"rewriter": rewriter}), tmp_path)
    searched = [(query, k) for queries, k in retriever.asked for query in queries]
    assert rewriter.asked == [[each.text for each in ASKED]]
    scored = scorers[0].asked if scorers[0] else []
    assert (len(set(searched)), len(set(scored))) == (len(searched), len(scored))
    shown = {(each.question_id, each.evidence) for answers in found.systems.values() for each in answers}
    assert len(reader.read_sets) == len(shown)
    assert f"{len(scored)} (question, passage) scored once each" in " ".join(found.findings.facts)
    alone["reader"] = reader
    options = {one: own | {"strategies": (one,)} for one in STRATEGIES}
    options |= {f"w/o {one}": own | {"strategies": tuple(s for s in STRATEGIES if s != one)} for one in STRATEGIES}
    options |= {"dmqr": own, "OQR": alone, "OQR deep": alone | {"per_query": 20}}
    systems = {name: dmqr_of(bm25, scorers[1], **each) for name, each in options.items()}
    if reranked:
        systems["DMQR-RAG, rrf"] = dmqr_of(bm25, None, **own | {"prior": None})
    assert set(found.systems) == set(systems)
    assert_rows_are_systems(found, systems)
    for name in systems.keys() - {"dmqr"}:
        shown = [[hit.passage.id for hit in answer.evidence] for answer in found.systems[name]]
        assert [record["rows"][name]["passages"] for record in found.findings.records] == shown  # type: ignore[index]
    own_precision, without = (value(found, "ablation", row, "P@4 %") for row in ("DMQR-RAG", "w/o kwr"))
    assert value(found, "ablation", "w/o kwr", "fall, points") == pytest.approx(own_precision - without)
    passages = np.mean([len(hits) for hits in bm25.search([q.text for q in ASKED], 20)])
    assert value(found, "methods", "OQR deep", "passages") == pytest.approx(passages)


def test_tuning_chooses_the_weight_with_the_greatest_recall(bm25: Bm25Retriever, tmp_path: Path) -> None:
    asked = []
    for question in ASKED:  # gold is what the last two queries find first, which the question alone ranks low
        queries = [question.text, *(each for texts in TABLE[question.text].values() for each in texts)]
        first = [hits[0].passage.id for hits in bm25.search(queries, 1) if hits]
        asked.append(replace(question, support=tuple(dict.fromkeys(first))[-2:]))
    file, recalls = tmp_path / "tuned.json", {}
    said = Tuning().tune(dmqr_of(bm25, WordScorer(), **options_of()), asked, file, settings(tmp_path))
    for weight in WEIGHTS:
        answers = dmqr_of(bm25, WordScorer(), **options_of(prior=prior_of(tmp_path, weight))).answer(asked)
        recalls[weight] = np.mean([
            len({hit.passage.id for hit in answer.evidence[:k]} & {*question.support}) / len(question.support)
            for question, answer in zip(asked, answers, strict=True)
            for k in range(1, 5)
        ])  # fmt: skip
    chosen = PRIOR.read(file).weight
    assert chosen > 0
    assert recalls[chosen] == pytest.approx(max(recalls.values()))
    assert f"{100 * recalls[chosen]:.2f} %; by the estimator alone {100 * recalls[0.0]:.2f} %" in said[0]
    for system in (dmqr_of(bm25, None), dmqr_of(bm25, WordScorer(), **options_of(prior=file))):
        with pytest.raises(UserError, match=r"fusion is rrf|prior is what"):
            Tuning().check(system)


def test_rows_can_be_chosen_and_passages_judged_by_a_rewrite(bm25: Bm25Retriever, tmp_path: Path) -> None:
    own, scorer = options_of(judged_by="kwr", reader=Titles()), WordScorer()
    rows = ["OQR, judged by kwr", "OQR deep, judged by kwr", "par"]
    found = measured(dmqr_of(bm25, scorer, **own), tmp_path, rows=rows, deep=8)
    assert list(table(found, "methods").rows) == ["OQR", "OQR deep", *rows, "DMQR-RAG"]
    assert {name for name, answers in found.systems.items() if answers[0].text} == {"OQR", "OQR deep", *rows, "dmqr"}
    assert not any(each.name == "ablation" for each in found.findings.tables)
    assert value(found, "methods", "OQR deep", "passages") > value(found, "methods", "OQR", "passages")
    assert len(set(scorer.asked)) == len(scorer.asked)
    plain = dmqr_of(bm25, WordScorer(), reader=Titles())
    assert_rows_are_systems(found, {"dmqr": dmqr_of(bm25, WordScorer(), **own), "OQR": plain})
    for question, deep, par in zip(ASKED, *(found.systems[row] for row in rows[1:]), strict=True):
        judge = " ".join(TABLE[question.text].get("kwr", [question.text]))
        for answer, hits in (deep, bm25.search([question.text], 8)[0]), (par, par.evidence):
            scores = WordScorer().scores([(judge, hit.passage) for hit in hits])
            assert [hit.score for hit in answer.evidence] == sorted(scores, reverse=True)[:4]
    assert "judged by the rewrite by kwr" in found.findings.notes


class FirstWords(TableRewriter):
    """A rewriter that reads the first search: its query by a strategy is a word of the best passage."""

    feedback_passages = 3

    def rewrite(self, questions: Any, strategies: Any, found: Any = None) -> list[Rewrites]:
        """One record per question."""
        words = [hits[0].passage.text.split() for hits in found]
        self.table = {
            each.text: {name: [own[len(name) % 2 - 1]] for name in strategies}
            for each, own in zip(questions, words, strict=True)
        }
        return super().rewrite(questions, strategies)


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_rewriter_that_reads_what_is_found(bm25: Bm25Retriever, tmp_path: Path, elsewhere: bool) -> None:
    searched, other = (WorstFirst(bm25), {"feedback_retriever": bm25}) if elsewhere else (bm25, {})
    own = {"rewriter": FirstWords({}), "strategies": ("kwr", "core"), **other}
    found = measured(dmqr_of(searched, WordScorer(), **own), tmp_path)
    rows = {"dmqr": own, "kwr": {**own, "strategies": ("kwr",)}, "OQR": {}}
    assert_rows_are_systems(found, {name: dmqr_of(searched, WordScorer(), **options) for name, options in rows.items()})


def test_another_retriever_and_turns(bm25: Bm25Retriever, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A system with another retriever is a row; earlier turns are asked with their question."""
    other, asked = dmqr_of(Rm3Retriever(bm25), None), [replace(ASKED[0], history=(ASKED[1].text,)), *ASKED[1:]]
    monkeypatch.setattr("harness.evaluation.dmqr.study._system", lambda *_: other)
    found = measured(dmqr_of(bm25, None, **options_of()), tmp_path, asked, rows=["RM3"], rewriters={"RM3": tmp_path})
    assert list(found.systems) == ["dmqr", "OQR", "OQR deep", "RM3"]
    for row, alone in {"RM3": other, "OQR": dmqr_of(bm25, None)}.items():
        assert [each.evidence for each in found.systems[row]] == [each.evidence for each in alone.answer(asked)]


def test_without_a_rewriter_the_baselines_are_measured(bm25: Bm25Retriever, tmp_path: Path) -> None:
    found = measured(dmqr_of(bm25, None), tmp_path, deep=9)
    assert list(found.systems) == ["dmqr", "OQR deep"]
    assert not {"rewrites", "ablation"} & {each.name for each in found.findings.tables}
    assert "OQR deep" not in measured(dmqr_of(bm25, None), tmp_path).systems  # as deep as OQR
    only = Dmqr(bm25, TableRewriter(TABLE), ("par",), 5, "rrf", original=False, k=4)
    assert list(measured(only, tmp_path).systems) == ["dmqr", "OQR"]  # one query: OQR deep would be OQR


@pytest.mark.parametrize(("paper", "first", "other"), [("hotpotqa", 42.24, "EM %"), ("freshqa", 71.5, "Acc %")])
def test_the_paper_s_figures(bm25: Bm25Retriever, tmp_path: Path, paper: Any, first: float, other: str) -> None:
    found = measure(dmqr_of(bm25, None, **options_of()), ASKED, Study(), settings(tmp_path, paper=paper))
    methods, ablation = table(found, "methods"), table(found, "ablation")
    cells = dict(zip(methods.columns, methods.paper["OQR (Table 2)"], strict=True))
    assert (cells["H@5 %"], cells[other] is None) == (Cell(first), False)
    assert methods.paper["RQ-RAG (Table 2)"][methods.columns.index("H@5 %")] is None
    fall = ablation.columns.index("fall, points")
    assert [ablation.paper[f"{row} (Table 4)"][fall] for row in ("Ours", "w/o PAR")] == [None, Cell(1.34)]
    assert ablation.rows["DMQR-RAG"][fall] is None
    assert not found.tables[0].paper  # DR-RAG's on the same data set
    assert found.findings.paper == "DMQR-RAG"


def test_a_judge_judges_every_row_and_is_asked_once(bm25: Bm25Retriever, tmp_path: Path) -> None:
    """It finds relevant what names the first word of the corpus, and every answer correct."""
    relevant = {each.id: WORDS[0] in f"{each.title} {each.text}" for each in CORPUS}
    verdicts = {id_: [json.dumps({"reason": "so", "relevant": yes})] for id_, yes in relevant.items()}
    llm = ScriptedLm({f">\n{each.title}\n{each.text}\n": verdicts[each.id] for each in CORPUS})
    judge = Judge(llm, ("passages",), passages=2)
    system = dmqr_of(bm25, WordScorer(), **options_of())
    found = measure(system, ASKED, Study(rows=["par"]), settings(tmp_path, judge=judge))
    for row, answers in {"DMQR-RAG": found.answers, "par": found.systems["par"]}.items():
        shares_N = np.array([sum(relevant[hit.passage.id] for hit in each.evidence[:2]) / 2 for each in answers])
        assert value(found, "methods", row, "judged P@2 %") == pytest.approx(100 * shares_N.mean())
        assert value(found, "methods", row, "judged H@2 %") == pytest.approx(100 * (shares_N > 0).mean())
    asked = [repr(chat) for call in llm.asked for chat in call]
    assert value(found, "judge costs of the methods", "all", "verdicts") == len(asked) == len(set(asked))


class ChoosesByLength(TableRewriter):
    """A rewriter that chooses strategies by the number of letters of the question."""

    adaptive, name = True, "by length"

    def without_choice(self) -> TableRewriter:
        return TableRewriter(self.table)

    def rewrite(self, questions: Any, strategies: Any) -> list[Rewrites]:
        """One record per question."""
        every = zip(questions, super().rewrite(questions, strategies), strict=True)
        return [restricted(made, strategies[: len(question.text) % 4]) for question, made in every]


def test_a_system_that_chooses_is_measured_with_and_without_the_choice(bm25: Bm25Retriever, tmp_path: Path) -> None:
    options = {"strategies": STRATEGIES, "judged_by": "kwr", "reader": Titles()}
    rewriters = {"dmqr": ChoosesByLength(TABLE), "all strategies": TableRewriter(TABLE)}
    systems = {name: dmqr_of(bm25, WordScorer(), rewriter=each, **options) for name, each in rewriters.items()}
    found = measured(dmqr_of(bm25, WordScorer(), rewriter=rewriters["dmqr"], **options), tmp_path, rows=["kwr"])
    assert list(table(found, "methods").rows) == ["OQR", "OQR deep", "all strategies", "kwr", "DMQR-RAG"]
    assert_rows_are_systems(found, systems)
    written = [{*made.queries} - {*made.fallbacks} for made in TableRewriter(TABLE).rewrite(ASKED, STRATEGIES)]
    chosen = [len(own & {*STRATEGIES[: len(each.text) % 4]}) for each, own in zip(ASKED, written, strict=True)]
    every = float(np.mean([*map(len, written)]))
    assert 0 in chosen
    assert every < 3  # one fell back to the question: it made no rewrite
    for name, strategies in {"DMQR-RAG": np.mean(chosen), "all strategies": every}.items():
        assert value(found, "rewrites", name, "strategies") == pytest.approx(strategies)
        searched = value(found, "methods", name, "queries")
        assert searched == pytest.approx(value(found, "rewrites", name, "mean") + 1)
    with pytest.raises(UserError, match="'all strategies' is the name of another row"):
        Study(rewriters={"all strategies": tmp_path}).check(systems["dmqr"])


def test_h_p_and_recall_by_hand() -> None:
    passages = {name: Passage.of(name, f"the {name}") for name in "abcdef"}
    ranked = [[Ranked(passages[name], 0.0) for name in row] for row in ("abcde", "fb", "")]
    found = [MultiQueryHits((QueryHits("q", ("question",), tuple(hits)),), None, tuple(hits), 0) for hits in ranked]
    everything, nan = tuple(passages.values()), np.nan
    gold = [
        Question(names, "?", ("b",), everything, tuple(passages[name].id for name in names), gold=Gold(titles=titles))
        for names, titles in (("be", ()), ("a", ()), ("a", ("elsewhere",)))
    ]
    answered = [Question(str(n), "?", answers) for n, answers in enumerate((("b", "c"), ("f",), ()))]
    of_gold = {"H@5": [1, 0, nan], "P@5": [2 / 5, 0, nan], "recall@4": [1 / 2, 0, nan], "recall of all": [1, 0, nan]}
    of_answers = {"H@2": [1, 1, nan], "P@2": [0.5, 0.5, nan], "recall@1": [0, 1, nan]}
    for asked, by_gold, k, at, expected in ((gold, True, 5, 4, of_gold), (answered, False, 2, 1, of_answers)):
        row = score_methods(asked, {"row": found}, by_gold, k, (at,))["row"]
        for name, values in expected.items():
            np.testing.assert_allclose(row[name], values, err_msg=name)


def test_the_number_of_rewrites_the_cases_and_an_index_of_other_passages(tmp_path: Path) -> None:
    retriever, everything = Bm25Retriever(write_index(tmp_path)), tuple(PASSAGES.values())
    asked = [
        Question("a", "alba river", ("x",), everything, (IDS["Elbe"], IDS["Alba"])),
        Question("b", "elbe", ("x",), everything, (IDS["Elbe"],)),
    ]
    made = {"alba river": {"kwr": ["elbe mountain"], "par": ["alba brune"]}, "elbe": {"par": ["dorn"]}}
    found = measured(Dmqr(retriever, TableRewriter(made), ("kwr", "par"), 3, "rrf", k=2), tmp_path, asked)
    # a: the question finds Alba, Calder, Alba (ship); kwr Elbe, Fulda; par Alba (ship), Alba, Brune. b: Elbe; Elbe;
    # Calder, Dorn
    shares = [value(found, "rewrites", "DMQR-RAG", column) for column in ("mean", "0 %", "1 %", "2 %")]
    assert shares == [1.5, 0, 50, 50]
    assert value(found, "recall", "DMQR-RAG", "recall of all %") == 100
    assert found.findings.cases[0][0].rows[1] == ("kwr", "elbe mountain", "2", "2", "Elbe (1)")
    assert found.findings.cases[1][0].note == "kwr: the question itself, because it is missing"
    gold = Passage.of("Other", "of another corpus")
    other = [Question("a", "alba river", ("joins",), (gold,), (gold.id,))]
    found = measured(Dmqr(retriever, k=5, fusion="rrf"), tmp_path, other)
    assert "relevance by has-answer" in table(found, "methods").title
    assert value(found, "methods", "OQR", "H@5 %") == 100


def test_no_strategy_is_none_in_the_figures() -> None:
    alone, itself = (QueryHits("q", made_by, ()) for made_by in (("question",), STRATEGIES))
    queries = dict.fromkeys(STRATEGIES, ("q",))
    for search, rewrites, count in (
        (alone, Rewrites({}, {}, "no strategy is needed"), 0),
        (itself, Rewrites(queries, dict.fromkeys(STRATEGIES, "HTTP 500")), 0),  # the question is not searched besides
        (itself, Rewrites(queries, {STRATEGIES[0]: "it is missing"}), len(STRATEGIES) - 1),
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
    one = restricted(replace(each, costs=each.costs | {"model_calls": 1.0}), ("kwr", "cce"))  # written together
    assert (one.costs, one.fallbacks) == ({"model_calls": 1.0, "tokens": 30.0}, {})
    assert list(one.queries) == ["kwr", "cce"]
    assert restricted(each, STRATEGIES) is each
