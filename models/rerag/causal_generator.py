"""RE-RAG's generator as a causal LM: the prompt is a passage, or all of them, and a question, the reply an answer.

In training a prompt and its answer are one sequence. To generate and score several answers, a prompt is computed once:
its key and value states are kept, and each answer goes on from a copy of its row.

Shape legend: P prompts, T tokens, A answer tokens, V vocabulary, Q selected rows.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor
from transformers import Cache, DynamicCache

from models.causal_lm import CausalLanguageModel, labels_logp, next_logits
from models.causal_part import computing, save_causal, use_of
from models.label_log_probability import label_logp
from models.length_batching import IGNORE
from models.prompt_tokenizer import PromptEncoder
from models.rerag.generator import GENERATOR, Generator
from models.token_sampling import TokenSampler, TokenSampling


@dataclass
class PromptStates:
    """Key and value states of P prompts, and the logits of the token after each."""

    cache: Cache
    attention_PT: Tensor
    logits_PV: Tensor

    def rows(self, rows_Q: Tensor) -> "PromptStates":
        """See `models.rerag.generator.Encoded`."""
        cache = self.copy().cache
        cache.batch_select_indices(rows_Q)
        return PromptStates(cache, self.attention_PT[rows_Q], self.logits_PV[rows_Q])

    def copy(self) -> "PromptStates":
        """The same states; going on from them leaves these as they are."""
        cache = copy.copy(self.cache)
        cache.layers = [copy.copy(layer) for layer in self.cache.layers]  # a layer replaces its tensors, it keeps none
        return PromptStates(cache, self.attention_PT, self.logits_PV)


class CausalGenerator(Generator):
    """A causal LM that answers; it computes with the adapter of the name `generator`, if it has one.

    Args:
        lm: The language model.
        max_tokens: Maximum prompt length, in tokens.
        answer_prefix: Text before every answer.
        packed: Whether it reads all passages of a question in one call.
    """

    encode: PromptEncoder

    def __init__(self, lm: CausalLanguageModel, max_tokens: int, answer_prefix: str = "", packed: bool = False) -> None:
        encode = PromptEncoder(lm.tokenizer, max_tokens, "packed" if packed else "answer", lm.end_ids)
        super().__init__(lm.network, encode, answer_prefix, encode.end_ids)
        self.adapter = use_of(lm.network, GENERATOR)

    def labeller(self, max_tokens: int | None) -> Callable[[Sequence[str]], Tensor]:
        """See `Generator`."""
        return partial(self.encode.labels, self.answer_prefix, max_tokens)

    def forward(self, ids_PT: Tensor, attention_PT: Tensor, labels_PA: Tensor) -> Tensor:
        """log P_G of one answer per prompt, in one pass: (P,), nats, fp32."""
        said_PA = labels_PA != IGNORE
        ids = torch.cat([ids_PT, labels_PA.clamp(min=0)], dim=1)
        attention = torch.cat([attention_PT, said_PA.to(attention_PT.dtype)], dim=1)
        with computing(self.adapter):
            return labels_logp(self.network, ids, attention, labels_PA, self.end_ids).sum(dim=1)

    def encode_contexts(self, ids_PT: Tensor, attention_PT: Tensor) -> PromptStates:
        """See `Generator`."""
        states = PromptStates(DynamicCache(config=self.network.config), attention_PT[:, :0], torch.empty(0))
        return self._go_on(states, ids_PT, attention_PT)

    def answer_logp(self, encoded: PromptStates, labels_PA: Tensor) -> Tensor:
        """See `Generator`."""
        first_P = label_logp(encoded.logits_PV, labels_PA[:, 0], self.end_ids)
        if labels_PA.shape[1] == 1:
            return first_P
        said_PA, later_PA = labels_PA != IGNORE, labels_PA[:, 1:]
        seen_PT = torch.cat([encoded.attention_PT, said_PA.to(encoded.attention_PT.dtype)], dim=1)
        with computing(self.adapter):
            rest_PA = labels_logp(
                self.network, labels_PA.clamp(min=0), seen_PT, later_PA, self.end_ids, encoded.copy().cache
            )
        return first_P + rest_PA.sum(dim=1)

    @torch.no_grad()
    def generate(
        self, encoded: PromptStates, max_answer_tokens: int = 32, choices: Sequence[TokenSampling] | None = None
    ) -> Tensor:
        """See `Generator`."""
        states, ends_E = encoded.copy(), torch.tensor(self.end_ids, device=encoded.attention_PT.device)
        choose = TokenSampler(choices or [TokenSampling()] * len(encoded.attention_PT), self.end_ids)
        ended_P = torch.zeros(len(encoded.attention_PT), dtype=torch.bool, device=ends_E.device)
        columns: list[Tensor] = []
        for _ in range(max_answer_tokens):
            chosen_P = choose(ends_E, states.logits_PV).argmax(dim=1)
            columns.append(chosen_P.masked_fill(ended_P, self.encode.pad_id))
            ended_P = ended_P | torch.isin(chosen_P, ends_E)
            if ended_P.all() or len(columns) == max_answer_tokens:
                break
            states = self._go_on(states, columns[-1][:, None], torch.ones_like(states.attention_PT[:, :1]))
        return torch.stack(columns, dim=1)

    def _go_on(self, states: PromptStates, ids: Tensor, attention: Tensor) -> PromptStates:
        """The states after further tokens (P, n)."""
        seen_PT = torch.cat([states.attention_PT, attention], dim=1)
        with computing(self.adapter):
            logits_P1V = next_logits(self.network, ids, seen_PT, 1, states.cache)
        return PromptStates(states.cache, seen_PT, logits_P1V[:, 0])

    def save(self, folder: Path) -> None:
        """See `Generator`."""
        save_causal(self.network, self.encode, folder)
