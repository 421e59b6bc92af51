"""Tolerances of numeric comparisons.

They follow from precision and number of operations, not from what one machine gave.

Processors differ in vector width, fused multiply-add and the order of sums, and threads cut a sum into parts. So two
fp32 computations of one number agree to the last bit only where the same kernels run on the same shapes: in a resumed
run, or in the same call made twice. Everything else is compared with a tolerance from here.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn

FP32_ROUNDING = 2.0**-24  # largest relative error of one fp32 rounding
DEVIATIONS = 10  # standard deviations of the accumulated error that a tolerance allows
# Longest chain of dependent roundings in the models of tests/conftest.py (width 32, heads of 8 or 16, feed-forward 64,
# up to 128 tokens). Attention: projection 32, scores 16, softmax 128, weighted sum 128, output 32, norm and residual
# 40, together below 400; feed-forward: 32 + 64 + 40, below 150. Two encoder layers, two decoder layers with two
# attentions: below 2,900. Output logits and a softmax over about 110 words: below 250.
MODEL_OPERATIONS = 3200


def fp32_tolerance(operations: int, magnitude: float = 1.0) -> float:
    """How far two fp32 computations of one number may lie apart.

    A rounding errs by at most 2^-24 of the number, evenly spread: a standard deviation of 2^-24 / sqrt(3). Errors of
    different operations are independent, so their standard deviations add as squares: sqrt(operations) times as much
    for a chain, sqrt(2) times that for the difference of two chains.

    Args:
        operations: Length of the longest chain of dependent operations.
        magnitude: Largest absolute value on the way.
    """
    return DEVIATIONS * FP32_ROUNDING * math.sqrt(2 * operations / 3) * magnitude


def model_tolerance(magnitude: float = 1.0) -> float:
    """How far two forward passes of a test model may lie apart: 2.8e-5 for logits of 1."""
    return fp32_tolerance(MODEL_OPERATIONS, magnitude)


def model_close(expected: Any, magnitude: float = 1.0) -> Any:
    """`pytest.approx` for what a test model says: a number, a list or a dictionary of numbers.

    Args:
        expected: Logits, log-probabilities or probabilities.
        magnitude: At least so large were the numbers they come from; a larger number in `expected` counts itself.
    """
    numbers: Sequence[float]
    if isinstance(expected, Mapping):
        numbers = list(expected.values())
    else:
        numbers = expected if isinstance(expected, Sequence) else [float(expected)]
    return pytest.approx(expected, rel=0, abs=model_tolerance(max([magnitude, *map(abs, numbers)])))


def decide(network: nn.Module, times: float = 10) -> None:
    """Make a network with initial weights tell texts apart: its matrices become so many times as large.

    Its scores of different texts differ less than any tolerance.
    """
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.ndim > 1:
                parameter.mul_(times)


def move_adapters(network: nn.Module, deviation: float) -> None:
    """Give new LoRA adapters, which change nothing yet, random weights."""
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if "lora_B" in name:
                parameter.normal_(0, deviation)


def assert_gradients_close(here: Mapping[str, Tensor], there: Mapping[str, Tensor], rows: int, message="") -> None:
    """Gradients of one loss at the same weights, computed in another order.

    The backward pass doubles the chain of operations, and a weight's gradient sums over all tokens of all rows. What is
    rounded on the way is as large as the largest entry of any gradient, not of this one.

    Args:
        here: Gradients by the name of the weight.
        there: What they should be.
        rows: Sequences in the batch.
        message: Names the case.
    """
    assert here.keys() == there.keys(), message
    largest = max(gradient.abs().max().item() for gradient in there.values())
    assert largest > 0, "there is nothing to compare"
    tolerance = fp32_tolerance(2 * MODEL_OPERATIONS + 128 * rows, largest)
    for name, gradient in there.items():
        told = f"{message} {name}: {{}}".format
        torch.testing.assert_close(here[name], gradient, rtol=0, atol=tolerance, msg=told)
