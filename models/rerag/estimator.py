"""RE-RAG's relevance estimator (Section 2.2): scores how useful a context is for a question.

Two model families: a T5 that generates "true" or "false" (or two other words) in one decoder step, or an encoder-only
model with a classification head, which is faster but has no L_tok. Shape legend: P pairs, T tokens, V vocabulary, L
labels.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn
from transformers import (
    AutoConfig,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PretrainedConfig,
    PreTrainedModel,
)

from common.errors import UserError
from common.progress import Progress
from common.records import Passage
from models.bigbird.attention import freeze_pooler, fuse
from models.devices import autocast
from models.first_token import compute_first_token
from models.full_precision import keep_heads_in_fp32
from models.length_batching import length_batches
from models.loading import load_network, save_network
from models.pair_export import log_odds_of, pair_tokenizer, save_one_score, with_max_tokens
from models.parallel_batches import each_batch
from models.pretrained import dropout_options, load_seq2seq, resolve
from models.rerag.context_tokenizer import ContextEncoder, ContextFormat
from models.sdpa import train_fast_on_cpu
from models.text_formats import label_tokens
from models.token_count import CountsTokens

TRUE_FALSE = ("true", "false")  # the paper's words
TOKENS_PER_BATCH = {"cpu": 2048, "cuda": 65536}


@dataclass
class Relevance:
    """Output of the estimator for P pairs."""

    score_P: Tensor  # relevance logit: log P(true word) - log P(false word), nats, fp32
    other_logit_P: Tensor | None  # logit of the probability of all other tokens, for L_tok; None without an LM head


class RelevanceEstimator(CountsTokens, nn.Module):
    """Scores (question, context) pairs.

    Args:
        network: A T5-family model, or a sequence classifier with one or two labels.
        encode: Tokenizes (question, context) pairs.
        label_words: What a T5 says of a relevant and of an irrelevant context, a single token each.

    Raises:
        UserError: If a word is several tokens.
    """

    network: PreTrainedModel
    inference_dtype: torch.dtype | None = None  # of `scores`; None: as the caller's autocast says

    def __init__(
        self, network: PreTrainedModel, encode: ContextEncoder, label_words: tuple[str, str] = TRUE_FALSE
    ) -> None:
        super().__init__()
        self.network, self.encode, self.label_words = network, encode, label_words
        keep_heads_in_fp32(network)
        self.generative = bool(network.config.is_encoder_decoder)
        if self.generative:
            self.true_id, self.false_id = label_tokens(encode.tokenizer, *label_words)
        # Segment ids mark question and passage for models of the BERT family that were trained with them.
        self.segmented = (
            not self.generative
            and "token_type_ids" in encode.tokenizer.model_input_names
            and getattr(network.config, "type_vocab_size", 1) > 1
        )
        if network.config.model_type == "big_bird":
            fuse(network.bert)
            freeze_pooler(network.bert)
        if not self.generative:
            train_fast_on_cpu(network)
            compute_first_token(network)

    @classmethod
    def build(
        cls,
        pretrained: str,
        max_tokens: int = 256,
        text_format: ContextFormat = "fid",
        dropout: float | None = None,
        gradient_checkpointing: bool = False,
        layers: int | None = None,
        label_words: tuple[str, str] = TRUE_FALSE,
    ) -> Self:
        """Load an estimator for training or serving.

        Args:
            pretrained: Folder or hub id: a T5-family model (also v1.1, Flan, mT5), or an encoder-only model of the
                BERT/BigBird/Longformer family, which gets a one-label head unless it has a classification head.
            max_tokens: Maximum length of a pair, in tokens.
            text_format: Input format of a T5; encoder-only models always use `sentence_pair`.
            dropout: Rate of all dropout layers; the checkpoint's when None.
            gradient_checkpointing: Recompute activations in the backward pass.
            layers: Number of first layers to keep of an encoder-only model; all when None.
            label_words: What a T5 says of a relevant and of an irrelevant context; encoder-only models say nothing.

        Raises:
            MissingInputError: If the model is not on this machine.
            UserError: If the tokenizer, `layers`, a label word, the number of labels or max_tokens does not fit the
                model.
        """
        folder = str(resolve(pretrained))
        config = AutoConfig.from_pretrained(folder)
        options: dict[str, Any] = {"dtype": torch.float32}  # whatever it was saved in; autocast lowers the precision
        if layers is not None:
            if config.is_encoder_decoder or not 1 <= layers <= config.num_hidden_layers:
                raise UserError(
                    f"layers {layers} does not fit {pretrained}: it selects the first layers of an encoder-only model, "
                    f"here 1 to {config.num_hidden_layers}; a T5 is not supported."
                )
            options["num_hidden_layers"] = layers
        if config.is_encoder_decoder:
            network, tokenizer = load_seq2seq(pretrained, "estimator", dropout, gradient_checkpointing)
            encode = ContextEncoder(tokenizer, max_tokens, text_format)
        else:
            options |= {} if dropout is None else dropout_options(False, dropout)
            if config.model_type == "big_bird":
                options["attention_type"] = "original_full"
            labels = (
                {} if (config.architectures or [""])[0].endswith("ForSequenceClassification") else {"num_labels": 1}
            )
            network = load_network(
                AutoModelForSequenceClassification, folder, new_head=bool(labels), **labels, **options
            )
            if network.config.num_labels > 2:
                raise UserError(
                    f"{pretrained} classifies into {network.config.num_labels} labels; an estimator needs 1 or 2."
                )
            if max_tokens > (room := positions(network.config)):
                raise UserError(f"max_tokens {max_tokens} is beyond the {room} positions of {pretrained}: lower it.")
            encode = ContextEncoder(AutoTokenizer.from_pretrained(folder), max_tokens, "sentence_pair")
            if gradient_checkpointing:
                network.activation_checkpointing_enable({"use_reentrant": False})
        return cls(network, encode, label_words)

    def forward(self, ids_PT: Tensor, attention_PT: Tensor) -> Relevance:
        """Scores of P tokenized pairs; see `Relevance`."""
        if not self.generative:
            segments = {"token_type_ids": self._segments(ids_PT, attention_PT)} if self.segmented else {}
            logits_PL = self.network(input_ids=ids_PT, attention_mask=attention_PT, **segments).logits
            return Relevance(log_odds_of(logits_PL), None)
        start_P1 = ids_PT.new_full((len(ids_PT), 1), self.network.config.decoder_start_token_id)
        logits_PV = self.network(
            input_ids=ids_PT, attention_mask=attention_PT, decoder_input_ids=start_P1, use_cache=False
        ).logits[:, 0]  # fmt: skip
        score_P = logits_PV[:, self.true_id] - logits_PV[:, self.false_id]
        label_2 = torch.tensor([self.true_id, self.false_id], device=logits_PV.device)
        others_P = logits_PV.index_fill(1, label_2, -torch.inf).logsumexp(1)
        # not 1 - P(true) - P(false), whose rounding error exceeds the small probability itself and may be negative
        return Relevance(score_P, others_P - logits_PV[:, label_2].logsumexp(1))

    def _segments(self, ids_PT: Tensor, attention_PT: Tensor) -> Tensor:
        """Token type ids (P, T), as from the tokenizer: 1 for the passage and its separator, else 0."""
        ends_PT = (ids_PT == self.encode.tokenizer.sep_token_id).long()
        return (ends_PT.cumsum(1) - ends_PT).clamp(max=1) * attention_PT

    def scores(self, pairs: Sequence[tuple[str, Passage]], tokens_per_batch: int | None = None) -> list[float]:
        """Relevance logit of every (question, passage), in order, nats; batched by length."""
        device = self.network.device
        sequences = self.encode([(question, [passage]) for question, passage in pairs])
        self.tokens_read += sum(map(len, sequences))
        scores = torch.empty(len(pairs))
        budget = tokens_per_batch or TOKENS_PER_BATCH[device.type]

        @torch.inference_mode()
        def score(rows: list[int]) -> Tensor:
            ids_PT, attention_PT = self.encode.pad([sequences[row] for row in rows])
            with autocast(device, self.inference_dtype):
                relevance = self(ids_PT.to(device, non_blocking=True), attention_PT.to(device, non_blocking=True))
            return relevance.score_P.cpu()

        with Progress("scoring contexts", len(pairs)) as progress:
            for rows, score_P in each_batch(score, length_batches([len(s) for s in sequences], budget), device):
                scores[rows] = score_P
                progress.advance(len(rows))
        return scores.tolist()

    def save(self, folder: Path) -> None:
        """Write config.json, model.safetensors and the tokenizer for transformers' Auto classes.

        Without a decoder also for CrossEncoder: there, the pair (question, "title. text") scores the relevance logit.
        """
        tokenizer, max_tokens = self.encode.tokenizer, self.encode.max_tokens
        if self.generative:
            save_network(self.network, folder)
            with_max_tokens(tokenizer, max_tokens).save_pretrained(folder)
        else:
            save_one_score(self.network, folder)
            pair_tokenizer(tokenizer, max_tokens, self.segmented, separator_inside=False).save_pretrained(folder)


def positions(config: PretrainedConfig) -> int:
    """Maximum input length of an encoder-only model, in tokens.

    RoBERTa's and Longformer's positions start after the padding id.
    """
    shifted = ("roberta", "xlm-roberta", "camembert", "longformer")
    taken = config.pad_token_id + 1 if config.model_type in shifted else 0
    return int(config.max_position_embeddings) - taken
