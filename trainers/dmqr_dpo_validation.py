"""Validation results of rewriters that learn from preferences, and the metrics that they give."""

from collections.abc import Sequence
from typing import NamedTuple


class WrittenRewrites(NamedTuple):
    """A greedy rewrite of a validation question."""

    tokens: int  # its end included
    unchanged: bool  # whether its queries are the question alone
    empty: bool  # whether it holds no query
    reward: float | None  # None if it was not rewarded
    question_reward: float  # of the question alone


class DpoValidation(NamedTuple):
    """The results of one validation group."""

    loss: float  # sum over its pairs
    pairs: float
    expected_reward: float
    kl_nats: float
    written: WrittenRewrites | None


def summary(results: Sequence[DpoValidation]) -> dict[str, float]:
    """Means over the validation groups; shares from 0 to 1, rewards in the units of the preferences.

    `expected_reward` is the reward of the recorded candidates, weighed by their probabilities; `kl` the divergence of
    the starting model from the trained one on the recorded samples, nats per rewrite. `reward` and its variance over
    questions, `length` in tokens and the shares are of greedy rewrites.
    """
    found = {
        "expected_reward": _mean([each.expected_reward for each in results]),
        "loss": sum(each.loss for each in results) / max(1.0, sum(each.pairs for each in results)),
        "kl": _mean([each.kl_nats for each in results]),
    }
    written = [each.written for each in results if each.written is not None]
    if written:
        found["length"] = _mean([float(each.tokens) for each in written])
        found["unchanged_share"] = _mean([float(each.unchanged) for each in written])
        found["empty_share"] = _mean([float(each.empty) for each in written])
    rewarded = [(each.reward, each.question_reward) for each in written if each.reward is not None]
    if rewarded:
        found["reward"] = mean = _mean([reward for reward, _ in rewarded])
        found["reward_variance"] = _mean([(reward - mean) ** 2 for reward, _ in rewarded])
        found["reward_question"] = _mean([question for _, question in rewarded])
    return found


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
