"""An encoder-decoder language model (T5 family).

Generates replies to inputs with their log-probabilities, and scores replies.

The counterpart of `models.causal_lm`: inputs and replies are token ids, which end with the end token. Results do not
depend on batch, order or padding.

Shape legend: P rows, T tokens, A reply tokens with the end, V vocabulary.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import GenerationConfig, LogitsProcessorList, PreTrainedModel, PreTrainedTokenizerBase

from common.progress import track
from models.devices import autocast
from models.full_precision import keep_heads_in_fp32
from models.length_batching import IGNORE, length_batches, pad
from models.loading import save_network
from models.token_count import CountsTokens
from models.token_sampling import SampledTokens, TokenSampler, TokenSampling, log_probabilities

TOKENS_PER_BATCH = {"cpu": 4096, "cuda": 65536}  # of inputs


class Seq2SeqLanguageModel(CountsTokens, nn.Module):
    """Generates and scores replies.

    Args:
        network: From `models.pretrained.load_seq2seq`.
        tokenizer: Its tokenizer, which ends every text with the end token.
    """

    network: PreTrainedModel
    inference_dtype: torch.dtype | None = None  # None: as the caller's autocast says

    def __init__(self, network: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        super().__init__()
        self.network, self.tokenizer = network, tokenizer
        self.end_ids, self.pad_id = [tokenizer.eos_token_id], tokenizer.pad_token_id
        # The checkpoint's own settings (beams, repetition penalty, prefixes) would change what is generated.
        network.generation_config = GenerationConfig(
            decoder_start_token_id=network.config.decoder_start_token_id,
            eos_token_id=self.end_ids[0],
            pad_token_id=self.pad_id,
        )
        keep_heads_in_fp32(network)

    @property
    def context_tokens(self) -> int | None:
        """None: relative positions have no limit."""
        return None

    @torch.inference_mode()
    def write(
        self,
        prompts: Sequence[Sequence[int]],
        max_tokens: Sequence[int],
        tokens_per_batch: int | None = None,
        no_repeat_ngram: int = 0,
    ) -> list[SampledTokens]:
        """One greedy reply per input, in order; batched by length.

        Args:
            prompts: Token ids of the inputs, end token included.
            max_tokens: Most tokens of each reply, its end token included, at least 1.
            tokens_per_batch: Most input tokens of a batch, with padding; by device when None.
            no_repeat_ngram: No reply has a sequence of so many tokens twice; 0 for no such limit.
        """
        replies: list[SampledTokens | None] = [None] * len(prompts)
        self.tokens_read += sum(map(len, prompts))
        device = self.network.device
        batches = length_batches([len(prompt) for prompt in prompts], tokens_per_batch or TOKENS_PER_BATCH[device.type])
        for batch in track(batches, len(prompts), "writing", len):
            ids_PT, attention_PT = self._pad([prompts[row] for row in batch])
            limits = [max_tokens[row] for row in batch]
            sampler = TokenSampler([TokenSampling()] * len(batch), self.end_ids)
            with autocast(device, self.inference_dtype):
                self.network.generate(
                    input_ids=ids_PT.to(device),
                    attention_mask=attention_PT.to(device),
                    logits_processor=LogitsProcessorList([sampler]),
                    max_new_tokens=max(limits),
                    do_sample=False,
                    no_repeat_ngram_size=no_repeat_ngram,
                )
            for row, reply in zip(batch, sampler.written(limits), strict=True):
                replies[row] = reply
        return replies  # type: ignore[return-value]  # every row is in one batch

    def reply_batch(
        self, prompts: Sequence[Sequence[int]], replies: Sequence[Sequence[int]]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Token ids and attention mask (P, T) of the inputs, and labels (P, A).

        The replies' tokens, IGNORE where there is none.
        """
        ids_PT, attention_PT = self._pad(prompts)
        labels_PA, real_PA = pad(replies, self.pad_id, max(map(len, replies)))
        return ids_PT, attention_PT, labels_PA.masked_fill(real_PA == 0, IGNORE)

    def labels_logp(self, ids_PT: Tensor, attention_PT: Tensor, labels_PA: Tensor) -> Tensor:
        """Log-probability (P, A), fp32, of each label of a `reply_batch`; 0 for IGNORE; with gradients."""
        logits_PAV = self.network(
            input_ids=ids_PT,
            attention_mask=attention_PT,
            decoder_input_ids=self.network.prepare_decoder_input_ids_from_labels(labels_PA),
            use_cache=False,
        ).logits
        logp_PAV = log_probabilities(logits_PAV, self.end_ids)
        logp_PA = logp_PAV.gather(2, labels_PA.clamp(min=0)[:, :, None])[:, :, 0]
        return logp_PA.masked_fill(labels_PA == IGNORE, 0.0)

    def save(self, folder: Path, **options: Any) -> None:
        """Write config.json, generation_config.json, model.safetensors and the tokenizer.

        `options` are of `save_pretrained`.
        """
        save_network(self.network, folder, self.tokenizer, **options)

    def _pad(self, sequences: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        return pad(sequences, self.pad_id, max(map(len, sequences)))
