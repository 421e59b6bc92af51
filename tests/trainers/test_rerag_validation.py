"""RE-RAG's validation figures and the temperature chosen on them, by hand."""

import random
from dataclasses import replace

import pytest
import torch

from common.records import Question
from datamodules.examples.context_sets import ContextSet
from models.rerag.marginal_reader import MarginalReader
from tests.conftest import NAMES
from tests.helpers.rerag_world import CROWD, generator, vary
from trainers.rerag_options import Abstention
from trainers.rerag_validation import TEMPERATURES, QuestionScores, ReadAnswer, first_hit, score_questions, summarize

pytestmark = pytest.mark.numeric


def test_validation_figures_by_hand() -> None:
    assert first_hit([3.0, 1.0, 2.0], [False, False, True]) == 1
    assert first_hit([1.0, 1.0], [True, False]) == 1  # a tie counts as badly as it can
    assert first_hit([1.0], [False]) is None
    judged = [
        QuestionScores(0, (2.0, -1.0), (True, False), (ReadAnswer("a", 1.0, 1.0),), 0.5, (-9.0, -8.0)),
        QuestionScores(1, (1.0, 3.0), (True, False), (ReadAnswer("b", 0.0, 0.5),), 1.5, (-2.0, -3.0)),
        QuestionScores(2, (-4.0,), (False,), (ReadAnswer("c", 0.0, 0.0),), 4.0, (-1.0,)),
    ]
    facts = summarize(judged, ranked=True, draw=False).metrics
    assert facts["em"] == pytest.approx(1 / 3)
    assert facts["f1"] == pytest.approx(0.5)
    assert facts["gen_nats"] == 2
    assert facts["recall_1"] == pytest.approx(1 / 3)
    assert facts["recall_5"] == pytest.approx(2 / 3)
    assert facts["mrr"] == pytest.approx((1 + 0.5 + 0) / 3)
    assert facts["teacher_recall_1"] == pytest.approx(1 / 3)
    assert facts["teacher_mrr"] == pytest.approx((0.5 + 1 + 0) / 3)
    assert facts["answerable_auroc"] == 1
    assert facts["context_auroc"] == pytest.approx(
        (3 + 2 + 0 * 3) / 6 - 1 / 6
    )  # 2 beats -1, -4; 1 beats -1, -4; 3 beats both


def test_a_question_is_refused_by_its_best_context() -> None:
    # Every question has contexts that look hopeless; only the best one tells which question has an answer.
    answerable = [(6.0, -9.0), (-8.0, 5.5, -8.0), (5.0, -9.0)]
    unanswerable = [(-5.0, -5.5), (-5.0,), (-6.0, -5.5, -5.8)]
    scored = [
        QuestionScores(row, scores, tuple(score > 0 for score in scores))
        for row, scores in enumerate([*answerable, *unanswerable])
    ]
    metrics = summarize(scored, ranked=True, draw=False).metrics
    assert metrics["refusal_f1"] == metrics["answerable_auroc"] == 1
    assert metrics["refusal_threshold"] == 0.5  # all of them separate the two kinds: the lowest

    # one more without an answer, whose best context looks better than even: P is about 0.55, that of the others above
    # 0.6
    close = [*scored, QuestionScores(6, (3.5, -9.0), (False, False))]
    summary = summarize(close, ranked=True, draw=False)
    assert summary.fitted["refusal_threshold"] == summary.metrics["refusal_threshold"] == 0.6
    assert summary.metrics["refusal_f1"] == 1


def test_the_threshold_is_chosen_among_the_contexts_that_are_kept() -> None:
    """As in Section 5.3: an answer that only a dropped context holds does not make a question answerable."""
    good = [QuestionScores(row, (5.0 + row, -9.0, -9.0), (True, False, False)) for row in range(3)]
    late = [QuestionScores(row, (3.0, -8.0, -9.0), (False, False, True)) for row in range(3, 6)]
    kept = summarize([*good, *late], ranked=True, draw=False, abstention=Abstention(2))
    assert kept.metrics["refusal_f1"] == kept.metrics["answerable_auroc"] == 1
    assert kept.metrics["refused_answerable"] == 0
    assert kept.fitted["refusal_contexts"] == 2
    assert kept.fitted["refusal_cost"] is None
    # with all three contexts every question is answerable: there is nothing to choose a threshold on
    for contexts in (3, 25):
        every = summarize([*good, *late], ranked=True, draw=False, abstention=Abstention(contexts))
        assert every.fitted.keys() == {"calibration"}
        assert "refusal_f1" not in every.metrics
        assert every.not_fitted == (
            "refusal threshold: not fitted, because every validation question has a relevant context among its best "
            f"{contexts}"
        )
    none = summarize(late, ranked=True, draw=False, abstention=Abstention(2))
    assert "because no validation question has a relevant context among its best 2" in none.not_fitted
    silent = [replace(one, labels=(False, False, False)) for one in late]
    assert "because no validation context is relevant" in summarize(silent, ranked=True, draw=False).not_fitted


def test_a_stated_cost_chooses_the_threshold() -> None:
    """Two questions with an answer look worse than one without: by F1 they are refused, unless that costs too much."""
    scores = [(6.0, True), (5.0, True), (-1.0, True), (-1.1, True), (-0.5, False), (-6.0, False), (-7.0, False)]
    judged = [QuestionScores(row, (score, -9.0), (label, False)) for row, (score, label) in enumerate(scores)]
    by_f1 = summarize(judged, ranked=True, draw=False)
    dear = summarize(judged, ranked=True, draw=False, abstention=Abstention(cost=2.0))
    assert by_f1.metrics["refused_answerable"] == 0.5
    assert dear.metrics["refused_answerable"] == 0
    assert dear.metrics["refusal_cost_per_question"] == pytest.approx(1 / 7)  # the -0.5 is answered
    assert dear.fitted["refusal_threshold"] < by_f1.fitted["refusal_threshold"]
    assert dear.fitted["refusal_cost"] == 2


def test_the_temperature_is_the_one_that_answers_most_and_nearest_to_one_among_equals() -> None:
    right, wrong = ReadAnswer("a", 1.0, 1.0), ReadAnswer("b", 0.0, 0.25)
    reads = [
        (wrong, right, right, right, wrong),
        (right, right, right, right, right),
        (wrong, wrong, right, right, right),
    ]
    judged = [QuestionScores(row, (1.0, 0.0), (True, False), read, 1.0) for row, read in enumerate(reads)]
    summary = summarize(judged, ranked=True, draw=False)
    assert summary.temperature_index == 2  # 1, 2, 3, 3, 2 right
    assert summary.fitted["relevance_temperature"] == summary.metrics["relevance_temperature"] == TEMPERATURES[2]
    assert summary.metrics["em"] == summary.metrics["f1"] == 1
    alone = summarize([replace(one, answers=one.answers[:1]) for one in judged], ranked=True, draw=False)
    assert "relevance_temperature" not in alone.fitted  # one temperature is no choice
    assert alone.metrics["em"] == pytest.approx(1 / 3)


def sets_of(count: int) -> list[ContextSet]:
    chance = random.Random(0)
    questions = [Question(f"q{n}", f"where was {NAMES[n % 7]} born", ("x",)) for n in range(count)]
    return [ContextSet(q, tuple(chance.sample(CROWD, 4)), (True, False, False, False), "x") for q in questions]


def test_every_temperature_reads_what_a_reader_under_those_weights_reads(checkpoints) -> None:
    reader = generator(checkpoints).eval()
    vary(reader.network, 3)
    sets, scores = sets_of(12), torch.randn(12, 4, generator=torch.Generator().manual_seed(0)) / 2
    judged = score_questions(range(12), sets, scores, None, reader, False, True, 3, 4, fit_temperature=True)
    disagreements = 0
    for one, each, scores_N in zip(judged, sets, scores, strict=True):
        best = scores_N.argsort(descending=True)[:3].tolist()
        for read, temperature in zip(one.answers, TEMPERATURES, strict=True):
            (expected,) = MarginalReader(reader, "thorough", 4).read(
                [each.question.text], [[each.passages[n] for n in best]], [(scores_N[best] / temperature).tolist()]
            )
            assert read.text == expected.text
        disagreements += len({read.text for read in one.answers}) > 1
    assert TEMPERATURES[0] == 1  # the paper's, and the nearest to it come first: among equals the first is taken
    assert list(TEMPERATURES) == sorted(TEMPERATURES, reverse=True)
    assert disagreements  # a temperature matters
