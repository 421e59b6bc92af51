"""The two readers that read with a trained generator: all evidence in one call, or one context at a time."""

import json
import math
from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from common.records import Ranked
from harness.interfaces import Reader
from harness.readers import t5 as readers
from harness.readers.t5 import ContextReader, PackedReader, explanation
from harness.retrievers.bm25 import build_bm25
from models.calibration import Calibration
from models.rerag.model import ReRagModel
from tests.helpers.rerag_world import corpus, questions, write_serving
from tests.helpers.tolerances import model_close, model_tolerance

pytestmark = pytest.mark.numeric

PASSAGES = corpus()
QUESTIONS = questions(PASSAGES)
LARGEST = 40.0  # an answer of up to five tokens is hardly less likely than e^-40; its error is that of its share
SHOWN = (3, 1, 0, 6, 2)  # how much evidence each question has
EVIDENCE = [[Ranked(p, 9.0 - i) for i, p in enumerate(q.passages[:n])] for q, n in zip(QUESTIONS, SHOWN, strict=True)]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory, checkpoints: dict[str, Path]) -> dict[str, Path]:
    root, t5 = tmp_path_factory.mktemp("readers"), checkpoints["t5"]
    build_bm25(PASSAGES, root / "bm25")
    return {
        "bm25": root / "bm25",
        "packed": write_serving(t5, root / "packed", estimator=False, generator="packed", max_tokens=96),
        "both": write_serving(t5, root / "both", calibration=Calibration(2.0, -1.0), temperature=0.5),
        "estimator": write_serving(t5, root / "estimator", generator=None),
    }


def by_hand(serving: Path, text: str) -> tuple[str, float]:
    """Greedy answer and log-probability of one text, by transformers alone, unpadded."""
    model = ReRagModel.load(serving, "cpu")
    assert model.generator is not None
    network, tokenizer = model.generator.network, model.generator.encode.tokenizer
    ids = tokenizer(text, return_tensors="pt")["input_ids"]
    with torch.inference_mode():
        written = network.generate(input_ids=ids, max_new_tokens=4, num_beams=1, do_sample=False)
        answer = tokenizer.decode(written[0], skip_special_tokens=True)
        labels = tokenizer(answer, return_tensors="pt")["input_ids"]
        return answer, -float(network(input_ids=ids, labels=labels).loss) * labels.numel()


def test_packed_reads_all_evidence_in_one_text(folders: dict[str, Path]) -> None:
    reader = PackedReader(folders["packed"], device="cpu")
    assert isinstance(reader, Reader)
    answers = reader.read(QUESTIONS, EVIDENCE)
    assert [answer.question_id for answer in answers] == [question.id for question in QUESTIONS]
    for question, hits, answer in zip(QUESTIONS[:2], EVIDENCE[:2], answers[:2], strict=True):
        documents = [f"document {i}: {h.passage.title}. {h.passage.text}" for i, h in enumerate(hits, 1)]
        text, logprob = by_hand(folders["packed"], " ".join([f"question: {question.text}", *documents]))
        assert answer.text == text
        assert answer.logprob == model_close(logprob)
    assert len({answer.text for answer in answers}) > 2
    assert [answer.costs["model_calls"] for answer in answers] == [1, 1, 0, 1, 1]


@pytest.mark.parametrize(("kind", "name"), [(PackedReader, "packed"), (ContextReader, "both")])
def test_batched_equals_one_by_one(
    folders: dict[str, Path], kind: type, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = kind(folders[name], device="cpu")
    together = reader.read(QUESTIONS, EVIDENCE)
    alone = [reader.read([question], [hits])[0] for question, hits in zip(QUESTIONS, EVIDENCE, strict=True)]
    monkeypatch.setattr(readers, "_QUESTIONS_AT_ONCE", 2)
    for other in (alone, reader.read(QUESTIONS, EVIDENCE)):
        assert [answer.text for answer in together] == [answer.text for answer in other]
        assert [answer.logprob or 0 for answer in together] == model_close([a.logprob or 0 for a in other])
        assert [[h.passage for h in a.evidence] for a in together] == [[h.passage for h in a.evidence] for a in other]


@pytest.mark.parametrize(("kind", "name"), [(PackedReader, "packed"), (ContextReader, "both")])
def test_nothing_to_read_is_no_answer(folders: dict[str, Path], kind: type, name: str) -> None:
    reader = kind(folders[name], device="cpu")
    (answer,) = reader.read(QUESTIONS[2:3], EVIDENCE[2:3])
    assert (answer.text, answer.logprob, answer.evidence) == ("", None, ())
    assert reader.read([], []) == []


@pytest.mark.parametrize("marginal", ["thorough", "fast"])
def test_single_contexts_are_weighed_by_relevance(folders: dict[str, Path], marginal: str) -> None:
    model = ReRagModel.load(folders["both"], "cpu")
    assert model.estimator is not None
    assert model.generator is not None
    question, hits = QUESTIONS[3], EVIDENCE[3]
    (answer,) = ContextReader(folders["both"], marginal, "cpu").read([question], [hits])

    ranked = sorted((h.passage for h in hits), key=lambda p: -model.estimator.scores([(question.text, p)])[0])
    scores = [model.estimator.scores([(question.text, passage)])[0] for passage in ranked]
    temperature = 0.5 if marginal == "thorough" else 1.0  # the folder's was chosen for `thorough`
    odds = [math.exp(score / temperature) for score in scores]
    prior = [each / sum(odds) for each in odds]
    texts = [f"question: {question.text} title: {p.title} context: {p.text}" for p in ranked]
    alone = [by_hand(folders["both"], text)[0] for text in texts]

    def likelihood(candidate: str, text: str) -> float:
        ids, labels = (
            model.generator.encode.tokenizer(each, return_tensors="pt")["input_ids"] for each in (text, candidate)
        )
        with torch.inference_mode():
            return math.exp(-float(model.generator.network(input_ids=ids, labels=labels).loss) * labels.numel())

    joint = {
        candidate: [
            weight * (likelihood(candidate, text) if marginal == "thorough" else float(own == candidate))
            for weight, text, own in zip(prior, texts, alone, strict=True)
        ]
        for candidate in dict.fromkeys(alone)
    }
    best = max(joint, key=lambda candidate: sum(joint[candidate]))
    assert len(joint) > 2
    assert answer.text == best
    assert math.exp(answer.logprob) == pytest.approx(sum(joint[best]), rel=model_tolerance(LARGEST))
    assert [hit.passage for hit in answer.evidence] == ranked
    assert [hit.score for hit in answer.evidence] == model_close(scores)
    # each context is read by the estimator and by the generator, whose inputs differ
    read = [len(part.encode([(question.text, [p])])[0]) for part in (model.estimator, model.generator) for p in ranked]
    assert answer.costs == {"model_calls": 12.0, "tokens": sum(read)}
    notes = answer.notes["contexts"]
    assert [note["alone"] for note in notes] == alone
    assert [note["share"] for note in notes] == model_close([j / sum(joint[best]) for j in joint[best]], LARGEST)
    assert [note["probability"] for note in notes] == model_close(
        [1 / (1 + math.exp(1 - 2 * s)) for s in scores], 2 * max(map(abs, scores))
    )
    found = answer.notes["candidates"]
    assert found == pytest.approx(
        {candidate: sum(each) for candidate, each in joint.items()}, rel=model_tolerance(LARGEST)
    )
    assert list(found.values()) == sorted(found.values(), reverse=True)
    json.dumps(asdict(answer), allow_nan=False)


def test_the_account_without_a_reading() -> None:
    hits = [Ranked(PASSAGES[0], 1.0)]
    assert explanation(hits[:1], None, None) == {
        "contexts": [{"id": PASSAGES[0].id, "probability": None, "share": None, "alone": None}],
        "candidates": {},
    }
