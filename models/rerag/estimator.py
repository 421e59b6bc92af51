"""RE-RAG's relevance estimator (Section 2.2): how useful is a context for a question?

Two families behind one interface: a T5 that says "true" or "false" in one decoder step, and a cross-encoder head on an
encoder-only model, faster and without L_tok.  Shape legend: P pairs, T tokens, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import (
    AutoConfig,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PretrainedConfig,
    PreTrainedModel,
)

from common.errors import UserError
from common.records import Passage
from models.bigbird.attention import fuse
from models.length_batching import length_batches
from models.pretrained import dropout_options, resolve
from models.rerag.context_tokenizer import ContextEncoder, ContextFormat
from models.text_formats import single_token

TOKENS_PER_BATCH = {"cpu": 2048, "cuda": 65536}


@dataclass
class Relevance:
    """What the estimator says of P pairs."""

    score_P: Tensor  # logit of the relevance P("true"): log P("true") - log P("false"), nats, fp32
    other_logit_P: Tensor | None  # logit of the probability of every other token, for L_tok; None without a vocabulary


class FullPrecisionHead(nn.Linear):
    """A language-model head that computes logits in fp32 whatever autocast says; its weight is the given head's own.

    A bf16 logit of 20 is a multiple of 1/8: scores of alike contexts, which are differences of such logits, would tie.
    """

    def __init__(self, head: nn.Linear) -> None:
        with torch.device("meta"):
            super().__init__(head.in_features, head.out_features, bias=head.bias is not None)
        self.weight, self.bias = head.weight, head.bias

    def forward(self, states: Tensor) -> Tensor:
        """Logits of states (..., H), fp32."""
        device = "cpu" if states.is_meta else states.device.type  # tensors without storage know no autocast
        with torch.autocast(device, enabled=False):
            bias = None if self.bias is None else self.bias.float()
            return F.linear(states.float(), self.weight.float(), bias)


class RelevanceEstimator(nn.Module):
    """Scores (question, context) pairs.

    Args:
        network: A T5-family model, or a sequence classifier with one or two labels.
        encode: Turns pairs into token ids.
    """

    network: PreTrainedModel

    def __init__(self, network: PreTrainedModel, encode: ContextEncoder) -> None:
        super().__init__()
        self.network, self.encode = network, encode
        self.generative = bool(network.config.is_encoder_decoder)
        if self.generative:
            self.true_id, self.false_id = (single_token(encode.tokenizer, word) for word in ("true", "false"))
            network.set_output_embeddings(FullPrecisionHead(network.get_output_embeddings()))
        # Cross-encoders of the BERT family know question from passage by segments; those without such ids never saw any.
        self.segmented = (
            not self.generative
            and "token_type_ids" in encode.tokenizer.model_input_names
            and getattr(network.config, "type_vocab_size", 1) > 1
        )
        if network.config.model_type == "big_bird":
            fuse(network.bert)

    @classmethod
    def build(
        cls,
        pretrained: str,
        max_tokens: int = 256,
        text_format: ContextFormat = "fid",
        dropout: float | None = None,
        gradient_checkpointing: bool = False,
        layers: int | None = None,
    ) -> Self:
        """An estimator to train, or a folder's to serve.

        Args:
            pretrained: Folder or hub id: the T5 family (v1.1, Flan, mT5 too), or an encoder-only model of the
                BERT/BigBird family, which gets a one-label head unless it has one.
            max_tokens: Longest pair, in tokens.
            text_format: Format of a T5's input; encoder-only models take `sentence_pair` whatever is said here.
            dropout: The checkpoint's own when None.
            gradient_checkpointing: Recompute activations in the backward pass.
            layers: Keep the first so many layers of an encoder-only model; all when None.

        Raises:
            MissingInputError: If there is no such model on this machine.
            UserError: If its tokenizer lacks a token that is needed, or it has fewer layers, or is a T5 to be cut.
        """
        folder = str(resolve(pretrained))
        config = AutoConfig.from_pretrained(folder)
        tokenizer = AutoTokenizer.from_pretrained(folder)
        options: dict[str, Any] = {"dtype": torch.float32}  # whatever it was saved in; autocast does the rest
        options |= {} if dropout is None else dropout_options(config.is_encoder_decoder, dropout)
        if layers is not None:
            if config.is_encoder_decoder or not 1 <= layers <= config.num_hidden_layers:
                raise UserError(
                    f"layers {layers} does not fit {pretrained}: an encoder-only model can be cut to between 1 and all of "
                    f"its {config.num_hidden_layers} layers; a T5 cannot."
                )
            options["num_hidden_layers"] = layers
        if config.is_encoder_decoder:
            network = AutoModelForSeq2SeqLM.from_pretrained(folder, **options)
            encode = ContextEncoder(tokenizer, max_tokens, text_format)
        else:
            if config.model_type == "big_bird":
                options["attention_type"] = "original_full"
            labels = (
                {} if (config.architectures or [""])[0].endswith("ForSequenceClassification") else {"num_labels": 1}
            )
            network = AutoModelForSequenceClassification.from_pretrained(folder, **labels, **options)
            if network.config.num_labels > 2:
                raise UserError(
                    f"{pretrained} classifies into {network.config.num_labels} labels; an estimator has 1 or 2."
                )
            if max_tokens > (room := positions(network.config)):
                raise UserError(f"max_tokens {max_tokens} is beyond the {room} positions of {pretrained}: lower it.")
            encode = ContextEncoder(tokenizer, max_tokens, "sentence_pair")
        if gradient_checkpointing:
            network.activation_checkpointing_enable({"use_reentrant": False})
        return cls(network, encode)

    def forward(self, ids_PT: Tensor, attention_PT: Tensor) -> Relevance:
        """Scores of P encoded pairs; see `Relevance`."""
        if not self.generative:
            segments = {"token_type_ids": self._segments(ids_PT, attention_PT)} if self.segmented else {}
            logits_PL = self.network(input_ids=ids_PT, attention_mask=attention_PT, **segments).logits.float()
            if logits_PL.shape[1] == 2:
                return Relevance(logits_PL[:, 1] - logits_PL[:, 0], None)
            return Relevance(logits_PL[:, 0], None)
        start_P1 = ids_PT.new_full((len(ids_PT), 1), self.network.config.decoder_start_token_id)
        logits_PV = self.network(
            input_ids=ids_PT, attention_mask=attention_PT, decoder_input_ids=start_P1, use_cache=False
        ).logits[:, 0]  # fmt: skip
        score_P = logits_PV[:, self.true_id] - logits_PV[:, self.false_id]
        label_2 = torch.tensor([self.true_id, self.false_id], device=logits_PV.device)
        others_P = logits_PV.index_fill(1, label_2, -torch.inf).logsumexp(1)
        # not 1 - P(true) - P(false): its rounding error exceeds the mass of a trained estimator, and may be negative
        return Relevance(score_P, others_P - logits_PV[:, label_2].logsumexp(1))

    def _segments(self, ids_PT: Tensor, attention_PT: Tensor) -> Tensor:
        """0 up to the first separator, 1 for the passage and its separator, 0 for padding: what the tokenizer itself gives."""
        ends_PT = (ids_PT == self.encode.tokenizer.sep_token_id).long()
        return (ends_PT.cumsum(1) - ends_PT).clamp(max=1) * attention_PT

    @torch.inference_mode()
    def scores(self, pairs: Sequence[tuple[str, Passage]], tokens_per_batch: int | None = None) -> list[float]:
        """Relevance logit of every (question, passage), in order, nats; in few forward passes of alike lengths."""
        device = self.network.device
        sequences = self.encode([(question, [passage]) for question, passage in pairs])
        scores = torch.empty(len(pairs))
        budget = tokens_per_batch or TOKENS_PER_BATCH[device.type]
        for rows in length_batches([len(s) for s in sequences], budget):
            ids_PT, attention_PT = self.encode.pad([sequences[row] for row in rows])
            with torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type == "cuda"):
                relevance = self(ids_PT.to(device, non_blocking=True), attention_PT.to(device, non_blocking=True))
            scores[rows] = relevance.score_P.cpu()
        return scores.tolist()

    def save(self, folder: Path) -> None:
        """Write config.json, model.safetensors and the tokenizer."""
        self.network.save_pretrained(folder)
        self.encode.tokenizer.save_pretrained(folder)


def positions(config: PretrainedConfig) -> int:
    """Longest input of an encoder-only model, in tokens; RoBERTa counts positions from its padding id on."""
    taken = config.pad_token_id + 1 if config.model_type in ("roberta", "xlm-roberta", "camembert") else 0
    return int(config.max_position_embeddings) - taken
