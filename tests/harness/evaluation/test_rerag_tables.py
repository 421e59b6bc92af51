"""RE-RAG's tables of answers, rankings and contexts, worked out by hand on invented pools."""

import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from common.answer_metrics import NORMALIZATIONS
from common.errors import UserError
from common.records import Answer, Passage, Question, Source
from harness.evaluation import answer_scores as of_answers
from harness.evaluation import paper_figures
from harness.evaluation.rerag import tables as rerag
from harness.evaluation.rerag.answers import contexts_case
from harness.evaluation.rerag.candidates import CandidateSet
from harness.evaluation.settings import Settings
from harness.retrievers.bm25 import Bm25Retriever, build_bm25
from harness.retrievers.question_passages import bm25_of_shipped
from models.calibration import Calibration
from models.metrics import auroc
from models.rerag import unanswerable as refusing
from models.rerag.temperature import fit_temperature
from tests.helpers.candidate_sets import FEW, NAN, POOLS, values
from tests.helpers.rerag_world import corpus, questions

pytestmark = pytest.mark.numeric
SQUAD = Settings("musique", "squad", (1,), None, FEW, Path("unused"))
SCORING = rerag.Scoring("squad", FEW)
FAST = rerag.Scoring("squad", FEW, ("fast",))


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
    table = rerag.recall_table(POOLS, (1, 2, 3), FEW, "nq")
    assert list(table.rows) == ["retriever", "RE", "RE - retriever"]
    assert [values(table, row) for row in table.rows] == [[50, 50, 75, 75], [50, 50, 75, 75], [0, 0, 0, 0]]
    low, high = table.rows["RE - retriever"][0].interval
    assert low < 0 < high
    assert [None if c is None else c.value for c in table.paper["FiD-KD"]] == [49.4, None, None, 89.3]
    table = rerag.recall_table(POOLS[2:3], (1, 3, 5), FEW, None)
    assert {cell.reason for cells in table.rows.values() for cell in cells} == {"no candidate holds an answer"}


def test_bm25_of_own_passages_is_that_of_an_index_of_all(tmp_path: Path) -> None:
    passages = corpus(12)
    asked = [*questions(passages, 4, 5), Question("q9", "zebra", passages=tuple(passages[:2]))]
    shipped = list({p.id: p for q in asked for p in q.passages}.values())
    build_bm25(shipped, tmp_path / "bm25")
    found = Bm25Retriever(tmp_path / "bm25").search([q.text for q in asked], len(shipped))
    for question, own, hits in zip(asked, bm25_of_shipped(asked), found, strict=True):
        everywhere = {hit.passage.id: hit.score for hit in hits}
        assert list(own) == [p.id for p in question.passages]
        assert own == pytest.approx({id_: everywhere.get(id_, 0.0) for id_ in own})


def test_ablation_by_hand() -> None:
    # of two contexts; question 0 needs the estimator's contexts and weights, 1 the estimator's weights or two contexts
    table = rerag.ablation_table(POOLS, rerag.read_settings(POOLS, 2, rerag.BY_GENERATOR), SCORING, 2, "triviaqa")
    # question 0: the estimator keeps 2, 1; the retriever's weights (1 against 2) then prefer the wrong one
    # question 1: gold and one wrong: gold wins by 1.0 against 0.9; question 3: the estimator keeps the wrong ones
    assert {name: values(table, name)[::2] for name in rerag.ABLATION} == {
        "Baseline": [50, 50],  # 1 and 3
        "RE score": [25, 25],  # 1; in 3 the estimator's weights prefer the wrong one
        "RE context": [25, 25],  # 1
        "RE context, score": [50, 50],  # 0 and 1
    }
    assert [values(table, row)[1] for row in ("Baseline", "RE context, score", "RE score")] == [None, 0, -25]
    assert [cell.value for cell in table.paper["RE-RAG base"][:1]] == [68.2]


def test_ablation_with_a_generator_trained_without_the_estimator() -> None:
    joint = rerag.read_settings(POOLS, 2, rerag.BY_GENERATOR)
    alone = rerag.ablation_table(POOLS, joint, SCORING, 2, "nq")
    assert "jointly trained generator, under other weights than it was trained with" in alone.note
    assert not [name for name in alone.rows if name.startswith(rerag.BASELINE)]

    # a generator that never answers right, except in question 3
    x = {"written": ("x",) * 3, "candidates": ("x",)}
    wrong = [replace(p, matrix=replace(p.matrix, **x, answer_logp_AN=p.matrix.answer_logp_AN[:1])) for p in POOLS[:3]]
    baseline = rerag.read_settings([*wrong, POOLS[3]], 2, rerag.BY_GENERATOR, rerag.BASELINE)
    table = rerag.ablation_table(POOLS, joint | baseline, SCORING, 2, "nq")
    own = [rerag.BASELINE + name for name in rerag.ABLATION]
    assert list(table.rows)[:8] == [*own, *rerag.ABLATION]
    assert [values(table, name)[::2] for name in own] == [[25, 25], [0, 0], [0, 0], [0, 0]]
    assert values(table, own[1])[1::2] == [-25, -25]  # to its own baseline
    assert {name: table.rows[name] for name in rerag.ABLATION} == alone.rows
    gains = {name: values(table, f"{name} - {rerag.BASELINE}{name}")[::2] for name in rerag.ABLATION}
    assert gains == {"Baseline": [25, 25], "RE score": [25, 25], "RE context": [25, 25], "RE context, score": [50, 50]}
    assert values(table, f"RE context, score - {own[0]}") == [25, None, 25, None]
    assert set(list(table.rows)[8:]) <= table.signed
    assert "under other weights" not in table.note


def test_contexts_table_by_hand() -> None:
    table = rerag.contexts_table(POOLS, SCORING, 3)
    assert list(table.rows) == list(rerag.contexts_table(POOLS, SCORING, 25).rows) == ["1", "2", "3"]
    assert table.columns == tuple(f"EM %, {n}, {m}" for n in ("RE", "retriever") for m in ("thorough", "fast"))
    # with three contexts two wrong ones outvote gold in question 1 for the retriever, and in 0 they always did
    assert [values(table, row) for row in "13"] == [[50, 50, 50, 50], [50, 50, 25, 25]]
    assert [rerag.context_counts(n) for n in (25, 7, 1)] == [[1, 2, 5, 10, 15, 20, 25], [1, 2, 5, 7], [1]]


def test_confidence_of_the_retriever_by_hand() -> None:
    retriever = rerag.retriever_confidence([replace(p, retriever_temperature=2.0) for p in POOLS])
    # scores run from 0.9 to 3 (times the temperature): (score - 0.9) / 2.1
    assert retriever[0] == pytest.approx([1.0, 1.1 / 2.1, 0.1 / 2.1])
    cosine = replace(POOLS[0], source="cosine", retriever_temperature=0.1)
    mixed = rerag.retriever_confidence([cosine, replace(POOLS[1], source="given"), POOLS[2]])  # each by itself
    assert [each.tolist() for each in mixed] == [pytest.approx([0.3, 0.2, 0.1]), [1, 0, 0], [1, 0.5, 0]]


def test_answers_are_judged_under_every_protocol_and_by_kind() -> None:
    golds = (("U.S.", "single"), ("Paris", "bridge"), ("yes", "bridge"))
    asked = [Question(str(n), "?", (gold,), kind=kind) for n, (gold, kind) in enumerate(golds)]
    given = [Answer(q.id, text, ()) for q, text in zip(asked, ("u s", "in Paris", ""), strict=True)]
    given[0] = replace(given[0], costs={"calls": 3.0, "usd": 0.00012})
    main, kinds = of_answers.answer_tables(asked, given, replace(SQUAD, layout="nq", normalization="triviaqa"))
    costs = of_answers.costs_table({"a": given})
    assert list(main.rows) == ["ours, triviaqa", "ours, squad", "ours, re_rag"]
    # TriviaQA's blanks make "u s" equal; SQuAD deletes the points: "us"
    assert values(main, "ours, triviaqa") == [33.3333, round(100 * (1 + 2 / 3) / 3, 4), 66.6667]
    assert values(main, "ours, squad") == [0, round(100 * (2 / 3) / 3, 4), 33.3333]
    assert values(kinds, "bridge") == [2, 0, round(100 * (2 / 3) / 2, 4), 50]
    assert list(kinds.rows) == ["bridge", "single"]
    assert costs.columns == ("calls", "US dollars per 1,000 questions", "seconds")
    assert values(costs, "a") == [1, 0.04, 0]
    assert of_answers.score_answers([""], asked[2:], "squad")[1].tolist() == [0]


def test_an_answer_is_right_in_every_unicode_form() -> None:
    same = {"1½ miles": "11\u20442 miles", "10⁶": "106", "№ 5": "No 5", "L\u00f6we": "Lo\u0308we", "\uff15月": "5月"}
    same |= {"2½": "2½", "\u0645\u06cc\u200c\u062e": "\u0645\u06cc\u062e"}
    for gold, text in same.items():
        for asked, answer in ((gold, text), (text, gold)):
            for rule in NORMALIZATIONS:
                scores = of_answers.score_answers([answer], [Question("q", "?", (asked,))], rule)
                assert scores.tolist() == [[1.0]] * 3, (asked, answer, rule)


def test_answers_are_compared_by_characters_where_most_need_it() -> None:
    chinese, english, open_ = Question("a", "?", ("北京市",)), Question("b", "?", ("Paris",)), Question("c", "?")
    settings = replace(SQUAD, layout="flashrag", by_script=True)
    assert settings.for_questions([chinese, english, open_]).normalization == "squad"  # one of two
    chosen = settings.for_questions([chinese, chinese, english, open_])
    assert chosen.normalization == "characters"
    assert SQUAD.for_questions([chinese]).normalization == "squad"  # somebody named it
    (main,) = of_answers.answer_tables([chinese], [Answer("a", "北京", ())], chosen)
    assert values(main, "ours, characters") == [0, 80, 0]
    for asked, by_characters in ((chinese, True), (english, False)):
        (table, *_) = of_answers.answer_tables([asked], [Answer(asked.id, "", ())], settings)
        assert ("ours, characters" in table.rows) is by_characters
    (line,) = of_answers.script_facts([chinese, english, open_], "squad")
    assert line.startswith("1 of 2 questions have gold answers in a script without blanks between words")
    assert of_answers.script_facts([english, open_], "squad") == []


def test_unanswerable_questions_are_counted_apart() -> None:
    withheld = Source(withheld=("Kyd",))
    asked = [Question(id_, "?", ("Kyd",)) for id_ in "abc"]
    asked += [*(Question(id_, "?", source=withheld) for id_ in "abd"), Question("e", "?")]
    texts = ["Kyd", "Kyd", "I don't know.", "Kyd", "unanswerable", "", "Kyd"]
    given = [Answer(q.id, text, ()) for q, text in zip(asked, texts, strict=True)]
    shares, pairs = of_answers.withheld_tables(asked, given, SQUAD)
    assert values(shares, "answerable")[:3] == [3, 66.6667, 33.3333]
    assert values(shares, "unanswerable") == [3, 33.3333, 66.6667, 33.3333]
    assert values(pairs, "ours, squad") == [2, 50, 50, 50]  # a is right, and answered in both
    given[5] = replace(given[5], costs={"failed_calls": 1.0})
    shares, _ = of_answers.withheld_tables(asked, given, SQUAD)
    assert values(shares, "unanswerable") == [3, *[33.3333] * 3]
    assert of_answers.withheld_tables(asked[:3], given[:3], SQUAD) == []
    (alone,) = of_answers.withheld_tables(asked[3:], given[3:], SQUAD)
    assert values(alone, "unanswerable")[0] == 3


def test_published_figures() -> None:
    answers, published = paper_figures.answers, paper_figures.published
    assert "Llama3-8B, CIS w/o QDC, k = 4 (Table 4)" in answers("hotpotqa", 4)
    assert not [name for name in answers("musique", None) if "Table 4" in name]
    assert published("RE-RAG, Table 7", None, ("EM",)) == {}
    assert answers("triviaqa", None)["RE-RAG mixed, 25"][0].value == 69.5
    table_5 = published("RE-RAG, Table 5", "nq", ("", "before", "after", "", "refused"))
    table_3 = published("DR-RAG, Table 5, k = 6", "2wiki", ("recall", "", "documents"))
    for cells, expected in (
        (answers("hotpotqa", 4)["Llama3-8B, CFS, k = 4 (Table 3)"], [48.30, 62.81, 55.22]),
        (table_5["RE-RAG base"], [None, 58.3, 54.9, None, 51.3]),
        (table_3["CFS"], [98.04, None, 4.63]),
    ):
        assert [cell and cell.value for cell in cells] == expected


def test_table_6_by_hand() -> None:
    table = rerag.llm_table(POOLS, FAST, 12, "nq")
    assert table.columns == ("EM %, top-5", "EM %, top-10")  # no pool has more than three contexts
    # the retriever's weights are right about the last pool alone, the estimator's about the first two
    found = [values(table, row) for row in ("LLM w/ retriever", "LLM w/ RE", "RE - retriever")]
    assert found == [[25, 25], [50, 50], [25, 25]]
    assert [cell.value for cell in table.paper["GPT w/ RE"]] == [48.8, 49.3]
    table = rerag.llm_table(POOLS, FAST, 1, "nq")
    assert values(table, "LLM w/ retriever") == [50]  # its first context knows in two pools
    assert table.paper == {}  # the paper has no such figure
    table = rerag.ablation_table(POOLS, rerag.read_settings(POOLS, 2, ("fast",)), FAST, 2, "nq", by_llm=True)
    assert (list(table.rows), len(table.columns), table.paper) == (list(rerag.ABLATION), 2, {})


def test_detection_by_hand() -> None:
    # below 0.6: the 1st, 2nd and 4th, of which the 2nd and 4th have no answer; the 5th, without one too, is missed
    found = refusing.detection([0.5, 0.1, 0.6, 0.59, 0.9], [True, False, True, False, False], 0.6)
    assert (found.precision, found.recall, found.f1) == pytest.approx((2 / 3, 2 / 3, 2 / 3))
    assert refusing.detection([0.9, 0.9], [True, False], 0.5).f1 == 0
    # F1 1 at 0.6 and at 0.7, the lowest is taken; at 0.5 the 0.55 is missed, from 0.8 on the 0.75 is refused wrongly
    assert refusing.best_refusal_threshold([0.3, 0.55, 0.75, 0.95], [False, False, True, True]) == (0.6, 1.0)
    assert [d.threshold for d in refusing.sweep([0.5], [True])] == [0.5, 0.6, 0.7, 0.8, 0.9]
    for best, label, message in (([NAN], [True], "NaN"), ([0.5], [True, False], "needed")):
        with pytest.raises(ValueError, match=message):
            refusing.best_refusal_threshold(best, label)
    with pytest.raises(ValueError, match="NaN"):
        refusing.cheapest_refusal_threshold([NAN], [True], 1)


scored = st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=12)


@given(scored)
def test_auroc_is_the_share_of_ordered_pairs(rows: list[tuple[int, bool]]) -> None:
    pairs = [(p > n) + (p == n) / 2 for p, yes in rows if yes for n, no in rows if not no]
    found = auroc([s for s, _ in rows], [y for _, y in rows])
    assert found == pytest.approx(np.mean(pairs)) if pairs else math.isnan(found)


def test_refusal_by_hand() -> None:
    exact, confidences = np.array([1.0, 1, 0, 0]), rerag.calibrated(POOLS, Calibration(1.0, 0.0))
    system = rerag.Confidence.of("estimator", POOLS, confidences, 2, exact, 0.9)
    # of the two kept, question 3 has no answer either; its best P is sigmoid(2) = 0.88, question 0's sigmoid(4) = 0.98
    assert system.answerable_N.tolist() == [True, True, False, False]
    assert system.max_N == pytest.approx([1 / (1 + math.exp(-s)) for s in (4, 5, -3, 2)])
    detected, refused = rerag.refusal_tables([system], FEW, "nq")
    assert values(detected, "RE, exported threshold 0.9") == [100, 100, 100]
    assert values(detected, "RE, threshold 0.9, best on these questions") == [100, 100, 100]
    assert values(refused, "RE, exported threshold 0.9") == [2, 100, 100, 2, 100]
    strict = rerag.Confidence.of("estimator", POOLS, confidences, 2, exact, 0.99)
    _, refused = rerag.refusal_tables([strict], FEW, None)
    assert values(refused, "RE, exported threshold 0.99")[:3] == [2, 100, 50]  # question 0's 0.98 is refused now
    free = rerag.Confidence.of("estimator", POOLS, confidences, 2, None)
    assert [table.name for table in rerag.refusal_tables([free], FEW, None)] == ["detection"]


@pytest.mark.parametrize(("answerable", "reason"), [(True, rerag.EVERY), (False, rerag.NONE)])
def test_questions_of_one_kind_have_nothing_to_detect(answerable: bool, reason: str) -> None:
    label_N, exact_N = np.full(4, answerable), np.array([1.0, 1, 0, 0])
    systems = [
        rerag.Confidence("RE", np.array([0.9, 0.4, 0.9, 0.4]), label_N, exact_N, 0.5),
        rerag.Confidence("retriever", np.array([0.8, 0.7, 0.6, 0.5]), label_N, exact_N, None),
    ]
    detected, refused = rerag.refusal_tables(systems, FEW, None)
    assert {cell.reason for cells in detected.rows.values() for cell in cells} == {reason}
    # a retriever's threshold cannot be chosen here
    assert {cell.reason for cell in refused.rows["retriever"]} == {f"no threshold is exported, and {reason}"}
    reasons = [cell.reason for cell in refused.rows["RE, exported threshold 0.5"]]
    expected = ["refused %"] if answerable else ["EM % before", "EM % after"]
    assert reasons == [reason if column in expected else "" for column in refused.columns]


def test_precision_without_a_refusal_is_not_measured() -> None:
    system = rerag.Confidence("RE", np.array([0.95, 0.4]), np.array([True, False]), None, 0.3, "given")
    table = rerag.refusal_tables([system], FEW, None)[0]
    assert [cell.reason for cell in table.rows["RE, given threshold 0.3"]] == ["", "none refused", ""]
    assert values(table, "RE, threshold 0.5, best on these questions") == [100, 100, 100]


def test_the_cheapest_threshold_by_hand() -> None:
    # best contexts:  0.2 -, 0.3 +, 0.5 -, 0.6 +, 0.8 +     (+: with an answer)
    best, label = [0.2, 0.3, 0.5, 0.6, 0.8], [False, True, False, True, True]
    for scores, labels, cost, expected in (
        (best, label, 1, (0.25, 1 / 5)),  # the 0.5 is answered; ties: the lowest
        (best, label, 0.5, (0.55, 0.5 / 5)),  # refusing the 0.3 is cheaper
        (best, label, 100, (0.25, 1 / 5)),
        ([0.2, 0.8], [True, True], 1, (0, 0)),  # nothing to refuse
        ([0.2, 0.8], [False, False], 1, (1, 0)),
    ):
        assert refusing.cheapest_refusal_threshold(scores, labels, cost) == expected
    # neighbours closer than four digits, and a question without contexts, which every threshold refuses
    close = [0.50001, 0.50002, -np.inf]
    threshold, wrong = refusing.cheapest_refusal_threshold(close, [False, True, False], 1)
    assert (close[0] < threshold <= close[1], wrong) == (True, 0)


probable = st.lists(st.tuples(st.sampled_from([0.1, 0.3, 0.31, 0.7, 0.9]), st.booleans()), min_size=1, max_size=12)


@given(probable, st.sampled_from([0.25, 1.0, 4.0]))
def test_no_threshold_is_cheaper(rows: list[tuple[float, bool]], refusal_cost: float) -> None:
    best_N, label_N = (np.array(column) for column in zip(*rows, strict=True))
    threshold, cost = refusing.cheapest_refusal_threshold(best_N, label_N, refusal_cost)
    for other in (threshold, 0, *np.linspace(0.05, 1, 20)):
        refused_N = best_N < other
        wrong = refusal_cost * (refused_N & label_N).sum() + (~refused_N & ~label_N).sum()
        assert cost <= wrong / len(rows) + 1e-12
        assert other != threshold or cost == pytest.approx(wrong / len(rows))


@given(probable, st.sampled_from([0.3, 1.1]))
def test_a_cost_for_another_share_of_unanswerable_questions(rows: list[tuple[float, bool]], cost: float) -> None:
    """Repeating the questions of one kind changes their share; the formula's cost then chooses the same threshold."""
    best_N, label_N = (np.array(column) for column in zip(*rows, strict=True))
    assume(label_N.any() and not label_N.all())
    often = np.concatenate([np.repeat(best_N[label_N], 3), best_N[~label_N]])
    kinds = np.concatenate([np.repeat(label_N[label_N], 3), label_N[~label_N]])
    v, s = 1 - label_N.mean(), 1 - kinds.mean()
    here = refusing.cheapest_refusal_threshold(best_N, label_N, cost * (1 - s) * v / (s * (1 - v)))[0]
    assert refusing.cheapest_refusal_threshold(often, kinds, cost)[0] == here


def test_the_page_says_calibrated_where_calibration_was_fitted() -> None:
    passages = tuple(Passage.of(name, "x") for name in ("Alba", "Brune"))
    item = CandidateSet(Question("q", "?"), passages, np.zeros(2), np.array([-1.0, 0.5]), np.array([True, False]))
    for calibration, column, shown in (
        (Calibration(2.0, 1.0), "calibrated P(relevant)", ["0.881", "0.269"]),  # sigmoid of 2 and of -1
        (Calibration(), "relevance score", ["0.500", "-1.000"]),
    ):
        case = contexts_case(SimpleNamespace(calibration=calibration, contexts=2), item)  # type: ignore[arg-type]
        assert case.columns[2] == column
        assert [(row[1], row[2]) for row in case.rows] == list(zip(("Brune", "Alba"), shown, strict=True))
