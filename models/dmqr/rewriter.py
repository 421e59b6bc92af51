"""A generative query rewriter: a T5 or a causal LM, whole or with LoRA, one adapter for all strategies or each.

Also its serving folder.

serving/serving.json         kind "dmqr_rewriter", text format, strategies, base model of the adapters
serving/rewriter/            the model with the adapter merged in: loadable by transformers alone, and by vLLM if it is
                             a causal LM; with an adapter for each strategy the base model
serving/adapter/             the adapter by itself, in peft's files; only if it was trained with LoRA
serving/adapter/<strategy>/  each strategy's adapter, where each has one; the base model computes with it

Shape legend: P rewrites, T tokens, A tokens of a rewrite with its end.
"""

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from common.errors import UserError
from common.ranges import Precision
from common.sealed_json import check_fields
from models.causal_lm import HEADS, CausalLanguageModel, check_room
from models.devices import compute_dtype, resolve_device
from models.dmqr.rewrite_outputs import Strategy, queries_of
from models.dmqr.rewrite_tokenizer import FORMATS, RewriteEncoder, RewriteTask, format_of
from models.loading import load_config
from models.lora import ADAPTER as SHARED
from models.lora import AdapterSwitch, Lora, adapters_of, add_adapter, load_adapters, merged_weights, save_adapter
from models.pair_export import with_max_tokens
from models.pretrained import load_seq2seq, resolve
from models.seq2seq_lm import Seq2SeqLanguageModel
from models.serving_manifest import CURE, read_manifest, write_manifest

KIND = "dmqr_rewriter"
PART, ADAPTER = "rewriter", "adapter"
OWN = "strategies"  # key of a manifest's `adapter`: the strategies that have an adapter each
FIELDS = {"strategies": dict, "max_rewrite_tokens": int, "adapter": dict, "base": dict}
STRATEGY_FIELDS = {"title": str, "several": [True, False]}
MergedType = Literal["float32", "bfloat16"]


class RewriterModel(nn.Module):
    """Writes queries, and scores given ones.

    With an adapter for each strategy (`add_adapters`), rows of different strategies are computed one strategy after the
    other.

    Args:
        lm: The language model; see `build`.
        max_tokens: Maximum input length, in tokens.
        max_rewrite_tokens: Maximum length of a rewrite, end token included.
        strategies: Those that it is trained on, by name.
        no_repeat_ngram: Of an encoder-decoder: no rewrite has a sequence of so many tokens twice; 0 for no such limit.

    Raises:
        UserError: If input and rewrite together exceed what the model reads and writes, or a causal LM has
            no_repeat_ngram: its prompt, from which it copies, would count.
    """

    def __init__(
        self,
        lm: CausalLanguageModel | Seq2SeqLanguageModel,
        max_tokens: int,
        max_rewrite_tokens: int,
        strategies: Mapping[str, Strategy],
        no_repeat_ngram: int = 0,
    ) -> None:
        super().__init__()
        if isinstance(lm, CausalLanguageModel):
            read = f"max_tokens {max_tokens} and max_rewrite_tokens {max_rewrite_tokens}"
            check_room(lm.network, read, max_tokens + max_rewrite_tokens)
        self.lm, self.strategies, self.max_rewrite_tokens = lm, dict(strategies), max_rewrite_tokens
        if no_repeat_ngram and not isinstance(lm, Seq2SeqLanguageModel):
            raise UserError(
                f"no_repeat_ngram is for encoder-decoders such as T5, and {lm.network.name_or_path} is a causal LM: "
                "set it to 0."
            )
        self.no_repeat_ngram = no_repeat_ngram
        self.adapters: AdapterSwitch | None = None  # None without an adapter for each strategy
        self.format = format_of(lm.tokenizer, lm.network.config.is_encoder_decoder)
        self.encode = RewriteEncoder(lm.tokenizer, self.format, max_tokens, lm.end_ids)

    @classmethod
    def build(
        cls,
        pretrained: str,
        max_tokens: int,
        max_rewrite_tokens: int,
        strategies: Mapping[str, Strategy],
        dropout: float | None = None,
        gradient_checkpointing: bool = False,
        base_bits: int | None = None,
        no_repeat_ngram: int = 0,
    ) -> Self:
        """Load a model in fp32, or its linear layers in 4 or 8 bits, to train it or to serve it.

        Args:
            pretrained: Folder or hub id of a T5-family model or a causal LM.
            max_tokens: See the class.
            max_rewrite_tokens: See the class.
            strategies: See the class.
            dropout: Rate of all dropout layers of a T5; the checkpoint's when None.
            gradient_checkpointing: Recompute activations in the backward pass.
            base_bits: 4 or 8: bits of the linear layers' weights, which are then not trained; 32 when None.
            no_repeat_ngram: See the class.

        Raises:
            MissingInputError: If the model is not on this machine.
            UserError: If it generates no text, or an option does not fit it.
            ArtifactError: If weights are missing.
        """
        config = load_config(resolve(pretrained))
        if config.is_encoder_decoder:
            network, tokenizer = load_seq2seq(pretrained, "pretrained", dropout, gradient_checkpointing, base_bits)
            lm = Seq2SeqLanguageModel(network, tokenizer)
            return cls(lm, max_tokens, max_rewrite_tokens, strategies, no_repeat_ngram)
        if not any(head in name for name in config.architectures or () for head in HEADS):
            raise UserError(
                f"pretrained {pretrained} is a {config.model_type!r}, which generates no text: name a T5-family model "
                "or a causal LM, such as google/flan-t5-base or Qwen/Qwen2.5-0.5B-Instruct."
            )
        if dropout:
            raise UserError(
                f"dropout is for a T5, and {pretrained} is a {config.model_type!r}: omit it; see lora_dropout."
            )
        causal = CausalLanguageModel.build(pretrained, base_bits)
        if gradient_checkpointing:
            causal.network.activation_checkpointing_enable({"use_reentrant": False})
        return cls(causal, max_tokens, max_rewrite_tokens, strategies, no_repeat_ngram)

    @property
    def network(self) -> PreTrainedModel:
        """The network, with LoRA layers if there are any."""
        return self.lm.network

    def add_adapters(self, strategies: Sequence[str], base: str, lora: Lora) -> None:
        """Give each strategy an adapter of its own, all alike; arguments and errors as of `models.lora.add_adapter`."""
        for name in strategies:
            add_adapter(self.network, base, lora, name)
        self._choose_adapters()

    def load_adapters(self, folder: Path, strategies: Sequence[str]) -> None:
        """Put the adapters of a serving folder's `adapter/` into a base model.

        One, or one of each of these strategies.
        """
        load_adapters(self.network, {name: folder / name for name in strategies} or {SHARED: folder})
        if strategies:
            self._choose_adapters()

    def _choose_adapters(self) -> None:
        self.adapters = AdapterSwitch(self.network)
        if self.network.is_activation_checkpointing:
            contexts = self.adapters.checkpoint_contexts
            self.network.activation_checkpointing_enable({"use_reentrant": False, "context_fn": contexts})

    def task(self, question: str, strategy: str, history: Sequence[str] = ()) -> RewriteTask:
        """The task of the model, for `encode`."""
        return RewriteTask(question, self.strategies[strategy].title, tuple(history))

    def cut_note(self, question: str, history: Sequence[str] = ()) -> str:
        """The part of a question with its earlier turns that is read if it is too long; else empty."""
        notes = (self.encode.cut_note(self.task(question, name, history)) for name in self.strategies)
        return next(filter(None, notes), "")

    def forward(
        self, ids_PT: Tensor, attention_PT: Tensor, labels_PA: Tensor, strategies: Sequence[str] = ()
    ) -> Tensor:
        """Log-probability (P, A) of every token of rewrites, nats, fp32; 0 where there is none.

        Args:
            ids_PT: As the other tensors from `batch`.
            attention_PT: See there.
            labels_PA: See there.
            strategies: Of every row; used where each strategy has an adapter.
        """
        if self.adapters is None:
            return self.lm.labels_logp(ids_PT, attention_PT, labels_PA)
        parts, order = [], []
        for rows in self.adapters.groups(strategies):
            parts.append(self.lm.labels_logp(ids_PT[rows], attention_PT[rows], labels_PA[rows]))
            order += rows
        return torch.cat(parts)[torch.tensor(order, device=ids_PT.device).argsort()]

    def batch(self, inputs: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor, Tensor]:
        """Padded token ids, attention mask and labels of inputs with rewrites, from `encode` and `encode.targets`."""
        return self.lm.reply_batch(inputs, targets)

    def write(self, inputs: Sequence[Sequence[int]], strategies: Sequence[str] = ()) -> list[str]:
        """The greedy rewrite of every input from `encode`, in order; batched by length.

        `strategies` as in `forward`.
        """
        if self.adapters is None:
            return self._write(inputs)
        texts = [""] * len(inputs)
        for rows in self.adapters.groups(strategies):
            for row, text in zip(rows, self._write([inputs[row] for row in rows]), strict=True):
                texts[row] = text
        return texts

    def _write(self, inputs: Sequence[Sequence[int]]) -> list[str]:
        limits = [self.max_rewrite_tokens] * len(inputs)
        if isinstance(self.lm, Seq2SeqLanguageModel):
            written = self.lm.write(inputs, limits, no_repeat_ngram=self.no_repeat_ngram)
        else:
            written = self.lm.write(inputs, limits)
        return [self.encode.decoded(each.ids) for each in written]

    def rewrite(
        self, questions: Sequence[tuple[str, Sequence[str]]], strategies: Sequence[str]
    ) -> list[dict[str, str]]:
        """The greedy rewrite of every question by every strategy, in order; batched over both.

        Args:
            questions: Each with the turns of the dialogue before it, oldest first.
            strategies: Names.

        Returns:
            For each question strategy -> rewrite.
        """
        names = [name for _ in questions for name in strategies]
        inputs = self.encode([self.task(text, name, history) for text, history in questions for name in strategies])
        texts = iter(self.write(inputs, names))
        return [{name: next(texts) for name in strategies} for _ in questions]

    def queries(self, text: str, strategy: str) -> tuple[str, ...]:
        """The distinct queries in a rewrite; none if it is empty."""
        return queries_of(text, self.strategies[strategy].several)

    def save(
        self,
        folder: Path,
        strategies: Sequence[str],
        base: Mapping[str, Any],
        merged: MergedType = "float32",
        **facts: Any,
    ) -> None:
        """Write model, adapter and manifest into an empty folder.

        Args:
            folder: The folder.
            strategies: Names of those that it was trained on.
            base: Name and sha256 of the files of the model that the adapters belong to, from `base_model`.
            merged: Data type of the merged weights, to which the update is added in fp32, or of the base model's
                weights.
            facts: Validation metrics, versions, commit, data digests; JSON types only.
        """
        options: dict[str, Any] = {}
        adapter: dict[str, Any] = {}
        if names := adapters_of(self.network):
            own = self.adapters is not None
            for name in names:
                save_adapter(self.network, folder / ADAPTER / (name if own else ""), name)
            config = self.network.peft_config[names[0]]
            adapter = {"rank": config.r, "alpha": config.lora_alpha, "targets": sorted(config.target_modules)}
            adapter |= {OWN: names} if own else {}
            options["state_dict"] = merged_weights(self.network, None if own else SHARED)
        if merged != "float32":
            weights = options.get("state_dict") or self.network.state_dict()
            options["state_dict"] = _cast(weights, getattr(torch, merged))
        self.lm.save(folder / PART, **options)
        if merged != "float32":  # after saving: `architectures` and `dtype` are set there
            config = copy.deepcopy(self.network.config)
            config.dtype = merged
            config.save_pretrained(folder / PART)
        if self.format == "seq2seq":
            with_max_tokens(self.lm.tokenizer, self.encode.max_tokens).save_pretrained(folder / PART)
        write_manifest(
            folder, KIND, self.encode.text_format, self.encode.max_tokens,
            strategies={
                name: {"title": self.strategies[name].title, "several": self.strategies[name].several}
                for name in strategies
            },
            max_rewrite_tokens=self.max_rewrite_tokens, no_repeat_ngram=self.no_repeat_ngram, adapter=adapter,
            base=dict(base), merged=merged, **facts,
        )  # fmt: skip

    @classmethod
    def load(cls, serving: Path, device: str = "auto", precision: Precision = "auto") -> Self:
        """Load the model of a serving folder, in evaluation mode; the files' checksums are verified.

        Args:
            serving: Folder that training exported, e.g. checkpoints/dmqr-rrr-hotpot/serving.
            device: auto, cpu, cuda or cuda:N.
            precision: auto, fp32 or bf16; see `models.devices.compute_dtype`.

        Raises:
            UserError: If the device is not possible here, or the precision is unknown.
            MissingInputError: If the folder does not exist.
            ArtifactError: If it is corrupt, of another kind or text format.
        """
        where = resolve_device(device)
        dtype = compute_dtype(precision, where)
        manifest = read_rewriter_manifest(serving)
        rewriter = cls.build(
            str(serving / PART), manifest["max_tokens"], manifest["max_rewrite_tokens"], strategies_of(manifest),
            no_repeat_ngram=manifest.get("no_repeat_ngram", 0),
        )  # fmt: skip
        rewriter.lm.inference_dtype = dtype
        if names := own_adapters(manifest):
            rewriter.load_adapters(serving / ADAPTER, names)
        return rewriter.eval().to(where)


def own_adapters(manifest: Mapping[str, Any]) -> list[str]:
    """The strategies that have an adapter each, from a manifest; none if they share one, or nothing was added."""
    return list(manifest["adapter"].get(OWN, ()))


def _cast(weights: Mapping[str, Tensor], dtype: torch.dtype) -> dict[str, Tensor]:
    """Weights in another data type; tied weights, which are one tensor under two names, stay tied."""
    cast = {value.data_ptr(): value.to(dtype) for value in weights.values()}
    return {name: cast[value.data_ptr()] for name, value in weights.items()}


def read_rewriter_manifest(serving: Path, check_files: bool = True) -> dict[str, Any]:
    """The manifest of a rewriter's serving folder.

    Raises:
        MissingInputError: If the folder does not exist.
        ArtifactError: If it is corrupt, of another kind or text format.
    """
    manifest = read_manifest(Path(serving), KIND, tuple(FORMATS), FIELDS, check_files)
    fields = dict.fromkeys(manifest["strategies"], STRATEGY_FIELDS)
    check_fields(f"{serving}: strategies", manifest["strategies"], fields, CURE)
    return manifest


def strategies_of(manifest: Mapping[str, Any]) -> dict[str, Strategy]:
    """The strategies of a manifest, with what a trained model needs of them."""
    return {
        name: Strategy(name, each["title"], "", "", each["several"]) for name, each in manifest["strategies"].items()
    }
