"""RE-RAG end to end on invented passages, with real random T5s from serving folders."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from common.records import Question, Ranked
from harness.readers.t5 import ContextReader
from harness.retrievers.bm25 import Bm25Retriever
from harness.retrievers.rerank import RerankedRetriever
from harness.systems.rerag import UNANSWERABLE, ReRag
from models.calibration import Calibration
from models.rerag.model import ReRagModel
from tests.helpers.rerag_world import corpus, questions, write_serving
from tests.helpers.river_corpus import indexed
from tests.helpers.table_rewriter import CountingRetriever
from tests.helpers.tolerances import fp32_tolerance, model_close, model_tolerance

pytestmark = pytest.mark.numeric

PASSAGES = corpus()
QUESTIONS = questions(PASSAGES)
BARE = Question("bare", "where was name1 born")
LARGEST = 40.0  # an answer of up to five tokens is hardly less likely than e^-40; its error is that of its share


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory, checkpoints: dict[str, Path]) -> dict[str, Path]:
    root, t5 = tmp_path_factory.mktemp("rerag"), checkpoints["t5"]
    return {
        "both": write_serving(t5, root / "both", calibration=Calibration(2.0, -3.0), threshold=0.7, temperature=2.0),
        "estimator": write_serving(t5, root / "estimator", generator=None),
        "generator": write_serving(t5, root / "generator", estimator=False),
    }


@pytest.fixture(scope="module")
def bm25(tmp_path_factory: pytest.TempPathFactory) -> Bm25Retriever:
    return indexed(tmp_path_factory.mktemp("index") / "bm25", PASSAGES)


@pytest.fixture(scope="module")
def model(folders: dict[str, Path]) -> ReRagModel:
    return ReRagModel.load(folders["both"], "cpu")


def ids(hits) -> list[str]:
    return [hit.passage.id for hit in hits]


def test_candidates_are_scored_the_best_kept_and_read(bm25: Bm25Retriever, folders: dict[str, Path]) -> None:
    counted = CountingRetriever(bm25)
    system = ReRag(counted, folders["both"], candidates=9, contexts=3, device="cpu")
    answers, texts = system.answer(QUESTIONS), [question.text for question in QUESTIONS]
    assert counted.asked == [(texts, 9)]
    # the same from its parts: a reranked retriever and a reader that reads one context at a time
    reranked = RerankedRetriever(bm25, folders["both"], candidates=9, device="cpu")
    kept = reranked.search(texts, 3)
    expected = ContextReader(folders["both"], device="cpu").read(QUESTIONS, kept)
    assert [ids(answer.evidence) for answer in answers] == [ids(hits) for hits in kept]
    assert [answer.text for answer in answers] == [answer.text for answer in expected]
    assert [answer.logprob for answer in answers] == model_close([answer.logprob for answer in expected])
    assert len({answer.text for answer in answers}) > 1
    for answer, other in zip(answers, expected, strict=True):
        shares = [note["share"] for note in answer.notes["contexts"]]
        assert shares == model_close([note["share"] for note in other.notes["contexts"]], LARGEST)
        assert sum(shares) == pytest.approx(1, abs=fp32_tolerance(8))
        best = answer.notes["contexts"][0]
        assert best["probability"] == pytest.approx(1 / (1 + math.exp(3 - 2 * answer.evidence[0].score)))
        assert answer.notes["answerable"] == (best["probability"] >= 0.7)
        assert answer.notes["threshold"] == 0.7
        assert (answer.costs["retriever_calls"], answer.costs["model_calls"]) == (1, 9 + 3)
        assert answer.costs["tokens"] > 0
        assert {"seconds/retrieval", "seconds/scoring", "seconds/reading"} <= set(answer.costs)
    assert len({answer.notes["answerable"] for answer in answers}) == 2


def test_shipped_passages_serve_without_a_retriever(model: ReRagModel) -> None:
    first, second = QUESTIONS[0].passages[:2]
    doubled = replace(QUESTIONS[0], passages=(first, second, first))
    answers = ReRag(model=model, candidates=1, contexts=10).answer([doubled, QUESTIONS[1], BARE])
    assert sorted(ids(answers[0].evidence)) == sorted([first.id, second.id])  # each once, whatever `candidates` says
    assert sorted(ids(answers[1].evidence)) == sorted(passage.id for passage in QUESTIONS[1].passages)
    scores = [hit.score for hit in answers[1].evidence]
    assert scores == sorted(scores, reverse=True)
    assert [answer.costs["retriever_calls"] for answer in answers] == [0, 0, 0]
    assert (answers[2].text, answers[2].logprob, answers[2].evidence) == ("", None, ())


def test_refuses_when_no_context_reaches_the_threshold(model: ReRagModel) -> None:
    best = sorted(answer.notes["contexts"][0]["probability"] for answer in ReRag(model=model).answer(QUESTIONS))
    threshold = (best[1] + best[2]) / 2  # two of five questions have no context that reaches it
    open_, refusing = (ReRag(model=model, contexts=3, abstain=r, threshold=threshold) for r in (False, True))
    answers, refused = open_.answer([*QUESTIONS, BARE]), refusing.answer([*QUESTIONS, BARE])
    assert sum(answer.text == UNANSWERABLE for answer in refused) == 3
    for answer, other in zip(answers, refused, strict=True):
        assert (other.text == UNANSWERABLE) == (answer.notes["answerable"] is False)
        assert ids(other.evidence) == ids(answer.evidence)
        if other.text == UNANSWERABLE:
            assert (other.logprob, other.costs["model_calls"]) == (None, 0 if other.question_id == BARE.id else 6)
            assert all(note["alone"] is None and note["probability"] < threshold for note in other.notes["contexts"])
        else:
            assert other.text == answer.text
    always, never = (ReRag(model=model, abstain=True, threshold=t).answer(QUESTIONS) for t in (1.0, 0.0))
    assert {answer.text for answer in always} == {UNANSWERABLE}
    assert UNANSWERABLE not in {answer.text for answer in never}
    (answer,) = ReRag(model=model).answer(QUESTIONS[:1])
    best = answer.notes["contexts"][0]["probability"]  # the threshold itself suffices
    for threshold, answerable in ((best, True), (math.nextafter(best, 1), False)):
        assert ReRag(model=model, threshold=threshold).answer(QUESTIONS[:1])[0].notes["answerable"] is answerable


def test_an_estimator_alone_is_a_reranker(bm25: Bm25Retriever, folders: dict[str, Path]) -> None:
    system = ReRag(bm25, folders["estimator"], candidates=9, contexts=3, device="cpu")
    expected = RerankedRetriever(bm25, folders["estimator"], 9, "cpu").search([q.text for q in QUESTIONS], 3)
    for answer, hits in zip(system.answer(QUESTIONS), expected, strict=True):
        assert (answer.text, answer.logprob, ids(answer.evidence)) == ("", None, ids(hits))
        assert (answer.notes["answerable"], answer.costs["model_calls"]) == (None, 9)  # no threshold was exported
    refusing = ReRag(bm25, folders["estimator"], candidates=9, contexts=3, abstain=True, threshold=1.0, device="cpu")
    assert {answer.text for answer in refusing.answer(QUESTIONS)} == {UNANSWERABLE}


def test_a_generator_alone_is_plain_rag(bm25: Bm25Retriever, folders: dict[str, Path]) -> None:
    system = ReRag(bm25, folders["generator"], candidates=9, contexts=3, marginal="fast", device="cpu")
    for question, answer in zip(QUESTIONS, system.answer(QUESTIONS), strict=True):
        hits = bm25.search([question.text], 3)[0]
        assert list(answer.evidence) == hits  # the retriever's order and scores
        assert {note["probability"] for note in answer.notes["contexts"]} == {None}
        assert (answer.notes["answerable"], answer.costs["model_calls"]) == (None, 3)
    flat = ReRag(None, folders["generator"], marginal="fast", device="cpu").answer(QUESTIONS)[0]
    assert set(ids(flat.evidence)) == {passage.id for passage in QUESTIONS[0].passages}
    assert min(flat.notes["candidates"].values()) >= 1 / 6 - fp32_tolerance(16)  # nothing prefers one shipped passage
    (cold,) = ReRag(bm25, folders["generator"], 9, 3, "fast", temperature=0.5, device="cpu").answer(QUESTIONS[:1])
    assert [hit.score for hit in cold.evidence] == [2 * h.score for h in bm25.search([QUESTIONS[0].text], 3)[0]]


def test_given_scores_are_the_retrievers(folders: dict[str, Path], model: ReRagModel) -> None:
    scores, shipped = (0.5, 3.0, 1.0, 2.0, 2.5, -1.0), QUESTIONS[0].passages
    scored, partly = (replace(QUESTIONS[0], scores=(first, *scores[1:])) for first in (0.5, None))
    plain = ReRag(None, folders["generator"], contexts=3, marginal="fast", temperature=0.5, device="cpu")
    ranked, unranked = plain.answer([scored, partly])
    expected = [Ranked(shipped[place], score) for place, score in ((1, 6.0), (4, 5.0), (3, 4.0))]  # / temperature
    assert [*ranked.evidence] == expected
    weights = [math.exp(score) / (math.exp(6) + math.exp(5) + math.exp(4)) for score in (6, 5, 4)]
    alone = [note["alone"] for note in ranked.notes["contexts"]]
    expected = {text: sum(w for w, a in zip(weights, alone, strict=True) if a == text) for text in alone}
    assert ranked.notes["candidates"] == pytest.approx(expected, rel=model_tolerance())
    assert [(hit.passage, hit.score) for hit in unranked.evidence] == [(passage, 0.0) for passage in shipped[:3]]
    doubled = replace(scored, passages=(*shipped, shipped[5]), scores=(*scores, 9.0))
    assert plain.find([doubled])[0][0] == Ranked(shipped[5], 9.0)  # once, with its best score
    assert len(plain.find([doubled])[0]) == len(shipped)
    pair = ReRag(model=model).answer([scored, QUESTIONS[0]])  # an estimator scores them all itself
    same, unscored = ({hit.passage.id: hit.score for hit in answer.evidence} for answer in pair)
    assert same == model_close(unscored)


def test_an_exported_threshold_for_other_contexts_is_told(bm25: Bm25Retriever, model: ReRagModel, capsys) -> None:
    served = replace(model, refusal_threshold=0.7, refusal_contexts=3)
    for options in ({"contexts": 3}, {"contexts": 2, "threshold": 0.5}):
        ReRag(bm25, None, 9, abstain=True, model=served, **options).load()
    ReRag(bm25, None, 9, contexts=2, model=served).load()  # nothing is refused
    earlier = replace(served, refusal_contexts=None)  # of an earlier release
    ReRag(bm25, None, 9, contexts=2, abstain=True, model=earlier).load()
    assert "exported" not in capsys.readouterr().err
    told = ReRag(bm25, None, 9, contexts=2, abstain=True, model=served)
    assert (told.threshold, told.threshold_source) == (0.7, "exported")
    assert "chosen for the best 3 contexts" in capsys.readouterr().err
