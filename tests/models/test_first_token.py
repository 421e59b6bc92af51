"""The last layer computed for the first token alone: scores, gradients and weights beside the whole layer's."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForSequenceClassification, PreTrainedModel

from models.bigbird.attention import fuse
from models.cross_encoder import RelevanceEstimator
from models.drrag.triple_classifier import PART, TripleClassifier
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
def test_scores_and_gradients_are_those_of_the_whole_layer(family, half, checkpoints) -> None:
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


def test_other_tokens_of_the_last_layer_are_not_computed(checkpoints) -> None:
    estimator = RelevanceEstimator.build(str(checkpoints["bert"]), 32)
    widths: list[int] = []
    last = estimator.network.base_model.encoder.layer[-1]
    last.intermediate.register_forward_hook(lambda module, given, found: widths.append(found.shape[1]))
    estimator(torch.randint(5, 20, (2, 9)), torch.ones(2, 9, dtype=torch.long))
    assert widths == [1]


@pytest.mark.parametrize("family", ["bert", "big_bird", "longformer"])
def test_what_a_new_head_reads_is_centered_on_some_inputs(family, checkpoints) -> None:
    classifier = TripleClassifier.build(str(checkpoints[family]), 32, dropout=0.1).train()
    network, read = classifier.network, []
    before = {name: value.clone() for name, value in network.state_dict().items()}
    ids, attention = torch.randint(5, 20, (6, 9)), torch.ones(6, 9, dtype=torch.long)
    classifier.center(ids, attention)
    assert classifier.new_head == (family == "bert")  # the other folders hold a head
    assert network.training
    assert [name for name, value in network.state_dict().items() if not value.equal(before[name])] == [
        f"{network.base_model_prefix}.encoder.layer.1.output.LayerNorm.bias"
    ]
    network.classifier.register_forward_pre_hook(lambda head, given: read.append(given[0][:, 0].detach()))
    classifier.eval()(ids, attention)
    assert read[0].mean(dim=0).abs().max() < 1e-6
    assert read[0].std() > 0.1


def test_a_trained_head_is_left_as_it_is(checkpoints, tmp_path) -> None:
    TripleClassifier.build(str(checkpoints["bert"]), 32).save(tmp_path)
    assert not TripleClassifier.build(str(tmp_path / PART), 32).new_head
