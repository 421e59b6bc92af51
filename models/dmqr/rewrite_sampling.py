"""Samples of a generative rewriter, and the log-probabilities of rewrites as training computes them."""

from collections.abc import Sequence

import torch

from common.progress import track_batches
from models.causal_lm import CausalLanguageModel
from models.devices import autocast
from models.dmqr.rewriter import RewriterModel
from models.length_batching import length_batches
from models.seq2seq_lm import TOKENS_PER_BATCH
from models.token_sampling import SampledTokens, TokenSampling


@torch.inference_mode()
def sampled_texts(
    rewriter: RewriterModel,
    inputs: Sequence[Sequence[int]],
    strategies: Sequence[str],
    choices: Sequence[TokenSampling],
) -> list[str]:
    """One rewrite of every input, in order, chosen as its `TokenSampling` says; a row does not depend on the others.

    Args:
        rewriter: In evaluation mode.
        inputs: From `rewriter.encode`.
        strategies: Of every row; used where each strategy has an adapter.
        choices: Of every row.
    """
    texts = [""] * len(inputs)
    for rows in [range(len(inputs))] if rewriter.adapters is None else rewriter.adapters.groups(strategies):
        for row, each in zip(
            rows, _write(rewriter, [inputs[r] for r in rows], [choices[r] for r in rows]), strict=True
        ):
            texts[row] = rewriter.encode.decoded(each.ids)
    return texts


def _write(
    rewriter: RewriterModel, inputs: Sequence[Sequence[int]], choices: Sequence[TokenSampling]
) -> list[SampledTokens]:
    limits = [rewriter.max_rewrite_tokens] * len(inputs)
    if isinstance(rewriter.lm, CausalLanguageModel):
        return rewriter.lm.write(inputs, limits, choices)
    return rewriter.lm.write(inputs, limits, choices, no_repeat_ngram=rewriter.no_repeat_ngram)


@torch.inference_mode()
def rewrites_logp(
    rewriter: RewriterModel, inputs: Sequence[Sequence[int]], rewrites: Sequence[str], strategies: Sequence[str]
) -> list[float]:
    """Log-probability (nats, temperature 1) of each rewrite and its end given its input, in order; batched by length.

    The text is tokenized by `encode.targets`, as in training, so its tokens may differ from the sampled ones; a limit
    on repeated n-grams does not count.

    Args:
        rewriter: In evaluation mode.
        inputs: From `rewriter.encode`.
        rewrites: Texts.
        strategies: As in `sampled_texts`.
    """
    targets = rewriter.encode.targets(rewrites)
    lengths = [len(source) + len(target) for source, target in zip(inputs, targets, strict=True)]
    device = rewriter.network.device
    scores = [0.0] * len(inputs)
    for rows in track_batches(length_batches(lengths, TOKENS_PER_BATCH[device.type]), len(inputs), "scoring rewrites"):
        tensors = rewriter.batch([inputs[row] for row in rows], [targets[row] for row in rows])
        with autocast(device, rewriter.lm.inference_dtype):
            logp_PA = rewriter(*(each.to(device) for each in tensors), [strategies[row] for row in rows])
        for row, logp in zip(rows, logp_PA.sum(dim=1).tolist(), strict=True):
            scores[row] = min(0.0, logp)
    return scores
