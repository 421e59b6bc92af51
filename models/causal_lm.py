"""A causal language model: generates replies to prompts with their log-probabilities, and scores given replies.

Prompts and replies are token ids; chat templates are applied elsewhere. Prompts are padded on the left, so that all
rows of a batch end together; results do not depend on batch, order or padding. The common beginning of all prompts of a
call is read once, and so is a prompt with several replies to score (`models.kept_states`).

Shape legend: P rows, T tokens, A reply tokens with the end, N reply tokens of all rows, V vocabulary.
"""

import inspect
import sys
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from pathlib import Path
from typing import Any, Literal, Self

import torch
from torch import Tensor, nn
from transformers import (
    AutoModelForCausalLM,
    Cache,
    DynamicCache,
    GenerationConfig,
    LogitsProcessorList,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from common.errors import UserError
from common.progress import Progress, track
from models.devices import autocast
from models.full_precision import keep_heads_in_fp32
from models.kept_states import CHEAPER, WORTHWHILE, KeptStates, can_keep, common_prefix
from models.label_log_probability import label_logp
from models.length_batching import IGNORE, length_batches, pad
from models.loading import check_vocabulary, load_config, load_network, load_tokenizer, save_network
from models.pretrained import resolve
from models.quantization import keep_layout, quantized
from models.token_count import CountsTokens
from models.token_sampling import SampledTokens, TokenSampler, TokenSampling

TOKENS_PER_BATCH = {"cpu": 2048, "cuda": 65536}  # of prompts and replies together
DeviceMap = Literal["auto", "balanced", "balanced_low_0", "sequential"] | dict[str, int | str]  # module -> device
HEADS = ("CausalLM", "LMHead", "ConditionalGeneration")  # in the names of architectures that generate text


class CausalLanguageModel(CountsTokens, nn.Module):
    """Generates and scores replies.

    Args:
        network: A causal LM of transformers.
        tokenizer: Its tokenizer.

    Raises:
        UserError: If neither its generation_config.json nor its tokenizer names an end token.
    """

    network: PreTrainedModel
    inference_dtype: torch.dtype | None = None  # None: as the caller's autocast says

    def __init__(self, network: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        super().__init__()
        self.network, self.tokenizer = network, tokenizer
        self.end_ids = end_ids_of(network, tokenizer)
        self.pad_id = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else self.end_ids[0]
        # The checkpoint's own settings (temperature, repetition penalty, top-k) would change what is generated.
        network.generation_config = GenerationConfig(eos_token_id=self.end_ids, pad_token_id=self.pad_id)
        keep_heads_in_fp32(network)

    @classmethod
    def build(cls, pretrained: str, base_bits: int | None = None, device_map: DeviceMap | None = None) -> Self:
        """Load a model in fp32; `inference_dtype` lowers the precision operation by operation.

        Args:
            pretrained: Folder or hub id of a causal LM.
            base_bits: 4 or 8: bits of the linear layers' weights (`models.quantization`); 32 when None.
            device_map: Where accelerate puts its parts; all on the CPU when None. Not with `base_bits`.

        Raises:
            MissingInputError: If the model is not on this machine.
            UserError: If it is not a causal LM, or has no end token.
            ArtifactError: If weights are missing.
        """
        folder = resolve(pretrained)
        check_causal(pretrained, load_config(folder))
        options: dict[str, Any] = {"device_map": device_map} if base_bits is None else quantized(base_bits)
        network = load_network(AutoModelForCausalLM, folder, dtype=torch.float32, **options)
        if base_bits is not None:
            keep_layout(network)
        tokenizer = load_tokenizer(folder)
        check_vocabulary(tokenizer, network, folder)
        return cls(network, tokenizer)

    @property
    def device(self) -> torch.device:
        """The device of the inputs: that of the network, or of its first part."""
        return torch.device("cpu") if self.network.device.type == "meta" else self.network.device

    @property
    def context_tokens(self) -> int | None:
        """Most tokens of a prompt and its reply together; None if the model has no limit."""
        return context_of(self.network.config)

    @torch.no_grad()  # in inference mode autocast would make its copies of the weights again for every token
    def write(
        self,
        prompts: Sequence[Sequence[int]],
        max_tokens: Sequence[int],
        choices: Sequence[TokenSampling] | None = None,
        tokens_per_batch: int | None = None,
    ) -> list[SampledTokens]:
        """One reply per prompt, in order; batched by length.

        Args:
            prompts: Token ids, at least one each.
            max_tokens: Most tokens of each reply, its end token included, at least 1.
            choices: How the tokens of each reply are chosen; greedy when None.
            tokens_per_batch: Most tokens of a batch, prompts and replies with padding; by device when None.
        """
        choices = choices or [TokenSampling()] * len(prompts)
        replies: list[SampledTokens | None] = [None] * len(prompts)
        kept = self._shared(prompts)
        lengths = [self._counted(len(prompt), kept) for prompt in prompts]
        batches = [
            batch for most in sorted(set(max_tokens))
            for batch in self._batches(lengths, max_tokens, most, tokens_per_batch)
        ]  # fmt: skip
        self.tokens_read += sum(map(len, prompts))
        for batch in track(batches, len(prompts), "writing", len):
            ids_PT, attention_PT = self._padded([prompts[row] for row in batch])
            limits = [max_tokens[row] for row in batch]
            sampler = TokenSampler([choices[row] for row in batch], self.end_ids)
            past = self._past(kept, [0] * len(batch), [prompts[row] for row in batch], attention_PT)
            with autocast(self.device, self.inference_dtype):
                self.network.generate(
                    input_ids=ids_PT,
                    attention_mask=attention_PT,
                    logits_processor=LogitsProcessorList([sampler]),
                    max_new_tokens=max(limits),
                    do_sample=False,
                    eos_token_id=self.end_ids,
                    **({} if past is None else {"past_key_values": past}),
                )
            for row, reply in zip(batch, sampler.written(limits), strict=True):
                replies[row] = reply
        return replies  # type: ignore[return-value]  # every row is in one batch

    @torch.inference_mode()
    def logprobs(
        self,
        prompts: Sequence[Sequence[int]],
        replies: Sequence[Sequence[int]],
        ended: bool | Sequence[bool] = True,
        tokens_per_batch: int | None = None,
    ) -> list[float]:
        """Log-probability of each reply to its prompt, summed over its tokens and its end: nats, fp32.

        Batched by length.

        Args:
            prompts: Token ids, at least one each.
            replies: Token ids without the end token; may be empty.
            ended: Whether the end counts, of all or of each.
            tokens_per_batch: As in `write`.
        """
        ends = [ended] * len(prompts) if isinstance(ended, bool) else ended
        labels = [[*reply, *self.end_ids[: int(end)]] for reply, end in zip(replies, ends, strict=True)]
        scores = [0.0] * len(prompts)
        rows = [row for row, label in enumerate(labels) if label]
        self.tokens_read += sum(len(prompts[row]) + len(labels[row]) for row in rows)
        budget = tokens_per_batch or TOKENS_PER_BATCH[self.device.type]
        with Progress("scoring", len(rows)) as progress:
            for kept, begun in self._begun(prompts, rows, budget):
                lengths = [
                    self._counted(len(prompts[row]), kept, source) + len(labels[row]) for row, source in begun.items()
                ]
                for places in length_batches(lengths, budget):
                    batch = [list(begun)[place] for place in places]
                    parts = [prompts[row] for row in batch], [labels[row] for row in batch]
                    ids_PT, attention_PT, labels_PA = (each.to(self.device) for each in self.reply_batch(*parts))
                    past = self._past(kept, [begun[row] for row in batch], parts[0], attention_PT)
                    with autocast(self.device, self.inference_dtype):
                        logp_P = self.labels_logp(ids_PT, attention_PT, labels_PA, past).sum(dim=1)
                    for row, logp in zip(batch, logp_P.tolist(), strict=True):
                        scores[row] = logp
                    progress.update(len(batch))
        return scores

    def reply_batch(
        self, prompts: Sequence[Sequence[int]], replies: Sequence[Sequence[int]]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Token ids and attention mask (P, T) of prompts with replies, and labels (P, A).

        The replies' tokens, else IGNORE.

        Rows end together; A is the length of the longest reply.
        """
        ids_PT, attention_PT = self._pad([[*prompt, *reply] for prompt, reply in zip(prompts, replies, strict=True)])
        labels_PA, _ = pad(replies, IGNORE, max(map(len, replies)), left=True)
        return ids_PT, attention_PT, labels_PA

    def labels_logp(
        self, ids_PT: Tensor, attention_PT: Tensor, labels_PA: Tensor, past: DynamicCache | None = None
    ) -> Tensor:
        """Log-probability (P, A), fp32, of each label of a `reply_batch`; 0 for IGNORE; with gradients."""
        slots = past.get_seq_length() if past is not None else 0
        return labels_logp(self.network, ids_PT[:, slots:], attention_PT, labels_PA, self.end_ids, past)

    def ended_by_lines(self) -> Self:
        """The same network, whose replies end with their first line too: at a token that has a line break."""
        other = copy(self)
        other.end_ids = list(dict.fromkeys([*self.end_ids, *line_break_ids(self.tokenizer)]))
        return other

    def save(self, folder: Path, **options: Any) -> None:
        """Write config.json, generation_config.json, model.safetensors and the tokenizer.

        `options` are of `save_pretrained`.
        """
        save_network(self.network, folder, self.tokenizer, **options)

    def _read(self, sequences: Sequence[Sequence[int]], kept: KeptStates | None = None) -> KeptStates:
        """The states of sequences, which all begin with what is kept already."""
        ids_PT, attention_PT = self._padded(sequences)
        past = self._past(kept, [0] * len(sequences), sequences, attention_PT) or DynamicCache()
        with autocast(self.device, self.inference_dtype):
            next_logits(self.network, ids_PT[:, past.get_seq_length() :], attention_PT, 1, past)
        return KeptStates(past, [len(each) for each in sequences])

    def _shared(self, prompts: Sequence[Sequence[int]]) -> KeptStates | None:
        """The states of the prompts' common beginning; None if it is not worth keeping."""
        count = common_prefix(prompts) if len(prompts) > 1 else 0
        return self._read([prompts[0][:count]]) if count >= WORTHWHILE and can_keep(self.network) else None

    def _begun(
        self, prompts: Sequence[Sequence[int]], rows: Sequence[int], budget: int
    ) -> Iterator[tuple[KeptStates | None, dict[int, int]]]:
        """What is kept, and which row of it each row begins with: all at once, or a batch of prompts at a time."""
        kept = self._shared([prompts[row] for row in rows])
        equal: dict[tuple[int, ...], list[int]] = {}
        for row in rows:
            equal.setdefault(tuple(prompts[row]), []).append(row)
        if len(equal) == len(rows) or not can_keep(self.network):
            yield kept, dict.fromkeys(rows, 0)
            return
        different = list(equal)
        for batch in length_batches([self._counted(len(prompt), kept) for prompt in different], budget):
            read = self._read([different[place] for place in batch], kept)
            yield read, {row: source for source, place in enumerate(batch) for row in equal[different[place]]}

    @staticmethod
    def _counted(tokens: int, kept: KeptStates | None, source: int = 0) -> int:
        """The tokens that a prompt of this length counts in a batch."""
        return tokens if kept is None else max(tokens - kept.lengths[source], -(-tokens // CHEAPER))

    @staticmethod
    def _past(
        kept: KeptStates | None, sources: Sequence[int], prompts: Sequence[Sequence[int]], attention_PT: Tensor
    ) -> DynamicCache | None:
        """The states of all rows' first slots: at least the last token of each prompt is read."""
        if kept is None:
            return None
        lengths, T = attention_PT.sum(dim=1).tolist(), attention_PT.shape[1]
        known = [min(kept.lengths[source], len(prompt) - 1) for source, prompt in zip(sources, prompts, strict=True)]
        slots = T - max(length - each for length, each in zip(lengths, known, strict=True))
        return kept.repeated(sources, [T - length for length in lengths], slots)

    def _padded(self, sequences: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """Left-padded token ids and attention mask on the network's device, both (P, T)."""
        ids_PT, attention_PT = self._pad(sequences)
        return ids_PT.to(self.device), attention_PT.to(self.device)

    def _pad(self, sequences: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        return pad(sequences, self.pad_id, self.context_tokens or sys.maxsize, left=True)

    def _batches(
        self, lengths: Sequence[int], max_tokens: Sequence[int], most: int, tokens_per_batch: int | None
    ) -> Iterable[list[int]]:
        """Batches of the rows whose replies have at most `most` tokens."""
        rows = [row for row, limit in enumerate(max_tokens) if limit == most]
        budget = tokens_per_batch or TOKENS_PER_BATCH[self.device.type]
        for batch in length_batches([lengths[row] + most for row in rows], budget):
            yield [rows[place] for place in batch]


def labels_logp(
    network: PreTrainedModel,
    ids_PT: Tensor,
    attention_PT: Tensor,
    labels_PA: Tensor,
    end_ids: Sequence[int],
    past: Cache | None = None,
) -> Tensor:
    """Log-probability (P, A), fp32, of the last A tokens of each row, by their labels; 0 for IGNORE; with gradients.

    Each end token has the log-probability of all of them. The other arguments as of `next_logits`.
    """
    real_PA = labels_PA != IGNORE
    logits_NV = label_logits(network, ids_PT, attention_PT, real_PA, past)
    logp_N = label_logp(logits_NV, labels_PA[real_PA], end_ids)
    return torch.zeros(labels_PA.shape, device=logp_N.device).masked_scatter(real_PA.to(logp_N.device), logp_N)


def label_logits(
    network: PreTrainedModel, ids_PT: Tensor, attention_PT: Tensor, real_PA: Tensor, past: Cache | None = None
) -> Tensor:
    """Logits (N, V) before each of the last A tokens that is real, row by row: the head sees no other position."""

    def only_labels(head: nn.Module, states: tuple[Tensor]) -> Tensor:
        return states[0][:, :-1][real_PA.to(states[0].device)][None]

    hook = network.get_output_embeddings().register_forward_pre_hook(only_labels)
    try:
        return next_logits(network, ids_PT, attention_PT, real_PA.shape[1] + 1, past)[0]
    finally:
        hook.remove()


def next_logits(
    network: PreTrainedModel, ids_PT: Tensor, attention_PT: Tensor, last: int, past: Cache | None = None
) -> Tensor:
    """Logits (P, last, V) of the tokens that follow the last positions of each row.

    Args:
        network: A causal LM.
        ids_PT: Token ids, padded on the left.
        attention_PT: Mask of the tokens, and before them of those that `past` holds.
        last: Number of positions.
        past: Key and value states of tokens before these; it gets those of these.
    """
    options: dict[str, Any] = {"use_cache": False, "logits_to_keep": last}
    if past is not None:
        options |= {"use_cache": True, "past_key_values": past}
    if "position_ids" in inspect.signature(network.forward).parameters:
        options["position_ids"] = positions_of(attention_PT)[:, -ids_PT.shape[1] :]
    logits: Tensor = network(input_ids=ids_PT, attention_mask=attention_PT, **options).logits
    return logits


def positions_of(attention_PT: Tensor) -> Tensor:
    """Position (P, T) of each token among the tokens of its row; 0 for padding."""
    return (attention_PT.cumsum(dim=1) - 1).clamp(min=0)


def context_of(config: PreTrainedConfig) -> int | None:
    """Most tokens of a prompt and its reply together, from a model's configuration; None if it names none."""
    return getattr(config.get_text_config(), "max_position_embeddings", None)


def check_room(network: PreTrainedModel, read: str, tokens: int) -> None:
    """Refuse to train a causal LM on more tokens, of a prompt and its reply, than it has positions.

    Args:
        network: The causal LM.
        read: The options whose tokens these are, with their values, for the message.
        tokens: Of the longest prompt and reply together.

    Raises:
        UserError: If it has fewer positions.
    """
    room = context_of(network.config)
    if room is not None and tokens > room:
        raise UserError(
            f"{read} exceed the {room} tokens that {network.name_or_path} reads and writes together: lower one."
        )


def end_ids_of(network: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """The tokens that end a reply: those of generation_config.json, else of config.json, else the tokenizer's.

    Raises:
        UserError: If there is none.
    """
    for ids in (network.generation_config.eos_token_id, network.config.eos_token_id, tokenizer.eos_token_id):
        if ids is not None:
            return [ids] if isinstance(ids, int) else list(ids)
    raise UserError(f"{network.name_or_path}: no reply would end: add eos_token_id to its generation_config.json.")


def line_break_ids(tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """The tokens that have a line break, in order."""
    written = ("\n", "\u010a", "<0x0A>")  # as vocabularies of pieces and of bytes spell it
    found = sorted(id_ for token, id_ in tokenizer.get_vocab().items() if any(each in token for each in written))
    return [id_ for id_ in found if "\n" in tokenizer.decode([id_])]


def is_causal(config: PreTrainedConfig) -> bool:
    """Whether a configuration is that of a causal LM."""
    generates = any(head in name for name in config.architectures or () for head in HEADS)
    return generates and not config.is_encoder_decoder


def check_causal(pretrained: str, config: PreTrainedConfig) -> None:
    """Raise UserError if a configuration is not that of a causal LM."""
    architectures = config.architectures or ["none"]
    if not is_causal(config):
        raise UserError(
            f"model {pretrained} is a {', '.join(architectures)}, not a causal LM: name one, such as "
            "Qwen/Qwen2.5-0.5B-Instruct."
        )
