"""The two readers that read with a trained generator: all evidence in one call, or one context at a time."""

import json
import math
from dataclasses import asdict

import pytest
import torch

from common.records import Ranked
from harness.readers import t5 as readers
from harness.readers.t5 import ContextReader, PackedReader, explanation
from models.calibration import Calibration
from models.rerag.marginal_reader import MarginalReader
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
def folders(tmp_path_factory: pytest.TempPathFactory, checkpoints):
    root, t5 = tmp_path_factory.mktemp("readers"), checkpoints["t5"]
    return {
        "packed": write_serving(t5, root / "packed", estimator=False, generator="packed", max_tokens=96),
        "both": write_serving(t5, root / "both", calibration=Calibration(2.0, -1.0), temperature=0.5),
    }


def test_packed_reads_all_evidence_in_one_text(folders) -> None:
    reader = PackedReader(folders["packed"], device="cpu")
    answers = reader.read(QUESTIONS, EVIDENCE)
    assert [answer.question_id for answer in answers] == [question.id for question in QUESTIONS]
    network, tokenizer = reader.generator.network, reader.generator.encode.tokenizer
    for question, hits, answer in zip(QUESTIONS[:2], EVIDENCE[:2], answers[:2], strict=True):
        documents = [f"document {i}: {h.passage.title}. {h.passage.text}" for i, h in enumerate(hits, 1)]
        ids = tokenizer(" ".join([f"question: {question.text}", *documents]), return_tensors="pt")["input_ids"]
        with torch.inference_mode():  # by transformers alone, unpadded
            written = network.generate(input_ids=ids, max_new_tokens=4, num_beams=1, do_sample=False)
            assert answer.text == tokenizer.decode(written[0], skip_special_tokens=True)
            labels = tokenizer(answer.text, return_tensors="pt")["input_ids"]
            assert answer.logprob == model_close(-float(network(input_ids=ids, labels=labels).loss) * labels.numel())
    assert len({answer.text for answer in answers}) > 2
    assert [answer.costs["model_calls"] for answer in answers] == [1, 1, 0, 1, 1]


@pytest.mark.parametrize(("kind", "name"), [(PackedReader, "packed"), (ContextReader, "both")])
def test_batched_equals_one_by_one_and_nothing_to_read_is_no_answer(folders, kind, name, monkeypatch) -> None:
    reader = kind(folders[name], device="cpu")
    together = reader.read(QUESTIONS, EVIDENCE)
    alone = [reader.read([question], [hits])[0] for question, hits in zip(QUESTIONS, EVIDENCE, strict=True)]
    monkeypatch.setattr(readers, "_QUESTIONS_AT_ONCE", 2)
    for other in (alone, reader.read(QUESTIONS, EVIDENCE)):
        assert [answer.text for answer in together] == [answer.text for answer in other]
        assert [answer.logprob or 0 for answer in together] == model_close([a.logprob or 0 for a in other])
        assert [[h.passage for h in a.evidence] for a in together] == [[h.passage for h in a.evidence] for a in other]
    assert (together[2].text, together[2].logprob, together[2].evidence) == ("", None, ())
    assert reader.read([], []) == []


@pytest.mark.parametrize("marginal", ["thorough", "fast"])
def test_single_contexts_are_weighed_by_relevance(folders, marginal: str) -> None:
    """By the reader whose formula the tests of `models.rerag.marginal_reader` hold."""
    model, question = ReRagModel.load(folders["both"], "cpu"), QUESTIONS[3]
    (answer,) = ContextReader(folders["both"], marginal, "cpu").read([question], [EVIDENCE[3]])
    pairs = [(question.text, hit.passage) for hit in EVIDENCE[3]]
    found = sorted(zip(model.estimator.scores(pairs), pairs, strict=True), key=lambda each: -each[0])
    scores, ranked = [score for score, _ in found], [passage for _, (_, passage) in found]
    temperature = 0.5 if marginal == "thorough" else 1.0  # the folder's was chosen for `thorough`
    reader = MarginalReader(model.generator, marginal, model.max_answer_tokens)
    (reading,) = reader.read([question.text], [ranked], [[score / temperature for score in scores]])
    assert len(reading.candidates) > 2
    assert (answer.text, answer.logprob) == (reading.text, model_close(reading.logprob, LARGEST))
    assert [hit.passage for hit in answer.evidence] == ranked
    assert [hit.score for hit in answer.evidence] == model_close(scores)
    # each context is read by the estimator and by the generator, whose inputs differ
    read = [len(part.encode([(question.text, [p])])[0]) for part in (model.estimator, model.generator) for p in ranked]
    assert answer.costs == {"model_calls": 12.0, "tokens": sum(read)}
    notes, candidates = answer.notes["contexts"], answer.notes["candidates"]
    assert [note["alone"] for note in notes] == [*reading.written]
    assert [note["share"] for note in notes] == model_close([*reading.shares], LARGEST)
    calibrated = [1 / (1 + math.exp(1 - 2 * s)) for s in scores]
    assert [note["probability"] for note in notes] == model_close(calibrated, 2 * max(map(abs, scores)))
    expected = {text: math.exp(logp) for text, logp in reading.candidates.items()}
    assert candidates == pytest.approx(expected, rel=model_tolerance(LARGEST))
    assert [*candidates.values()] == sorted(candidates.values(), reverse=True)
    json.dumps(asdict(answer), allow_nan=False)
    unread = {"id": PASSAGES[0].id, "probability": None, "share": None, "alone": None}
    assert explanation([Ranked(PASSAGES[0], 1.0)], None, None) == {"contexts": [unread], "candidates": {}}
