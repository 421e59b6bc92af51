"""Attention in fp32 where a CPU trains in bf16: values and gradients beside fp32, and an encoder that uses it."""

import pytest
import torch
from torch.nn import functional as F
from transformers import AutoModelForSeq2SeqLM, AutoModelForSequenceClassification

from models import sdpa
from models.cross_encoder import RelevanceEstimator
from models.pretrained import load_seq2seq


def test_attention_and_its_gradients_are_those_of_fp32() -> None:
    torch.manual_seed(0)
    halves = [torch.randn(2, 3, 5, 4).bfloat16().requires_grad_() for _ in range(3)]
    mask = torch.zeros(2, 1, 1, 5).masked_fill(torch.arange(5) > 2, torch.finfo(torch.float32).min)
    singles = [each.detach().float().requires_grad_() for each in halves]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        attended = sdpa.attend(*halves, mask)
    expected = F.scaled_dot_product_attention(*singles, attn_mask=mask)
    assert attended.dtype is torch.bfloat16
    torch.testing.assert_close(attended, expected.bfloat16(), atol=0, rtol=0)
    attended.float().sum().backward()
    expected.sum().backward()
    for half, single in zip(halves, singles, strict=True):
        torch.testing.assert_close(half.grad, single.grad.bfloat16(), atol=0, rtol=0)


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_an_encoder_trains_with_it_and_is_saved_without_it(family, checkpoints, tmp_path, monkeypatch) -> None:
    used: list[torch.dtype] = []
    attend = F.scaled_dot_product_attention

    def recorded(query, *rest, **options):
        used.append(query.dtype)
        return attend(query, *rest, **options)

    monkeypatch.setattr(F, "scaled_dot_product_attention", recorded)
    estimator = RelevanceEstimator.build(str(checkpoints[family]), 32, dropout=0.0)
    ids, attention = torch.randint(5, 20, (2, 9)), torch.ones(2, 9, dtype=torch.long)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        estimator(ids, attention).score_P.sum().backward()
        with torch.inference_mode():
            estimator(ids, attention)
    layers = estimator.network.config.num_hidden_layers
    assert used == [torch.float32] * layers + [torch.bfloat16] * layers
    estimator.save(tmp_path)
    assert AutoModelForSequenceClassification.from_pretrained(tmp_path).config._attn_implementation == "sdpa"


@pytest.mark.parametrize("half", [False, True])
def test_a_t5_trains_step_by_step_with_the_loss_and_the_gradients_of_transformers(
    half, checkpoints, tmp_path, monkeypatch
) -> None:
    ours, _ = load_seq2seq(str(checkpoints["t5"]), "generator", 0.0, False)
    theirs = AutoModelForSeq2SeqLM.from_pretrained(
        checkpoints["t5"], attn_implementation="sdpa", dropout_rate=0.0
    ).train()
    torch.manual_seed(0)
    ids, attention, labels = (
        torch.randint(5, 20, (3, 9)),
        torch.ones(3, 9, dtype=torch.long),
        torch.randint(5, 20, (3, 4)),
    )
    attention[0, 4:] = attention[2, 7:] = 0
    for network in (ours.train(), theirs):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=half):
            network(input_ids=ids, attention_mask=attention, labels=labels).loss.backward()
    tolerance = 0.05 if half else 1e-5
    for (name, weight), other in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        assert weight.grad is not None, name
        assert (weight.grad - other.grad).norm() <= tolerance * (1e-3 + other.grad.norm()), name

    def kernel(*_: object, **__: object) -> None:
        raise AssertionError("torch's attention was called")

    monkeypatch.setattr(F, "scaled_dot_product_attention", kernel)
    ours(input_ids=ids, attention_mask=attention, labels=labels)
    with torch.inference_mode(), pytest.raises(AssertionError):
        ours(input_ids=ids, attention_mask=attention, labels=labels)
    ours.save_pretrained(tmp_path)
    assert AutoModelForSeq2SeqLM.from_pretrained(tmp_path).config._attn_implementation == "sdpa"


def test_no_row_attends_to_what_is_hidden_whatever_the_form_of_the_mask() -> None:
    torch.manual_seed(0)
    query, key, value = (torch.randn(2, 3, 4, 5, requires_grad=True) for _ in range(3))
    bias, module = torch.randn(1, 3, 4, 4), torch.nn.Module().train()
    module.is_causal = True
    visible = torch.tensor([[True, True, True, False], [True, False, True, True]])[:, None, None]
    causal = torch.ones(4, 4, dtype=torch.bool).tril()
    for mask, allowed in (
        (visible, visible), (torch.zeros(2, 1, 1, 4).masked_fill(~visible, -torch.inf), visible),
        (visible & causal, visible & causal), (None, causal),
    ):  # fmt: skip
        attended, _ = sdpa._forward_with_bias(module, query, key, value, mask, 0.0, 1.0, bias)
        expected = F.scaled_dot_product_attention(
            query, key, value, bias.expand(2, 3, 4, 4).masked_fill(~allowed, -torch.inf), scale=1.0
        )
        torch.testing.assert_close(attended, expected.transpose(1, 2), atol=1e-5, rtol=1e-5)
