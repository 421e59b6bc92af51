"""Measuring answers: RE-RAG's tables worked out by hand on invented pools, and the command on real random models."""

import csv
import itertools
import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import infer
from datamodules.answers import exact_match, has_answer
from datamodules.errors import UserError
from datamodules.formats.reading import read_questions
from datamodules.records import Answer, Passage, Question
from harness.answering import published, study
from harness.answering.lexical import bm25_of_own
from harness.answering.measures import Bootstrap, answer_tables, judge
from harness.answering.pools import Pool, gather, holding
from harness.answering.refusing import Confident, coverage_curves, refusal_tables, resampled_interval
from harness.answering.tables import Cell, Table, tables_csv, tables_markdown
from harness.answering.temperature import fit_temperature
from harness.bm25 import Bm25Retriever, build_bm25
from harness.commands.answers import answers
from harness.strategies.drrag import DrRag
from harness.strategies.rerag import ReRag
from models.calibration import Calibration
from models.marginal import MarginalReader, Matrix, weigh
from models.refusal import auroc, best_refusal_threshold, detection, risk_coverage, sweep
from models.rerag import ReRagModel
from tests.conftest import hotpot_rows
from tests.rerag_world import corpus, questions, write_serving

FEW = Bootstrap(resamples=200)
NAN = float("nan")


# --- models/refusal.py


def test_detection_by_hand() -> None:
    # below 0.6: the 1st, 2nd and 4th, of which the 2nd and 4th have no answer; the 5th, without one too, is missed
    found = detection([0.5, 0.1, 0.6, 0.59, 0.9], [True, False, True, False, False], 0.6)
    assert (found.precision, found.recall) == (pytest.approx(2 / 3), pytest.approx(2 / 3))
    assert found.f1 == pytest.approx(2 / 3)
    assert detection([0.9, 0.9], [True, False], 0.5).f1 == 0


def test_best_threshold_is_the_lowest_of_the_best() -> None:
    # F1 1 at 0.6 and at 0.7; at 0.5 the 0.55 is missed, from 0.8 on the 0.75 is refused wrongly
    assert best_refusal_threshold([0.3, 0.55, 0.75, 0.95], [False, False, True, True]) == (0.6, 1.0)
    assert [d.threshold for d in sweep([0.5], [True])] == [0.5, 0.6, 0.7, 0.8, 0.9]
    with pytest.raises(ValueError, match="NaN"):
        best_refusal_threshold([NAN], [True])
    with pytest.raises(ValueError, match="needed"):
        best_refusal_threshold([0.5], [True, False])


scored = st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=12)


@given(scored)
def test_auroc_is_the_share_of_ordered_pairs(rows: list[tuple[int, bool]]) -> None:
    pairs = [(p > n) + (p == n) / 2 for p, yes in rows if yes for n, no in rows if not no]
    found = auroc([s for s, _ in rows], [y for _, y in rows])
    assert found == pytest.approx(np.mean(pairs)) if pairs else math.isnan(found)


@given(scored, st.randoms(use_true_random=False))
def test_risk_does_not_depend_on_the_order_of_equals(rows: list[tuple[int, bool]], chance) -> None:
    shuffled = chance.sample(rows, len(rows))
    one, other = (risk_coverage([s for s, _ in each], [float(e) for _, e in each]) for each in (rows, shuffled))
    assert one.risk_N == pytest.approx(other.risk_N)
    assert one.risk_N[-1] == pytest.approx(np.mean([e for _, e in rows]))


def test_risk_coverage_by_hand() -> None:
    curve = risk_coverage([0.9, 0.5, 0.5, 0.1], [0, 1, 0, 1])
    assert curve.risk_N.tolist() == pytest.approx([0, 0.25, 1 / 3, 0.5])
    assert curve.coverage_N.tolist() == [0.25, 0.5, 0.75, 1.0]
    assert curve.aurc == pytest.approx((0.25 + 1 / 3 + 0.5) / 4)


# --- temperature


def test_temperature_matches_the_frequency_of_hits() -> None:
    # two contexts a margin of 0.2 apart; the better one holds the answer in 3 of 4: sigmoid(0.2 / T) = 3/4
    scores = [np.array([0.7, 0.5])] * 4
    holds = [np.array([True, False])] * 3 + [np.array([False, True])]
    silent = ([np.array([0.1, 0.2]), np.array([5.0, 1.0])], [np.array([True, True]), np.array([False, False])])
    expected = 0.2 / math.log(3)
    assert fit_temperature(scores, holds) == pytest.approx(expected, rel=3e-3)
    assert fit_temperature(scores + silent[0], holds + silent[1]) == pytest.approx(expected, rel=3e-3)
    assert fit_temperature([10 * s for s in scores], holds) == pytest.approx(10 * expected, rel=3e-3)
    with pytest.raises(UserError, match="temperature_questions"):
        fit_temperature(*silent)


# --- tables on pools whose every figure is worked out by hand


def made_pool(
    number: int, holds: str, retriever: Sequence[float], relevance: Sequence[float], written: Sequence[str], gold: str
) -> Pool:
    """A pool of short texts, all of them read; each candidate is certain under its own context, e^-9 elsewhere."""
    passages = tuple(Passage.of(f"t{number}", f"{'yes' if mark == '1' else 'no'} {i}") for i, mark in enumerate(holds))
    candidates = tuple(dict.fromkeys(written))
    logp = torch.tensor([[0.0 if text == candidate else -9.0 for text in written] for candidate in candidates])
    return Pool(
        Question(f"q{number}", "?", (gold,)),
        passages,
        np.array(retriever, float),
        np.array(relevance, float),
        np.array([mark == "1" for mark in holds]),
        {i: i for i in range(len(holds))},
        Matrix(tuple(written), candidates, logp),
    )


POOLS = [
    # the estimator finds the last passage, which alone knows
    made_pool(0, "001", [3, 2, 1], [-2, -1, 4], ["x", "x", "gold"], "gold"),
    # both put the good one first; the retriever's weights let two wrong ones outvote it
    made_pool(1, "100", [1.0, 0.9, 0.9], [5, -1, -1], ["gold", "x", "x"], "gold"),
    # no answer anywhere, and the estimator knows
    made_pool(2, "000", [3, 2, 1], [-3, -3, -3], ["x", "y", "z"], "gold"),
    # an answer that the estimator ranks last
    made_pool(3, "100", [3, 2, 1], [-1, 2, 1], ["gold", "x", "x"], "gold"),
]


def values(table: Table, row: str) -> list[float | None]:
    return [None if cell is None else round(cell.value, 4) for cell in table.rows[row]]


def test_recall_table_by_hand() -> None:
    table = study.recall_table(POOLS, (1, 2, 3), FEW, "nq")
    assert values(table, "retriever") == [50, 50, 75, 75]
    assert values(table, "RE") == [50, 50, 75, 75]
    assert values(table, "RE - retriever") == [0, 0, 0, 0]
    assert list(table.rows) == ["retriever", "RE", "RE - retriever"]
    low, high = table.rows["RE - retriever"][0].interval
    assert low < 0 < high
    assert [None if c is None else c.value for c in table.paper["FiD-KD"]] == [49.4, None, None, 89.3]


def test_recall_beside_another_order() -> None:
    backwards = [[2, 1, 0]] * 4
    table = study.recall_table(POOLS, (1, 2), FEW, None, {"backwards": backwards})
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
    for question, own, hits in zip(asked, bm25_of_own(asked), found, strict=True):
        everywhere = {hit.passage.id: hit.score for hit in hits}
        assert list(own) == [p.id for p in question.passages]
        assert own == pytest.approx({id_: everywhere.get(id_, 0.0) for id_ in own})


def test_ablation_by_hand() -> None:
    judging = study.Judge("squad", FEW)
    # of two contexts; question 0 needs the estimator's contexts and weights, 1 the estimator's weights or two contexts
    table = study.ablation_table(POOLS, study.read_settings(POOLS, 2), judging, 2, "triviaqa")
    exact = {name: [c.value if c else None for c in table.rows[name]][::2] for name in study.ABLATION}
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


def test_contexts_table_by_hand() -> None:
    table = study.contexts_table(POOLS, study.Judge("squad", FEW), 3)
    assert list(table.rows) == ["1", "2", "3"]
    assert table.columns == tuple(f"EM %, {n}, {m}" for n in ("RE", "retriever") for m in ("thorough", "fast"))
    assert values(table, "1") == [50, 50, 50, 50]
    # with three contexts two wrong ones outvote gold in question 1 for the retriever, and in 0 they always did
    assert values(table, "3") == [50, 50, 25, 25]
    assert study.context_counts(25) == [1, 2, 5, 10, 15, 20, 25]
    assert study.context_counts(7) == [1, 2, 5, 7]
    assert study.context_counts(1) == [1]


def test_quality_by_hand() -> None:
    confidences = {
        "estimator": study.calibrated(POOLS, Calibration(1.0, 0.0)),
        "retriever": study.retriever_confidence(POOLS, False, 2.0),
    }
    # scores run from 0.9 to 3 (times the temperature): (score - 0.9) / 2.1
    assert confidences["retriever"][0] == pytest.approx([1.0, 1.1 / 2.1, 0.1 / 2.1])
    assert study.retriever_confidence(POOLS, True, 0.1)[0] == pytest.approx([0.3, 0.2, 0.1])
    exact = {"estimator": np.array([1.0, 1, 0, 0]), "retriever": np.array([0.0, 0, 0, 1])}
    table = study.quality_table(POOLS, confidences, exact, 3)
    assert values(table, "none")[:2] == [1, 0]
    assert values(table, "30-40%")[:2] == [2, 100]  # one of three contexts, in 0 and 1
    assert values(table, "60-70%") == [1, 0, 3, pytest.approx(33.3333)]
    assert sum(cells[0].value for cells in table.rows.values()) == 4


def test_refusal_by_hand() -> None:
    exact = np.array([1.0, 1, 0, 0])
    confidences = study.calibrated(POOLS, Calibration(1.0, 0.0))
    system = Confident.of("RE", "estimator", POOLS, confidences, 2, exact, 0.9)
    # of the two kept, question 3 has no answer either; its best P is sigmoid(2) = 0.88, question 0's sigmoid(4) = 0.98
    assert system.answerable_N.tolist() == [True, True, False, False]
    assert system.max_N == pytest.approx([1 / (1 + math.exp(-s)) for s in (4, 5, -3, 2)])
    detected, refused, area = refusal_tables([system], FEW, "nq")
    assert values(detected, "RE, exported threshold 0.9") == [100, 100, 100]
    assert values(detected, "RE, 0.5") == [50, 100, pytest.approx(66.6667)]
    assert values(detected, "RE, 0.9 (best F1 here)") == [100, 100, 100]
    assert values(refused, "RE, threshold 0.9 (exported)") == [2, 100, 100, 2, 100]
    assert values(area, "RE") == [1]
    strict = Confident.of("RE", "estimator", POOLS, confidences, 2, exact, 0.99)
    # 0.98 is refused now: question 0's right answer is lost
    assert values(refusal_tables([strict], FEW, None)[1], "RE, threshold 0.99 (exported)")[:3] == [2, 100, 50]
    free = Confident.of("RE", "estimator", POOLS, confidences, 2, None)
    assert [table.name for table in refusal_tables([free], FEW, None)] == ["detection", "auroc"]


def test_interval_of_auroc_holds_the_truth_and_tells_when_there_is_none() -> None:
    random = np.random.default_rng(0)
    label_N = random.random(300) < 0.5
    low, high = resampled_interval(auroc, random.normal(size=300) + label_N, label_N, FEW)
    assert low < 0.76 < high  # Phi(1 / sqrt 2)
    assert 0.06 < high - low < 0.2
    assert resampled_interval(auroc, np.ones(3), np.ones(3, bool), FEW) is None


def test_coverage_table() -> None:
    curves, table = coverage_curves({"sure": np.array([4.0, 3, 2, -np.inf])}, np.array([1.0, 1, 0, 0]))
    assert values(table, "sure") == [round((0 + 0 + 1 / 3 + 0.5) / 4, 4), 0, 0, 0.3333, 0.5]
    assert curves["sure"][1].tolist() == pytest.approx([0, 0, 1 / 3, 0.5])


def test_answers_are_judged_under_every_protocol_and_by_kind() -> None:
    asked = [Question("a", "?", ("U.S.",), kind="single"), Question("b", "?", ("Paris",), kind="bridge")]
    asked.append(Question("c", "?", ("yes",), kind="bridge"))
    given = [Answer("a", "u s", (), costs={"calls": 3.0}), Answer("b", "in Paris", ()), Answer("c", "", ())]
    main, kinds, costs = answer_tables(asked, given, "triviaqa", False, FEW)
    assert list(main.rows) == ["ours, triviaqa", "ours, squad", "ours, re_rag"]
    # TriviaQA's blanks make "u s" equal; SQuAD deletes the points: "us"
    assert values(main, "ours, triviaqa") == [33.3333, round(100 * (1 + 2 / 3) / 3, 4), 66.6667]
    assert values(main, "ours, squad") == [0, round(100 * (2 / 3) / 3, 4), 33.3333]
    assert values(kinds, "bridge") == [2, 0, round(100 * (2 / 3) / 2, 4), 50]
    assert list(kinds.rows) == ["bridge", "single"]
    assert values(costs, "calls") == [1]
    assert judge([""], asked[2:], "squad").f1_N.tolist() == [0]


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
        "t,a,x %,1234.5,-1,2,ours",
        "t,d,x %,2,,,ours",
        "t,e,x %,2,,,ours",
        "t,p,x %,,,,paper",
    ]
    text = tables_markdown("Title", ["fact"], [table], "")
    assert "| a | 1234.50 [-1.00, 2.00] |" in text
    assert "| d | 2 |" in text
    assert "| e | +2.00 |" in text
    assert "| *paper:* p |  |" in text
    with pytest.raises(ValueError, match="2 cells"):
        Table("t", "T", ("x",), {"a": [None, None]})


def test_published_figures() -> None:
    assert [c.value for c in published.answers("hotpotqa", 4)["Llama3-8B, CFS, k = 4 (Table 3)"]] == [
        48.30,
        62.81,
        55.22,
    ]
    assert "Llama3-8B, CIS w/o QDC, k = 4 (Table 4)" in published.answers("hotpotqa", 4)
    assert not [name for name in published.answers("musique") if "Table 4" in name]
    assert published.answers("triviaqa")["RE-RAG mixed, 25"][0].value == 69.5
    assert [c and c.value for c in published.refusal("nq")["RE-RAG base"]] == [None, 58.3, 54.9, None, 51.3]
    assert published.recall("hotpotqa", (1,)) == published.ablation(None) == published.detection("2wiki") == {}


# --- real random models


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory, checkpoints: dict[str, Path]) -> dict[str, Path]:
    """A serving folder, and questions half of whose answers it gets right; some passages hold them."""
    root = tmp_path_factory.mktemp("answers")
    serving = write_serving(
        checkpoints["t5"],
        root / "both",
        calibration=Calibration(0.5, 0.0),
        threshold=0.7,
        max_tokens=96,
        temperature=0.5,
    )
    rows = hotpot_rows(7)
    for row in rows:
        row["supporting_facts"] = []
    file = root / "dev.json"
    file.write_text(json.dumps(rows))
    asked = list(read_questions("hotpotqa", str(file)))
    given = ReRag(None, serving, contexts=4, device="cpu").answer(asked)
    for row, answer in itertools.islice(zip(rows, given, strict=True), 4):
        row["answer"] = answer.text
    rows[5]["context"][6][1] = [f"it is {rows[5]['answer']}"]
    rows[6]["answer"] = ""
    file.write_text(json.dumps(rows))
    reranker = write_serving(checkpoints["t5"], root / "reranker", generator=None, max_tokens=96)
    return {"serving": serving, "reranker": reranker, "dev": file, "encoder": checkpoints["bert"], "root": root}


def run(folders: dict[str, Path], out: Path, *more: str, serving: str = "serving") -> None:
    infer.main(
        [
            "answers", "--strategy", "harness.strategies.rerag.ReRag", "--strategy.serving", str(folders[serving]),
            "--strategy.contexts", "4", "--strategy.device", "cpu", "--questions", str(folders["dev"]), "--out", str(out),
            "--encoder", str(folders["encoder"]), "--resamples", "100", *more,
        ]
    )  # fmt: skip


def read_csv(out: Path) -> dict[tuple[str, str, str], float]:
    with (out / "answers.csv").open(encoding="utf-8") as file:
        return {
            (row["table"], row["row"], row["column"]): float(row["value"] or "nan")
            for row in csv.DictReader(file)
            if row["source"] == "ours"
        }


def test_a_matrix_of_more_contexts_serves_any_few_of_them(folders: dict[str, Path]) -> None:
    model = ReRagModel.load(folders["serving"], "cpu")
    passages, asked = corpus(8), "where was name1 born"
    for marginal in ("thorough", "fast"):
        reader = MarginalReader(model.generator, marginal, 4)
        (whole,) = reader.matrices([asked], [passages])
        assert len(whole.candidates) > 2
        for chosen in ([5, 1, 6], [0], list(range(8))):
            weights = torch.linspace(1, -1, len(chosen))
            (expected,) = reader.read([asked], [[passages[i] for i in chosen]], [weights.tolist()])
            found = weigh(whole.subset(chosen), weights)
            assert (found.text, found.written) == (expected.text, expected.written)
            assert found.logprob == pytest.approx(expected.logprob, abs=1e-4)
            assert found.shares == pytest.approx(expected.shares, abs=1e-4)


def test_the_command_measures_what_the_strategy_answers(folders: dict[str, Path], tmp_path: Path, capsys) -> None:
    run(folders, tmp_path / "report", "--paper", "nq", "--ks", "[1,3]", "--temperature_questions", str(folders["dev"]))
    out = tmp_path / "report"
    assert sorted(path.name for path in out.iterdir()) == [
        "answers.csv", "answers.json", "answers.md", "contexts.png", "quality.png", "questions.jsonl",
        "risk_coverage.png",
    ]  # fmt: skip
    asked = [q for q in read_questions("hotpotqa", str(folders["dev"])) if q.answers]
    strategy = ReRag(None, folders["serving"], contexts=4, device="cpu")
    expected = strategy.answer(asked)
    records = [json.loads(line) for line in (out / "questions.jsonl").read_text().splitlines()]
    assert len(records) == len(asked) == 6
    for record, answer in zip(records, expected, strict=True):
        assert record["answer"] == answer.text
        assert record["logprob"] == pytest.approx(answer.logprob, abs=1e-4)
        assert [hit["id"] for hit in record["evidence"]] == [hit.passage.id for hit in answer.evidence]
        assert record["notes"]["answerable"] == answer.notes["answerable"]
    figures = read_csv(out)
    exact = np.mean([exact_match(a.text, q.answers) for a, q in zip(expected, asked, strict=True)])
    assert exact >= 4 / 6
    assert figures["answers", "ours, squad", "EM %"] == pytest.approx(100 * exact, abs=1e-3)
    assert figures["ablation", "RE context, score", "EM %, thorough"] == pytest.approx(100 * exact, abs=1e-3)
    first = [has_answer(a.evidence[0].passage.text, q.answers) for a, q in zip(expected, asked, strict=True)]
    assert figures["recall", "RE", "R@1 %"] == pytest.approx(100 * np.mean(first), abs=1e-3)
    report = json.loads((out / "answers.json").read_text())
    assert report["questions"]["asked"] == 7
    assert report["study"]["temperature"] != 1
    text = (out / "answers.md").read_text()
    assert "*paper:* RE-RAG base" in text
    assert "fitted on 6 training questions" in text
    assert text in capsys.readouterr().out


def test_every_setting_equals_a_reader_that_reads_those_contexts_alone(folders: dict[str, Path]) -> None:
    asked = [q for q in read_questions("hotpotqa", str(folders["dev"])) if q.answers]
    build_bm25([p for q in asked for p in q.passages], folders["root"] / "bm25")
    retriever, model = Bm25Retriever(folders["root"] / "bm25"), ReRagModel.load(folders["serving"], "cpu")
    pools, seconds = gather(asked, model, retriever, None, candidates=7, contexts=3, temperature=2.0)
    assert set(seconds) == {"retrieval", "scoring", "reading"}
    (nothing,), _ = gather([Question("q", "zebra", ("x",))], model, retriever, None, 7, 3)
    assert nothing.read("estimator", "retriever", 3, "thorough").text == ""
    study.quality_table(
        [nothing], {key: [np.array([])] for key in study.RANKERS}, dict.fromkeys(study.RANKERS, np.zeros(1)), 3
    )
    empty = Confident.of("RE", "estimator", [nothing], [np.array([])], 3, np.zeros(1))
    assert (empty.max_N[0], empty.answerable_N[0]) == (-np.inf, False)
    for pool, hits in zip(pools, retriever.search([q.text for q in asked], 7), strict=True):
        by_id = {hit.passage.id: hit.score / 2 for hit in hits}
        ranked = sorted(by_id, key=lambda i: -by_id[i])
        logits = model.estimator.scores([(pool.question.text, p) for p in pool.passages])
        relevance = dict(zip([p.id for p in pool.passages], logits, strict=True))
        passages = {p.id: p for p in pool.passages}
        orders = {"retriever": ranked, "estimator": sorted(ranked, key=lambda i: -relevance[i])}
        weights = {
            "retriever": by_id,
            "estimator": {i: score / 0.5 for i, score in relevance.items()},
        }  # its temperature
        for contexts, by, count, marginal in itertools.product(orders, weights, (1, 3), ("thorough", "fast")):
            kept = orders[contexts][:count]
            reader = MarginalReader(model.generator, marginal, model.max_answer_tokens)
            (expected,) = reader.read(
                [pool.question.text], [[passages[i] for i in kept]], [[weights[by][i] for i in kept]]
            )
            found = pool.read(contexts, by, count, marginal)
            assert found.text == expected.text
            assert found.logprob == pytest.approx(expected.logprob, abs=1e-4)
        assert pool.holds_C.tolist() == holding(pool.question, pool.passages).tolist()
        with pytest.raises(KeyError):
            pool.read("estimator", "estimator", 7, "fast")  # more than were read


def test_refusing_and_reranking_alone(folders: dict[str, Path], tmp_path: Path) -> None:
    run(folders, tmp_path / "refusing", "--strategy.refuse", "true", "--strategy.threshold", "1.0")
    assert read_csv(tmp_path / "refusing")["answers", "ours, squad", "EM %"] == 0
    assert read_csv(tmp_path / "refusing")["ablation", "RE context, score", "EM %, thorough"] > 50
    run(folders, tmp_path / "reranker", serving="reranker")
    figures = read_csv(tmp_path / "reranker")
    assert {table for table, *_ in figures} == {"recall", "detection", "auroc"}
    record = json.loads((tmp_path / "reranker" / "questions.jsonl").read_text().splitlines()[0])
    assert record["candidates"][0]["written"] is None


class Echo:
    """A reader that answers with the first title."""

    def read(self, questions, evidence):
        return [Answer(q.id, hits[0].passage.title, tuple(hits)) for q, hits in zip(questions, evidence, strict=True)]


def test_any_strategy_is_measured(folders: dict[str, Path], tmp_path: Path) -> None:
    asked = list(read_questions("hotpotqa", str(folders["dev"])))
    passages = [p for q in asked for p in q.passages]
    build_bm25(passages, tmp_path / "bm25")
    strategy = DrRag(Bm25Retriever(tmp_path / "bm25"), selection="sm", k=4, reader=Echo())
    answers(strategy, str(folders["dev"]), tmp_path / "out", paper="hotpotqa", resamples=50)
    text = (tmp_path / "out" / "answers.md").read_text()
    assert "*paper:* Llama3-8B, CFS, k = 4 (Table 3)" in text
    assert "k = 6" not in text
    assert "seconds/first stage" in text
    answers(strategy, str(folders["dev"]), tmp_path / "out", resamples=50, limit=2)  # replaces
    assert len((tmp_path / "out" / "questions.jsonl").read_text().splitlines()) == 2


def test_refusals(folders: dict[str, Path], tmp_path: Path) -> None:
    strategy = ReRag(None, folders["serving"], contexts=2, device="cpu")
    file, out = str(folders["dev"]), tmp_path / "out"
    build_bm25(corpus(3), tmp_path / "bm25")
    silent = DrRag(Bm25Retriever(tmp_path / "bm25"), selection="sm")
    bare = tmp_path / "bare.jsonl"
    bare.write_text(json.dumps({"id": "1", "question": "who", "golden_answers": ["x"]}))
    hidden = tmp_path / "hidden.json"
    hidden.write_text(json.dumps([{k: v for k, v in row.items() if k != "answer"} for row in hotpot_rows(2)]))
    for message, options in {
        "ks is": {"ks": (5, 1)},
        "resamples": {"resamples": 0},
        "no reader": {"strategy": silent},
        "temperature_questions is for": {"strategy": DrRag(silent.retriever, selection="sm", reader=Echo()),
                                         "temperature_questions": file},
        "protocol": {"protocol": "bleu"},
        "without passages": {"questions": str(bare), "layout": "flashrag", "encoder": str(folders["encoder"])},
        "None of the 2 questions": {"questions": str(hidden)},
        "holds no earlier report": {"out": tmp_path},
    }.items():  # fmt: skip
        with pytest.raises(UserError, match=message):
            answers(**{"strategy": strategy, "questions": file, "out": out, "resamples": 10, **options})
    assert not out.exists()
