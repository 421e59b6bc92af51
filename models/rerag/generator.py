"""RE-RAG's generator: a T5 that generates or scores an answer from a question and its context.

Contexts are encoded once; the encoder states are reused for every answer that is generated or scored.
Shape legend: P encoded contexts, T tokens, A answer tokens, V vocabulary, H hidden width, Q selected rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput

from common.progress import track_batches
from common.records import Passage, clean
from models.devices import autocast
from models.full_precision import keep_heads_in_fp32
from models.length_batching import IGNORE, length_batches
from models.loading import save_network
from models.pair_export import with_max_tokens
from models.pretrained import load_seq2seq
from models.rerag.context_tokenizer import ContextEncoder, ContextFormat
from models.rerag.estimator import TOKENS_PER_BATCH
from models.token_count import CountsTokens


@dataclass
class Encoded:
    """Encoder states of P contexts."""

    states_PTH: Tensor
    attention_PT: Tensor

    def rows(self, rows_Q: Tensor) -> "Encoded":
        """The encoder states of the contexts with the given indices, which may repeat."""
        return Encoded(self.states_PTH[rows_Q], self.attention_PT[rows_Q])


class Generator(CountsTokens, nn.Module):
    """Generates answers and scores given answers.

    Args:
        network: A T5-family model.
        encode: Tokenizes questions with their passages.
        answer_prefix: Text before every training target, e.g. the released code's "Answer: "; removed from outputs.
    """

    network: PreTrainedModel
    inference_dtype: torch.dtype | None = (
        None  # of `answers` and of MarginalReader; None: as the caller's autocast says
    )

    def __init__(self, network: PreTrainedModel, encode: ContextEncoder, answer_prefix: str = "") -> None:
        super().__init__()
        self.network, self.encode, self.answer_prefix = network, encode, answer_prefix
        keep_heads_in_fp32(network)

    @classmethod
    def build(
        cls,
        pretrained: str,
        max_tokens: int = 256,
        text_format: ContextFormat = "fid",
        answer_prefix: str = "",
        dropout: float | None = None,
        gradient_checkpointing: bool = False,
    ) -> Self:
        """Load a generator for training or serving.

        Args:
            pretrained: Folder or hub id of a T5-family model.
            max_tokens: Maximum input length, in tokens.
            text_format: Input format; see `models.rerag.context_tokenizer`.
            answer_prefix: Text before every answer.
            dropout: Rate of all dropout layers; the checkpoint's when None.
            gradient_checkpointing: Recompute activations in the backward pass.

        Raises:
            MissingInputError: If the model is not on this machine.
            UserError: If it is not an encoder-decoder model.
        """
        network, tokenizer = load_seq2seq(pretrained, "generator", dropout, gradient_checkpointing)
        return cls(network, ContextEncoder(tokenizer, max_tokens, text_format), answer_prefix)

    def labels(self, answers: Sequence[str], max_tokens: int | None = None) -> Tensor:
        """Token ids (P, A) of answers, end token included, padded with IGNORE; truncated to `max_tokens` if given."""
        texts = [self.answer_prefix + clean(answer) for answer in answers]
        batch = self.encode.tokenizer(
            texts, padding=True, truncation=max_tokens is not None, max_length=max_tokens, return_tensors="pt"
        )
        return batch["input_ids"].masked_fill(batch["attention_mask"] == 0, IGNORE)

    def encode_contexts(self, ids_PT: Tensor, attention_PT: Tensor) -> Encoded:
        """Encoder states of P contexts."""
        encoder = self.network.get_encoder()
        return Encoded(encoder(input_ids=ids_PT, attention_mask=attention_PT).last_hidden_state, attention_PT)

    def answer_logp(self, encoded: Encoded, labels_PA: Tensor) -> Tensor:
        """log P_G(a | q, c) of one answer per context, summed over its tokens and the end token: (P,), nats, fp32."""
        logits_PAV = self.network(
            encoder_outputs=BaseModelOutput(last_hidden_state=encoded.states_PTH),
            attention_mask=encoded.attention_PT,
            decoder_input_ids=self._shifted(labels_PA),
            use_cache=False,
        ).logits
        nll_PA = F.cross_entropy(logits_PAV.transpose(1, 2), labels_PA, ignore_index=IGNORE, reduction="none")
        return -nll_PA.sum(dim=1)

    def forward(self, ids_PT: Tensor, attention_PT: Tensor, labels_PA: Tensor) -> Tensor:
        """log P_G of one answer per context; see `answer_logp`."""
        return self.answer_logp(self.encode_contexts(ids_PT, attention_PT), labels_PA)

    @torch.inference_mode()
    def write(self, encoded: Encoded, max_answer_tokens: int = 32) -> list[str]:
        """One greedy answer per context, without the prefix."""
        ids_PA = self.network.generate(
            encoder_outputs=BaseModelOutput(last_hidden_state=encoded.states_PTH),
            attention_mask=encoded.attention_PT,
            max_new_tokens=max_answer_tokens,
            num_beams=1,
            do_sample=False,
        )
        texts = self.encode.tokenizer.batch_decode(ids_PA, skip_special_tokens=True)
        return [clean(text).removeprefix(self.answer_prefix.strip()).strip() for text in texts]

    @torch.inference_mode()
    def answers(
        self,
        rows: Sequence[tuple[str, Sequence[Passage]]],
        max_answer_tokens: int = 32,
        tokens_per_batch: int | None = None,
    ) -> list[tuple[str, float]]:
        """Greedy answer and its log-probability (nats) for every (question, passages), in order; batched by length."""
        device = self.network.device
        sequences = self.encode(rows)
        self.tokens_read += sum(map(len, sequences))
        answers: list[tuple[str, float]] = [("", 0.0)] * len(rows)
        budget = tokens_per_batch or TOKENS_PER_BATCH[device.type]
        batches = length_batches([len(s) for s in sequences], budget)
        for batch in track_batches(batches, len(rows), "reading"):
            ids_PT, attention_PT = self.encode.pad([sequences[row] for row in batch])
            with autocast(device, self.inference_dtype):
                encoded = self.encode_contexts(ids_PT.to(device), attention_PT.to(device))
                texts = self.write(encoded, max_answer_tokens)
                logp_P = self.answer_logp(encoded, self.labels(texts).to(device))
            for row, text, logp in zip(batch, texts, logp_P.tolist(), strict=True):
                answers[row] = (text, logp)
        return answers

    def save(self, folder: Path) -> None:
        """Write config.json, generation_config.json, model.safetensors and the tokenizer."""
        save_network(self.network, folder)
        with_max_tokens(self.encode.tokenizer, self.encode.max_tokens).save_pretrained(folder)

    def _shifted(self, labels_PA: Tensor) -> Tensor:
        """Decoder input ids: the start token, then every label but the last."""
        config = self.network.config
        ids_PA = labels_PA.roll(1, dims=1).masked_fill(labels_PA.roll(1, dims=1) == IGNORE, config.pad_token_id)
        ids_PA[:, 0] = config.decoder_start_token_id
        return ids_PA
