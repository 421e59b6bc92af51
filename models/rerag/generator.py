"""RE-RAG's generator: generates or scores an answer from a question and its context; a T5, or a causal LM.

Contexts are encoded once; what is kept of them is reused for every answer that is generated or scored.
Shape legend: P encoded contexts, T tokens, A answer tokens, V vocabulary, H hidden width, Q selected rows.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol, Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import LogitsProcessorList, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput

from common.progress import track
from common.records import Passage, clean
from models.context_tokenizer import ContextEncoder, answer_labels
from models.cross_encoder import TOKENS_PER_BATCH
from models.devices import autocast
from models.full_precision import keep_heads_in_fp32
from models.length_batching import IGNORE, length_batches
from models.loading import save_network
from models.lora import AdapterUse
from models.pair_export import with_max_tokens
from models.serving_manifest import FromServing
from models.token_count import CountsTokens
from models.token_sampling import TokenSampler, TokenSampling

GENERATOR = "generator"  # the part of a serving folder


@dataclass(frozen=True, slots=True)
class Generated:
    """A generated answer."""

    text: str  # without the prefix
    logprob: float  # nats, of the text and its end
    tokens: int  # generated, with the end token
    ended: bool  # False: cut at the maximum length


class Encoded(Protocol):
    """The states that a generator keeps of P contexts."""

    def rows(self, rows_Q: Tensor) -> Self:
        """The states of the contexts with the given indices, which may repeat."""


@dataclass
class EncoderStates:
    """A T5's encoder states of P contexts."""

    states_PTH: Tensor
    attention_PT: Tensor

    def rows(self, rows_Q: Tensor) -> "EncoderStates":
        """See `Encoded`."""
        return EncoderStates(self.states_PTH[rows_Q], self.attention_PT[rows_Q])


class Generator(CountsTokens, FromServing, nn.Module, ABC):
    """Generates answers and scores given answers.

    Args:
        network: Its network.
        encode: Tokenizes questions with their passages.
        answer_prefix: Text before every training target, e.g. the released code's "Answer: "; removed from outputs.
        end_ids: Tokens that end an answer.
    """

    network: PreTrainedModel
    inference_dtype: torch.dtype | None = None  # of `read` and of MarginalReader; None: as the caller's autocast says
    adapter: AdapterUse | None = None  # with which of the network's adapters it computes, if there are any

    def __init__(
        self, network: PreTrainedModel, encode: ContextEncoder, answer_prefix: str, end_ids: Sequence[int]
    ) -> None:
        super().__init__()
        self.network, self.encode, self.answer_prefix, self.end_ids = network, encode, answer_prefix, list(end_ids)
        keep_heads_in_fp32(network)

    @abstractmethod
    def labeller(self, max_tokens: int | None) -> Callable[[Sequence[str]], Tensor]:
        """Makes token ids (P, A) of answers, at most `max_tokens` each, padded with IGNORE; can be pickled."""

    @abstractmethod
    def encode_contexts(self, ids_PT: Tensor, attention_PT: Tensor) -> Any:
        """`Encoded` of P contexts."""

    @abstractmethod
    def answer_logp(self, encoded: Any, labels_PA: Tensor) -> Tensor:
        """log P_G(a | q, c) of one answer per context, summed over its tokens and the end token: (P,), nats, fp32."""

    @abstractmethod
    def generate(
        self, encoded: Any, max_answer_tokens: int = 32, choices: Sequence[TokenSampling] | None = None
    ) -> Tensor:
        """Token ids (P, A) of one answer per context, with its end token, then padding; greedy without `choices`."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write config.json, generation_config.json, model.safetensors and the tokenizer."""

    def labels(self, answers: Sequence[str], max_tokens: int | None = None) -> Tensor:
        """Token ids (P, A) of answers; see `labeller`."""
        return self.labeller(max_tokens)(answers)

    def forward(self, ids_PT: Tensor, attention_PT: Tensor, labels_PA: Tensor) -> Tensor:
        """log P_G of one answer per context; see `answer_logp`."""
        return self.answer_logp(self.encode_contexts(ids_PT, attention_PT), labels_PA)

    @torch.no_grad()
    def write(self, encoded: Encoded, max_answer_tokens: int = 32) -> list[str]:
        """One greedy answer per context, without the prefix."""
        return self._texts(self.generate(encoded, max_answer_tokens))

    def _texts(self, ids: Tensor | Sequence[Sequence[int]]) -> list[str]:
        texts = self.encode.tokenizer.batch_decode(ids, skip_special_tokens=True)
        return [clean(text).removeprefix(self.answer_prefix.strip()).strip() for text in texts]

    @torch.no_grad()
    def answers(
        self,
        rows: Sequence[tuple[str, Sequence[Passage]]],
        max_answer_tokens: int = 32,
        tokens_per_batch: int | None = None,
    ) -> list[tuple[str, float]]:
        """Greedy answer and its log-probability (nats) for every (question, passages), in order; batched by length."""
        limits = [max_answer_tokens] * len(rows)
        return [(each.text, each.logprob) for each in self.read(self.encode(rows), limits, None, tokens_per_batch)]

    @torch.no_grad()
    def read(
        self,
        sequences: Sequence[Sequence[int]],
        max_answer_tokens: Sequence[int],
        choices: Sequence[TokenSampling] | None = None,
        tokens_per_batch: int | None = None,
    ) -> list[Generated]:
        """Answer for every input, in order; batched by length.

        Args:
            sequences: Token ids, as from `encode`.
            max_answer_tokens: Most tokens of each answer, its end token included.
            choices: How the tokens of each answer are chosen; greedy when None.
            tokens_per_batch: Most tokens of a batch; by device when None.
        """
        self.tokens_read += sum(map(len, sequences))
        answers: list[Generated | None] = [None] * len(sequences)
        for batch, *padded in self.batches(sequences, tokens_per_batch, "reading"):
            limits = [max_answer_tokens[row] for row in batch]
            with autocast(self.network.device, self.inference_dtype):
                encoded = self.encode_contexts(*padded)
                ids_PA = self.generate(encoded, max(limits), [choices[row] for row in batch] if choices else None)
                lines = [ids[:most] for ids, most in zip(ids_PA.tolist(), limits, strict=True)]
                texts = self._texts(lines)
                logp_P = self.answer_logp(encoded, self.labels(texts).to(self.network.device))
            for row, ids, text, logp in zip(batch, lines, texts, logp_P.tolist(), strict=True):
                end = next((place for place, token in enumerate(ids) if token in self.end_ids), None)
                answers[row] = Generated(text, logp, len(ids) if end is None else end + 1, end is not None)
        return answers  # type: ignore[return-value]  # every row is in one batch

    @torch.no_grad()
    def logprobs(
        self, sequences: Sequence[Sequence[int]], answers: Sequence[str], tokens_per_batch: int | None = None
    ) -> list[float]:
        """log P_G of each answer given its input, nats, in order; equal inputs are encoded once.

        Arguments as in `read`.
        """
        rows_of: dict[tuple[int, ...], list[int]] = {}
        for row, sequence in enumerate(sequences):
            rows_of.setdefault(tuple(sequence), []).append(row)
        distinct = list(rows_of)
        self.tokens_read += sum(map(len, distinct))
        scores = [0.0] * len(sequences)
        for batch, *padded in self.batches(distinct, tokens_per_batch, "scoring answers"):
            pairs = [(place, row) for place, each in enumerate(batch) for row in rows_of[distinct[each]]]
            with autocast(self.network.device, self.inference_dtype):
                encoded = self.encode_contexts(*padded)
                for start in range(0, len(pairs), len(batch)):  # the batch size of the encoder
                    chunk = pairs[start : start + len(batch)]
                    labels = self.labels([answers[row] for _, row in chunk]).to(self.network.device)
                    places = torch.tensor([place for place, _ in chunk], device=self.network.device)
                    logp_Q = self.answer_logp(encoded.rows(places), labels)
                    for (_, row), logp in zip(chunk, logp_Q.tolist(), strict=True):
                        scores[row] = logp
        return scores

    def batches(
        self, sequences: Sequence[Sequence[int]], tokens_per_batch: int | None, what: str
    ) -> Iterator[tuple[list[int], Tensor, Tensor]]:
        """Rows of similar length, with their padded token ids and attention mask."""
        device = self.network.device
        budget = tokens_per_batch or TOKENS_PER_BATCH[device.type]
        batches = length_batches([len(s) for s in sequences], budget)
        for batch in track(batches, len(sequences), what, len):
            ids_PT, attention_PT = self.encode.pad([sequences[row] for row in batch])
            yield batch, ids_PT.to(device), attention_PT.to(device)


class T5Generator(Generator):
    """A model of the T5 family; arguments as of `Generator`."""

    def __init__(self, network: PreTrainedModel, encode: ContextEncoder, answer_prefix: str = "") -> None:
        super().__init__(network, encode, answer_prefix, [network.config.eos_token_id])

    def labeller(self, max_tokens: int | None) -> Callable[[Sequence[str]], Tensor]:
        """See `Generator`."""
        return partial(answer_labels, self.encode.tokenizer, self.answer_prefix, max_tokens)

    def encode_contexts(self, ids_PT: Tensor, attention_PT: Tensor) -> EncoderStates:
        """See `Generator`."""
        encoder = self.network.get_encoder()
        return EncoderStates(encoder(input_ids=ids_PT, attention_mask=attention_PT).last_hidden_state, attention_PT)

    def answer_logp(self, encoded: EncoderStates, labels_PA: Tensor) -> Tensor:
        """See `Generator`."""
        logits_PAV = self.network(
            encoder_outputs=BaseModelOutput(last_hidden_state=encoded.states_PTH),
            attention_mask=encoded.attention_PT,
            decoder_input_ids=self._shifted(labels_PA),
            use_cache=False,
        ).logits
        nll_PA = F.cross_entropy(logits_PAV.transpose(1, 2), labels_PA, ignore_index=IGNORE, reduction="none")
        return -nll_PA.sum(dim=1)

    @torch.no_grad()
    def generate(
        self, encoded: EncoderStates, max_answer_tokens: int = 32, choices: Sequence[TokenSampling] | None = None
    ) -> Tensor:
        """See `Generator`."""
        sampled = any(choice.temperature for choice in choices or ())
        processors = [TokenSampler(choices, self.end_ids)] if choices and sampled else []
        ids_PA: Tensor = self.network.generate(
            encoder_outputs=BaseModelOutput(last_hidden_state=encoded.states_PTH),
            attention_mask=encoded.attention_PT,
            max_new_tokens=max_answer_tokens,
            num_beams=1,
            do_sample=False,
            logits_processor=LogitsProcessorList(processors),
        )
        return ids_PA[:, 1:]  # without the start token

    def save(self, folder: Path) -> None:
        """See `Generator`."""
        save_network(self.network, folder, with_max_tokens(self.encode.tokenizer, self.encode.max_tokens))

    def _shifted(self, labels_PA: Tensor) -> Tensor:
        """Decoder input ids: the start token, then every label but the last."""
        config = self.network.config
        ids_PA = labels_PA.roll(1, dims=1).masked_fill(labels_PA.roll(1, dims=1) == IGNORE, config.pad_token_id)
        ids_PA[:, 0] = config.decoder_start_token_id
        return ids_PA
