"""Encoder-decoder language models: replies and their log-probabilities are those of transformers, in any batch."""

import pytest
import torch

from models.length_batching import IGNORE
from models.pretrained import load_seq2seq
from models.seq2seq_lm import Seq2SeqLanguageModel
from tests.helpers.tolerances import model_close

INPUTS = ["who is the director of name3", "where", "name1 name2 is the film of the city"]
REPLIES = ["name3 film", "the city of name9 , name2", "yes"]


@pytest.fixture(scope="module")
def lm(checkpoints) -> Seq2SeqLanguageModel:
    return Seq2SeqLanguageModel(*load_seq2seq(str(checkpoints["t5"]), "pretrained", None, False)).eval()


def ids(lm: Seq2SeqLanguageModel, texts: list[str]) -> list[list[int]]:
    return list(lm.tokenizer(texts)["input_ids"])


def test_labels_are_the_replies_and_their_log_probability_is_that_of_transformers(lm) -> None:
    inputs, replies = ids(lm, INPUTS), ids(lm, REPLIES)
    batch = lm.reply_batch(inputs, replies)
    assert [[label for label in row if label != IGNORE] for row in batch[2].tolist()] == replies
    with torch.inference_mode():
        logp_PA = lm.labels_logp(*batch)
        for source, reply, logp in zip(inputs, replies, logp_PA.sum(dim=1).tolist(), strict=True):
            loss = lm.network(input_ids=torch.tensor([source]), labels=torch.tensor([reply])).loss
            assert logp == model_close(-float(loss) * len(reply), magnitude=len(reply) * 5)


def test_greedy_replies_do_not_depend_on_the_batch(lm) -> None:
    inputs = ids(lm, INPUTS)
    together = lm.write(inputs, [6, 3, 6])
    alone = [lm.write([one], [most])[0] for one, most in zip(inputs, [6, 3, 6], strict=True)]
    assert [each.ids for each in together] == [each.ids for each in alone]
    assert len(together[1].ids) <= 3
    generated = lm.network.generate(input_ids=torch.tensor(inputs[:1]), max_new_tokens=6, do_sample=False)
    expected = [token for token in generated[0, 1:].tolist() if token not in (lm.pad_id, *lm.end_ids)]
    assert list(together[0].ids) == expected
