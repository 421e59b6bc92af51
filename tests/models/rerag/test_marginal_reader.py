"""Marginalized answers against brute force over plain transformers, and what must not change them."""

import math
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

import models.rerag.marginal_reader
from common.records import Passage
from models.rerag.marginal_reader import MarginalReader, weigh
from tests.conftest import NAMES
from tests.helpers.rerag_world import CROWD, generator
from tests.helpers.tolerances import fp32_tolerance, model_close

pytestmark = pytest.mark.numeric

SETS = [CROWD[:4], [], CROWD[4:5], CROWD[5:13], CROWD[13:15]]
QUESTIONS = [f"where was {name} born" for name in NAMES[: len(SETS)]]
LARGEST = 40.0  # an answer of up to six tokens is hardly less likely than e^-40; its error is that of its share
SCORES = [[0.3 * (-1) ** i * i for i, _ in enumerate(passages)] for passages in SETS]


def brute_reading(
    folder: Path, question: str, passages: list[Passage], scores: list[float], kind: str
) -> dict[str, list]:
    """Joint probabilities P_RE(c) P_G(a | q, c), or of `fast` P_RE(c) where c wrote a, per candidate and context."""
    plain, tokenizer = AutoModelForSeq2SeqLM.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    prior = [math.exp(s) / sum(math.exp(t) for t in scores) for s in scores]
    inputs = [
        tokenizer(f"question: {question} title: {p.title} context: {p.text}", return_tensors="pt") for p in passages
    ]
    written = [
        tokenizer.decode(plain.generate(**x, max_new_tokens=5, do_sample=False)[0], skip_special_tokens=True)
        for x in inputs
    ]
    joint: dict[str, list] = {}
    for text in dict.fromkeys(written):
        labels = tokenizer(text, return_tensors="pt").input_ids
        if kind == "fast":
            joint[text] = [p * (text == own) for p, own in zip(prior, written, strict=True)]
        else:
            losses = [plain(**x, labels=labels).loss.item() for x in inputs]
            joint[text] = [p * math.exp(-n * labels.shape[1]) for p, n in zip(prior, losses, strict=True)]
    return joint


@pytest.mark.parametrize("kind", ["thorough", "fast"])
def test_marginals_equal_brute_force(checkpoints, kind) -> None:
    reader = MarginalReader(generator(checkpoints), kind, max_answer_tokens=5, tokens_per_batch=100)
    readings = reader.read(QUESTIONS, SETS, SCORES)
    most = 0
    for question, passages, scores, reading in zip(QUESTIONS, SETS, SCORES, readings, strict=True):
        if not passages:
            assert (reading.text, reading.logprob, reading.shares, reading.written) == ("", 0.0, (), ())
            continue
        joint = brute_reading(checkpoints["t5"], question, passages, scores, kind)
        most = max(most, len(joint))
        totals = {text: math.log(sum(parts)) for text, parts in joint.items()}
        assert reading.candidates == model_close(totals)
        assert reading.text == max(totals, key=totals.__getitem__)
        assert reading.logprob == reading.candidates[reading.text]
        shares = [part / sum(joint[reading.text]) for part in joint[reading.text]]
        assert reading.shares == model_close(shares, LARGEST)
        assert sum(reading.shares) == pytest.approx(1, abs=fp32_tolerance(2 * len(passages)))
        assert set(reading.written) == set(joint)
    assert most > 1  # several candidates competed


@pytest.mark.parametrize("kind", ["thorough", "fast"])
def test_neither_batches_nor_groups_nor_company_change_a_reading(checkpoints, kind, monkeypatch) -> None:
    def read(
        budget: int | None, group: int, several: bool = True
    ) -> list[models.rerag.marginal_reader.MarginalReading]:
        monkeypatch.setattr(models.rerag.marginal_reader, "TOKENS_PER_GROUP", group)
        reader = MarginalReader(generator(checkpoints), kind, 5, budget)
        if several:
            return reader.read(QUESTIONS, SETS, SCORES)
        rows = zip(QUESTIONS, SETS, SCORES, strict=True)
        return [reading for q, c, s in rows for reading in reader.read([q], [c], [s])]

    expected = read(None, 10**6)
    for other in (read(1, 10**6), read(90, 1), read(None, 60), read(90, 10**6, several=False)):
        for here, there in zip(other, expected, strict=True):
            assert (here.text, here.written) == (there.text, there.written)
            assert here.candidates == model_close(there.candidates)
            assert here.shares == model_close(there.shares, LARGEST)


@pytest.mark.parametrize("kind", ["thorough", "fast"])
@pytest.mark.parametrize("chosen", [[2, 0], [1], [3, 1, 2], [0, 1, 2, 3, 4, 5, 6, 7]])
def test_a_subset_is_read_as_if_it_were_all(checkpoints, kind, chosen) -> None:
    reader = MarginalReader(generator(checkpoints), kind, max_answer_tokens=5)
    question, passages, scores = QUESTIONS[3], SETS[3], SCORES[3]
    (matrix,) = reader.matrices([question], [passages])
    here = weigh(matrix.subset(chosen), torch.tensor([scores[i] for i in chosen]))
    (there,) = reader.read([question], [[passages[i] for i in chosen]], [[scores[i] for i in chosen]])
    assert (here.text, here.written) == (there.text, there.written)
    assert here.candidates == model_close(there.candidates)
    assert list(here.candidates) == list(there.candidates)
    assert here.shares == model_close(there.shares, LARGEST)


def test_no_context_is_encoded_twice(checkpoints, monkeypatch) -> None:
    reading = generator(checkpoints)
    seen = []
    encoder = reading.network.get_encoder()
    encoder.register_forward_hook(
        lambda _module, _args, kwargs, _out: seen.append(len(kwargs["input_ids"])), with_kwargs=True
    )
    MarginalReader(reading, "thorough", 5, 100).read(QUESTIONS, SETS, SCORES)
    assert sum(seen) == sum(map(len, SETS))
