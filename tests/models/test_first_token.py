"""The last layer computed for the first token alone: scores, gradients and weights beside the whole layer's."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForSequenceClassification, PreTrainedModel

from models.bigbird.attention import fuse
from models.cross_encoder import RelevanceEstimator
from models.first_token import FirstTokenLayer, compute_first_token
from models.sdpa import train_fast_on_cpu


def classifier(folder: Path, **options: Any) -> PreTrainedModel:
    """A sequence classifier of two labels with this project's attention; its new head is the same each time."""
    torch.manual_seed(0)
    network = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=2, **options)
    if network.config.model_type == "big_bird":
        network.bert.set_attention_type("original_full")
        fuse(network.bert)
    else:
        train_fast_on_cpu(network)
    return network


@pytest.mark.parametrize("family", ["bert", "roberta", "big_bird"])
@pytest.mark.parametrize("half", [False, True])
def test_scores_and_gradients_are_those_of_the_whole_layer(
    family: str, half: bool, checkpoints: dict[str, Path]
) -> None:
    whole, first = classifier(checkpoints[family]).eval(), classifier(checkpoints[family]).eval()
    names = list(first.state_dict())
    compute_first_token(first)
    assert isinstance(first.base_model.encoder.layer[-1], FirstTokenLayer)
    assert list(first.state_dict()) == names
    torch.manual_seed(1)
    ids, attention = torch.randint(5, 20, (3, 9)), torch.ones(3, 9, dtype=torch.long)
    attention[0, 4:] = attention[2, 7:] = 0
    logits = []
    for network in (whole, first):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=half):
            logits.append(network(input_ids=ids, attention_mask=attention).logits)
        logits[-1].float().square().sum().backward()
    torch.testing.assert_close(*logits, atol=2e-2 if half else 1e-6, rtol=0)
    for (name, one), other in zip(whole.named_parameters(), first.parameters(), strict=True):
        given = one.grad if one.grad is not None else torch.zeros_like(one)
        found = other.grad if other.grad is not None else torch.zeros_like(other)
        assert (given - found).norm() <= (0.05 if half else 1e-5) * (1e-3 + given.norm()), name


def test_other_tokens_of_the_last_layer_are_not_computed(checkpoints: dict[str, Path]) -> None:
    estimator = RelevanceEstimator.build(str(checkpoints["bert"]), 32)
    widths: list[int] = []
    last = estimator.network.base_model.encoder.layer[-1]
    last.intermediate.register_forward_hook(lambda module, given, found: widths.append(found.shape[1]))
    estimator(torch.randint(5, 20, (2, 9)), torch.ones(2, 9, dtype=torch.long))
    assert widths == [1]
