"""Log-probabilities of several rewrites of each question by a generative rewriter.

An encoder-decoder reads every question once.

Shape legend: P inputs, T tokens, C candidates, A tokens of a candidate with its end.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from models.dmqr.rewriter import RewriterModel
from models.seq2seq_lm import Seq2SeqLanguageModel


def candidate_batch(
    rewriter: RewriterModel, inputs: Sequence[Sequence[int]], targets: Sequence[Sequence[Sequence[int]]]
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Padded token ids and attention mask (P, T), labels (C, A), and the input of every candidate (C,).

    An encoder-decoder has one input per question; a causal LM reads the question before each of its candidates.

    Args:
        rewriter: The rewriter.
        inputs: One per question, from `rewriter.encode`.
        targets: The candidates of each question, from `rewriter.encode.targets`.
    """
    owners = [place for place, each in enumerate(targets) for _ in each]
    flat = [target for each in targets for target in each]
    if isinstance(rewriter.lm, Seq2SeqLanguageModel):
        return *rewriter.batch(inputs, flat), torch.tensor(owners)
    return *rewriter.batch([inputs[place] for place in owners], flat), torch.arange(len(flat))


def candidates_logp(
    rewriter: RewriterModel,
    ids_PT: Tensor,
    attention_PT: Tensor,
    labels_CA: Tensor,
    input_C: Tensor,
    strategies: Sequence[str] = (),
) -> Tensor:
    """Log-probability (C,) of every candidate with its end, nats, fp32; with gradients.

    Args:
        rewriter: The rewriter.
        ids_PT: Like the next three, from `candidate_batch`.
        attention_PT: See there.
        labels_CA: See there.
        input_C: See there.
        strategies: Of every candidate; used where each strategy has an adapter.
    """
    if rewriter.adapters is None:
        return _logp(rewriter, ids_PT, attention_PT, labels_CA, input_C)
    parts, order = [], []
    for rows in rewriter.adapters.groups(strategies):
        inputs, input_of = input_C[rows].unique(return_inverse=True)
        parts.append(_logp(rewriter, ids_PT[inputs], attention_PT[inputs], labels_CA[rows], input_of))
        order += rows
    return torch.cat(parts)[torch.tensor(order, device=ids_PT.device).argsort()]


def _logp(rewriter: RewriterModel, ids_PT: Tensor, attention_PT: Tensor, labels_CA: Tensor, input_C: Tensor) -> Tensor:
    if isinstance(rewriter.lm, Seq2SeqLanguageModel):
        return rewriter.lm.labels_logp(ids_PT, attention_PT, labels_CA, input_C).sum(dim=1)
    return rewriter.lm.labels_logp(ids_PT[input_C], attention_PT[input_C], labels_CA).sum(dim=1)
