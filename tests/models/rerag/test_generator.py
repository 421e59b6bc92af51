"""The generator against plain transformers: the probability of an answer, greedy writing, prefixes, gradients."""

import pytest
import torch
from transformers import AutoModelForSeq2SeqLM

from models.length_batching import IGNORE
from tests.helpers.rerag_world import PAIRS, generator, reading_batch
from tests.helpers.tolerances import model_close

pytestmark = pytest.mark.numeric


@pytest.mark.parametrize("prefix", ["", "answer: "])
def test_answer_logp_is_minus_transformers_loss_times_tokens(checkpoints, prefix) -> None:
    reader = generator(checkpoints, prefix)
    plain = AutoModelForSeq2SeqLM.from_pretrained(checkpoints["t5"]).eval()
    answers = ["name3", "the city of name4", "", "no"] * 3
    logp = reader(*reading_batch(reader), reader.labels(answers))
    assert logp.dtype == torch.float32
    for (question, passage), answer, value in zip(PAIRS, answers, logp.tolist(), strict=True):
        batch = reader.encode.tokenizer(f"question: {question} title: {passage.title} context: {passage.text}",
                                        return_tensors="pt")  # fmt: skip
        labels = reader.encode.tokenizer(prefix + answer, return_tensors="pt").input_ids
        loss = plain(**batch, labels=labels).loss
        assert value == model_close(-loss.item() * labels.shape[1])


def test_labels_end_and_are_padded_and_cut(checkpoints) -> None:
    reader = generator(checkpoints, "answer: ")
    labels = reader.labels(["name1", " name2\n name3 "])
    ids = reader.encode.tokenizer.convert_tokens_to_ids
    expected = [[*ids(["answer", ":", "name1"]), 1, IGNORE], [*ids(["answer", ":", "name2", "name3"]), 1]]
    assert labels.tolist() == expected
    assert reader.labels(["name1", "name2 name3"], max_tokens=4).tolist() == [expected[0][:4], [*expected[1][:3], 1]]


def test_the_answer_prefix_is_taken_off(checkpoints) -> None:
    plain = generator(checkpoints)
    written = plain.write(plain.encode_contexts(*reading_batch(plain)), 4)
    first = next(text.split()[0] for text in written if text)
    prefixed = generator(checkpoints, f"{first} ")
    expected = [text.removeprefix(first).strip() for text in written]
    assert expected != written
    assert prefixed.write(prefixed.encode_contexts(*reading_batch(prefixed)), 4) == expected


def test_answers_are_those_written_one_by_one(checkpoints) -> None:
    reader = generator(checkpoints)
    rows = [(question, [passage]) for question, passage in PAIRS]
    answers = reader.answers(rows, 6, tokens_per_batch=90)
    for row, (text, logp) in zip(rows, answers, strict=True):
        encoded = reader.encode_contexts(*reader.encode.pad(reader.encode([row])))
        assert [text] == reader.write(encoded, 6)
        assert logp == model_close(reader.answer_logp(encoded, reader.labels([text])).item())
    assert len({text for text, _ in answers}) > 1
    assert reader.answers([]) == []
