"""Choice of the next token in `generate`: greedy, or sampled by a seed per row, so that the batch does not matter.

Shape legend: P rows, V vocabulary, E end tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import LogitsProcessor


@dataclass(frozen=True, slots=True)
class TokenSampling:
    """How the tokens of one row are chosen."""

    temperature: float = 0.0  # 0: greedy
    seed: int = 0  # of sampling; the same seed chooses the same tokens, in any batch


@dataclass(frozen=True, slots=True)
class SampledTokens:
    """The tokens of a generated text."""

    ids: tuple[int, ...]  # without the end token
    logprob: float  # nats: of the tokens and, if `ended`, of the end
    ended: bool  # False: cut at the maximum length


class TokenSampler(LogitsProcessor):
    """Chooses tokens and keeps their log-probabilities; for one call of `generate` with `do_sample=False`.

    A sample is the largest entry of logits / temperature + Gumbel noise (the Gumbel-max trick), and each row draws its
    noise from its own generator. Log-probabilities are the model's, at temperature 1. All end tokens are one event, the
    end.

    Args:
        choices: One per row.
        end_ids: The end tokens.
    """

    def __init__(self, choices: Sequence[TokenSampling], end_ids: Sequence[int]) -> None:
        self._temperatures = [choice.temperature for choice in choices]
        self._generators = [
            torch.Generator().manual_seed(choice.seed) if choice.temperature else None for choice in choices
        ]
        self._end_ids = list(end_ids)
        self._chosen: list[Tensor] = []  # (P,) of each step
        self._logprobs: list[Tensor] = []

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Scores (P, V) whose largest entry is the next token."""
        logp_PV = log_probabilities(scores, self._end_ids)
        noisy_PV = self._noisy(scores)
        chosen_P = noisy_PV.argmax(dim=-1)
        self._chosen.append(chosen_P)
        self._logprobs.append(logp_PV.gather(1, chosen_P[:, None])[:, 0])
        return noisy_PV

    def written(self, max_tokens: Sequence[int]) -> list[SampledTokens]:
        """The text of each row, cut at its own maximum length, in tokens with the end token."""
        chosen_PA, logp_PA = torch.stack(self._chosen, 1).tolist(), torch.stack(self._logprobs, 1).tolist()
        rows = []
        for tokens, logprobs, most in zip(chosen_PA, logp_PA, max_tokens, strict=True):
            end = next((place for place, token in enumerate(tokens) if token in self._end_ids), len(tokens))
            ended = end < min(most, len(tokens))
            length = min(end, most)
            rows.append(SampledTokens(tuple(tokens[:length]), sum(logprobs[: length + ended]), ended))
        return rows

    def _noisy(self, logits_PV: Tensor) -> Tensor:
        rows = [row for row, generator in enumerate(self._generators) if generator is not None]
        if not rows:
            return logits_PV
        noisy_PV = logits_PV.clone()
        for row in rows:
            noise_V = torch.empty(logits_PV.shape[1]).exponential_(generator=self._generators[row]).log_().neg_()
            noisy_PV[row] = logits_PV[row] / self._temperatures[row] + noise_V.to(logits_PV.device)
        return noisy_PV


def log_probabilities(logits: Tensor, end_ids: Sequence[int]) -> Tensor:
    """Log-probabilities (..., V), fp32, of logits (..., V).

    Each end token has the log-probability of all end tokens.
    """
    logp = torch.log_softmax(logits.float(), dim=-1)
    if len(end_ids) > 1:
        ends_E = torch.tensor(list(end_ids), device=logits.device)
        end = logp[..., ends_E].logsumexp(dim=-1, keepdim=True)
        logp = logp.index_copy(-1, ends_E, end.expand(*logp.shape[:-1], len(end_ids)))
    return logp
