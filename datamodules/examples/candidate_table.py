"""What is known of groups of rewarded candidates before training, as padded tensors.

Shape legend: G groups, N candidates (padded).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from common.feedback import Candidate, WordCandidate
from datamodules.examples.batches import Batch


@dataclass
class CandidateTable(Batch):
    """What is known of the candidates of G groups before training; padded candidates are unknown, with zeros."""

    rewards_GN: Tensor
    known_GN: Tensor  # bool
    sampled_GN: Tensor  # log-probabilities by the policy that made them, nats
    times_GN: Tensor  # how often each was sampled
    tokens_GN: Tensor  # decisions of each: its tokens, or the question's and its passages' words; 1 for padding


def candidate_table(
    candidates: Sequence[Sequence[Candidate] | Sequence[WordCandidate]], decisions: Sequence[Sequence[int]]
) -> CandidateTable:
    """The table of groups of candidates, each with its number of decisions.

    Without a log-probability of the sampler it is 0.
    """
    counts = list(map(len, candidates))
    known_GN = torch.arange(max(counts))[None, :] < torch.tensor(counts)[:, None]

    def filled(values: list[float], padding: float = 0.0) -> Tensor:
        result_GN = torch.full(known_GN.shape, padding)
        result_GN[known_GN] = torch.tensor(values, dtype=torch.float32)
        return result_GN

    every = [one for each in candidates for one in each]
    return CandidateTable(
        filled([each.reward for each in every]),
        known_GN,
        filled([each.log_probability or 0.0 for each in every]),
        filled([float(each.times) for each in every]),
        filled([float(number) for each in decisions for number in each], padding=1.0),
    )
