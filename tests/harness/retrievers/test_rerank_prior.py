"""The retriever's ranks as a prior of reranking: its sum, its fit, its file, and both systems that use it."""

import json
import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from common.errors import UserError
from common.records import Question, Ranked
from common.retrieval import reciprocal_rank_fusion
from datamodules.formats.reading import read_questions
from harness.retrievers.bm25 import Bm25Retriever, build_bm25
from harness.retrievers.rerank import RerankedRetriever
from harness.retrievers.rerank_prior import PRIOR, RerankPrior
from harness.systems.dmqr import Dmqr
from harness.systems.rerag import ReRag
from harness.tuning.rerank_prior import WEIGHTS, ScoredCandidates, fit_prior
from models.calibration import Calibration
from models.rerag.model import ReRagModel
from models.serving_manifest import manifest_sha256
from tests.helpers.commands import command, done, refused
from tests.helpers.reports import questions as questions_of
from tests.helpers.rerag_data import fid_rows
from tests.helpers.rerag_world import corpus, questions, write_serving
from tests.helpers.table_rewriter import TableRewriter
from tests.helpers.tolerances import model_close

pytestmark = pytest.mark.numeric

PASSAGES = corpus()
QUESTIONS = questions(PASSAGES)
NOTHING = ScoredCandidates([], [], np.zeros((1, 0), bool))


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory, checkpoints: dict[str, Path]) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("prior")
    build_bm25(PASSAGES, root / "bm25")
    both = write_serving(checkpoints["t5"], root / "both", calibration=Calibration(0.5, 0.5), threshold=0.7)
    PRIOR.write(root / "prior.json", RerankPrior(3.0, Calibration(2.0, -1.0), manifest_sha256(both)).content)
    return {"bm25": root / "bm25", "prior": root / "prior.json", "both": both}


def test_the_sum_falls_with_the_logarithm_of_the_rank_and_equal_scores_share_one(tmp_path: Path) -> None:
    prior, two, four = RerankPrior(2.0, Calibration(1.5, -2.0), "abc", {"n": 3}), 2 * math.log(2), 2 * math.log(4)
    sums = prior([0.5, 1.0, 0.25, 0.0], [9.0, 3.0, 3.0, 1.0])
    assert sums == pytest.approx([0.5, 1.0 - two, 0.25 - two, -four])
    assert prior([0.5, 1.0], [0.0, 0.0]) == [0.5, 1.0]  # nothing is known of their order
    assert prior([1.0, 0.0], [1.0, 2.0]) == pytest.approx([1.0 - two, 0.0])  # in any order
    assert prior([], []) == []
    file = tmp_path / "prior.json"
    PRIOR.write(file, prior.content)
    assert (PRIOR.read(file), PRIOR.is_one(file)) == (prior, True)
    file.write_text(file.read_text().replace("2.0", "0.5"))
    assert not PRIOR.is_one(file)


def made(count: int, misled: float, seed: int) -> list[ScoredCandidates]:
    """Candidates of which the retriever likes the first and the estimator, with noise, the gold one, the second."""
    random = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        logits = random.normal(0, 1, 6) + np.array([0, 1.5 - misled, 0, 0, 0, misled])
        gold = np.zeros((2, 6), bool)
        gold[0, 1] = gold[1, 2] = True
        found.append(ScoredCandidates(logits.tolist(), [6.0, 5.0, 4.0, 3.0, 2.0, 1.0], gold))
    return found


def by_hand(scored: ScoredCandidates, weight: float, k: int) -> float:
    """Mean of recall@1 to recall@k, one cutoff at a time."""
    total = [logit - weight * math.log(rank) for rank, logit in enumerate(scored.logits, 1)]
    order = sorted(range(len(total)), key=lambda n: -total[n])
    return float(np.mean([[any(row[n] for n in order[:cut]) for row in scored.gold_GC] for cut in range(1, k + 1)]))


def test_the_weight_has_the_greatest_recall_and_the_calibration_is_of_the_sum() -> None:
    """A question that finds nothing counts as a miss."""
    for misled, k in product((0.0, 3.0), (2, 4, 9)):
        scored = [*made(40, misled, seed=int(misled)), NOTHING]
        recall = {weight: float(np.mean([by_hand(each, weight, k) for each in scored])) for weight in WEIGHTS}
        for weight, each in product(WEIGHTS, scored[-5:]):
            assert each.recall(weight, k) == pytest.approx(by_hand(each, weight, k))
        asked = [Question(str(n), f"q{n}") for n in range(len(scored))]
        prior, told = fit_prior(asked, scored, k, None, {"candidates": 6})
        assert recall[prior.weight] == pytest.approx(max(recall.values()))
        assert f"{100 * recall[0.0]:.2f} %" in told[0]
        sums = [value for each in scored for value in prior(each.logits, each.retrieved)]
        labels = [bool(value) for each in scored for value in each.gold_GC.any(axis=0)]
        assert prior.calibration == Calibration.fit(sums, labels)
        assert prior.fitted_on["questions"] == 41
        assert prior.weight > 0 or not misled  # a misled estimator needs the retriever


LEAST = [
    ([9.0, 0.0, 0.0], 0, 0.0),  # first by every weight
    ([0.0, 4.0, 5.0], 1, 3.0),  # above the first below 4 / ln 2 = 5.8, above the last from 1 / ln 1.5 = 2.5 on
    ([0.0, 1.0, -9.0], 0, 1.5),  # above the second from 1 / ln 2 = 1.4 on
]


@pytest.mark.parametrize(("logits", "gold", "weight"), LEAST)
def test_of_equal_recalls_the_least_weight_wins(logits: list[float], gold: int, weight: float) -> None:
    scored = ScoredCandidates(logits, [3.0, 2.0, 1.0], np.arange(3)[None] == gold)
    prior, _ = fit_prior([Question("q", "?")], [scored], 1, None, {})
    assert prior.weight == weight


def test_fewer_candidates_than_k_and_questions_without_gold() -> None:
    one = ScoredCandidates([0.3, 0.1], [1.0, 1.0], np.array([[False, True]]))
    assert one.recall(0.0, 4) == pytest.approx(3 / 4)
    passages = [Ranked(PASSAGES[0], 1.0), Ranked(PASSAGES[1], 0.5)]
    with_answer = Question("a", "who?", (PASSAGES[1].text.split()[0],))
    with_gold = Question("g", "zzz", (), (PASSAGES[0],), (PASSAGES[0].id,))
    assert ScoredCandidates.of(with_answer, passages, [0.0, 0.0], "gold") is None
    found = [
        ScoredCandidates.of(with_answer, passages, [0.0, 0.0], "has_answer").gold_GC[0, 1],
        ScoredCandidates.of(with_gold, passages, [0.0, 0.0], "gold").gold_GC[0, 0],
        ScoredCandidates.of(with_gold, [], [], "gold").gold_GC.shape == (1, 0),
    ]
    assert all(found)
    with pytest.raises(UserError, match="has_answer"):
        fit_prior([with_answer], [None], 2, None, {})
    with pytest.raises(UserError, match="without an answer"):
        fit_prior([with_answer], [ScoredCandidates([0.0], [1.0], np.array([[True]]))], 2, None, {})


def test_every_reranking_system_ranks_by_the_sum(folders: dict[str, Path]) -> None:
    bm25, prior = Bm25Retriever(folders["bm25"]), PRIOR.read(folders["prior"])
    model = ReRagModel.load(folders["both"], "cpu")
    system = ReRag(bm25, candidates=8, contexts=3, model=model, prior=folders["prior"])
    retriever, differ = RerankedRetriever(bm25, folders["both"], 8, "cpu", prior=folders["prior"]), 0
    for question, answer in zip(QUESTIONS, system.answer(QUESTIONS), strict=True):
        (found,) = bm25.search([question.text], 8)
        logits = model.estimator.scores([(question.text, hit.passage) for hit in found])
        sums = prior(logits, [hit.score for hit in found])
        order, without = (np.argsort(-np.array(values))[:3].tolist() for values in (sums, logits))
        for hits in (answer.evidence, retriever.search([question.text], 3)[0]):
            assert [hit.passage for hit in hits] == [found[n].passage for n in order]
            assert [hit.score for hit in hits] == model_close([sums[n] for n in order])
        known = [each["probability"] for each in answer.notes["contexts"]]
        assert known == model_close([prior.calibration(sums[n]) for n in order])
        differ += order != without
    assert differ


def test_queries_are_fused_and_their_ranks_are_the_prior(folders: dict[str, Path]) -> None:
    bm25, prior = Bm25Retriever(folders["bm25"]), PRIOR.read(folders["prior"])
    question, other = QUESTIONS[0], QUESTIONS[1].text
    rewriter = TableRewriter({question.text: {"kwr": [other]}})
    scorer = ReRagModel.load(folders["both"], "cpu").estimator
    system = Dmqr(bm25, rewriter, ("kwr",), per_query=5, k=4, scorer=scorer, prior=folders["prior"])
    fused = reciprocal_rank_fusion(bm25.search([question.text, other], 5), [1, 1])
    logits = scorer.scores([(question.text, hit.passage) for hit in fused])
    sums = prior(logits, [hit.score for hit in fused])
    (answer,) = system.answer([question])
    order = sorted(range(len(fused)), key=lambda n: -sums[n])[:4]
    assert [hit.passage for hit in answer.evidence] == [fused[n].passage for n in order]


def test_tune_writes_what_the_system_and_its_study_read(tmp_path: Path, checkpoints: dict[str, Path]) -> None:
    rows = fid_rows(12)
    for row in rows:
        for place, item in enumerate(row["ctxs"]):
            item["score"], item["isgold"] = 10.0 - place, bool(item.get("hasanswer"))
    (tmp_path / "dev.json").write_text(json.dumps(rows))
    write_serving(checkpoints["t5"], tmp_path / "serving", generator=None, max_tokens=96)
    system = ("--system", "harness.systems.rerag.ReRag", "--system.serving", "serving", "--system.contexts", "2",
              "--system.device", "cpu", "--questions", "dev.json", "--layout", "fid")  # fmt: skip
    for labels in ("gold", "has_answer"):
        tuning = ("--tuning.fits", "prior", "--tuning.labels", labels, "--out", f"{labels}.json")
        tuned = done(tmp_path, "infer.py", "tune", *system, *tuning)
        prior = PRIOR.read(tmp_path / f"{labels}.json")
        assert f"prior weight {prior.weight:g} nats, fitted on" in tuned.out
        assert prior.estimator == manifest_sha256(tmp_path / "serving")
    PRIOR.write(tmp_path / "strong.json", RerankPrior(5.0, Calibration(2.0, 1.0), prior.estimator).content)
    strong = (*system, "--system.prior", "strong.json", "--out", "report")
    done(tmp_path, "infer.py", "evaluate", *strong, "--resamples", "20")
    estimator = ReRagModel.load(tmp_path / "serving", "cpu").estimator
    asked = read_questions("fid", str(tmp_path / "dev.json"))
    for record, question in zip(questions_of(tmp_path / "report"), asked, strict=True):
        logits = estimator.scores([(question.text, passage) for passage in question.passages])
        sums = RerankPrior(5.0, Calibration())(logits, question.given_scores)
        assert [each["relevance"] for each in record["candidates"]] == pytest.approx(sums, abs=1e-3)
        known = [Calibration(2.0, 1.0)(each) for each in sums]
        assert [each["probability"] for each in record["candidates"]] == pytest.approx(known, abs=1e-3)
    again = command(tmp_path, "infer.py", "tune", *strong, "--tuning.fits", "prior", "--out", "again.json")
    refused(again, 2, "prior is what is fitted: omit it.")
    assert not (tmp_path / "again.json").exists()
