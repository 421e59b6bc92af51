"""Attention in fp32 where a CPU trains in bf16: values and gradients beside fp32, and an encoder that uses it."""

from pathlib import Path

import pytest
import torch
from torch.nn import functional as F
from transformers import AutoModelForSequenceClassification

from models import sdpa
from models.rerag.estimator import RelevanceEstimator


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
def test_an_encoder_trains_with_it_and_is_saved_without_it(
    family: str, checkpoints: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[torch.dtype] = []
    attend = sdpa.sdpa_attention_forward

    def recorded(module, query, *rest, **options):
        used.append(query.dtype)
        return attend(module, query, *rest, **options)

    monkeypatch.setattr(sdpa, "sdpa_attention_forward", recorded)
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
