"""Block-sparse attention under bf16 autocast on a CPU: it scores and trains; in fp32 it is transformers' own."""

import pytest
import torch
from transformers import BigBirdModel

from models.bigbird.attention import sparsify
from models.drrag.triple_classifier import TripleClassifier

TOKENS = 768  # above 704: at most so many are computed with full attention


@pytest.mark.parametrize("training", [False, True])
def test_bf16_is_near_fp32_and_trains(checkpoints, training) -> None:
    torch.manual_seed(0)
    classifier = TripleClassifier.build(str(checkpoints["bert"]), 96, "block_sparse", dropout=0.0).train(training)
    ids = torch.randint(5, 60, (2, TOKENS))
    attention = torch.ones_like(ids)
    attention[1, 500:] = 0
    states = []
    classifier.network.bert.register_forward_hook(lambda _module, _given, made: states.append(made[0].detach()))
    fp32 = classifier(ids, attention)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        bf16 = classifier(ids, attention)
    assert bf16.dtype == torch.float32
    assert not torch.equal(states[0], states[1].float())
    torch.testing.assert_close(states[1].float(), states[0], rtol=0, atol=0.1)  # of states that are normalized
    torch.testing.assert_close(bf16, fp32, rtol=0.05, atol=1e-3)
    bf16.sum().backward()
    query = classifier.network.bert.encoder.layer[0].attention.self.query.weight
    assert query.grad.abs().sum() > 0


def test_in_fp32_nothing_changes(checkpoints) -> None:
    plain = BigBirdModel.from_pretrained(checkpoints["big_bird"], attention_type="block_sparse").eval()
    ours = BigBirdModel.from_pretrained(checkpoints["big_bird"], attention_type="block_sparse").eval()
    table = torch.randn(TOKENS, 32, generator=torch.Generator().manual_seed(0))
    for model in (plain, ours):
        model.embeddings.position_embeddings.weight.data = table
        model.embeddings.register_buffer("position_ids", torch.arange(TOKENS)[None], persistent=False)
        model.embeddings.register_buffer("token_type_ids", torch.zeros(1, TOKENS, dtype=torch.long), persistent=False)
    sparsify(ours)
    assert ours.state_dict().keys() == plain.state_dict().keys()
    ids = torch.randint(5, 60, (2, TOKENS), generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        assert torch.equal(ours(ids).last_hidden_state, plain(ids).last_hidden_state)
    assert ours.attention_type == plain.attention_type == "block_sparse"
