"""Cross-encoders: score how relevant a passage is for a question (RE-RAG's estimator, Section 2.2; rerankers).

Three model families: a T5 that generates "true" or "false" (or two other words) in one decoder step, a causal LM that
says the word after the prompt, or an encoder-only model with a classification head, which is faster but has no L_tok.
Shape legend: P pairs, T tokens, V vocabulary, L labels.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, get_args

import torch
from torch import Tensor, nn
from transformers import AutoModelForSequenceClassification, PreTrainedModel

from common.errors import ArtifactError, MissingInputError, UserError
from common.progress import Progress
from common.ranges import Precision
from common.records import Passage
from common.sealed_json import check_fields
from models.bigbird.attention import freeze_pooler, fuse
from models.causal_lm import CausalLanguageModel, is_causal, next_logits
from models.causal_part import computing, load_adapted, load_causal, save_causal, use_of
from models.context_tokenizer import ContextEncoder, ContextFormat, text_format
from models.devices import autocast, compute_dtype, resolve_device
from models.encoders import dropout_rates, positions
from models.first_token import compute_first_token
from models.full_precision import keep_heads_in_fp32
from models.fused_kernels import fuse_kernels
from models.length_batching import length_batches
from models.loading import check_vocabulary, load_config, load_network, load_tokenizer, save_network
from models.lora import AdapterUse
from models.onnx_network import with_backend
from models.pair_export import log_odds_of, pair_tokenizer, save_one_score, with_max_tokens
from models.parallel_batches import each_batch
from models.pretrained import load_seq2seq, resolve
from models.prompt_tokenizer import PROMPT_FORMATS, QWEN3_RERANKER, PromptEncoder, PromptFormat, Task
from models.sdpa import train_fast_on_cpu
from models.serving_manifest import CURE, MANIFEST, FromServing, manifest_sha256, read_manifest
from models.text_formats import label_tokens
from models.token_count import CountsTokens

TRUE_FALSE = ("true", "false")  # the paper's words
KIND = "re_rag"  # of the serving folders that may hold one
ESTIMATOR = "estimator"  # the part that does
PART_FIELDS = {"text_format": str, "max_tokens": int}
FORMATS: dict[str, ContextFormat | PromptFormat] = {
    text_format(name): name for name in (*get_args(ContextFormat), *PROMPT_FORMATS)
}
MAX_TOKENS = 512  # of the input of one that no serving folder holds, or fewer if it has fewer positions
TOKENS_PER_BATCH = {"cpu": 2048, "cuda": 65536}


@dataclass
class Relevance:
    """Output of the estimator for P pairs."""

    score_P: Tensor  # relevance logit: log P(true word) - log P(false word), nats, fp32
    other_logit_P: Tensor | None  # logit of the probability of all other tokens, for L_tok; None without an LM head


class RelevanceEstimator(CountsTokens, FromServing, nn.Module):
    """Scores (question, context) pairs.

    Args:
        network: A T5-family model, a causal LM, or a sequence classifier with one or two labels.
        encode: Tokenizes (question, context) pairs; a `PromptEncoder` for a causal LM.
        label_words: The words of a T5 or a causal LM for a relevant and an irrelevant context, a single token each.
        adapter: The LoRA adapter that a causal LM computes with; the weights alone when None.

    Raises:
        UserError: If a word is several tokens.
    """

    network: PreTrainedModel
    adapter: AdapterUse | None
    inference_dtype: torch.dtype | None = None  # of `scores`; None: as the caller's autocast says

    def __init__(
        self,
        network: PreTrainedModel,
        encode: ContextEncoder,
        label_words: tuple[str, str] = TRUE_FALSE,
        adapter: AdapterUse | None = None,
    ) -> None:
        super().__init__()
        self.network, self.encode, self.label_words, self.adapter = network, encode, label_words, adapter
        keep_heads_in_fp32(network)
        self.causal = isinstance(encode, PromptEncoder)
        self.generative = self.causal or bool(network.config.is_encoder_decoder)
        if self.generative:
            ids_of = encode.replies if isinstance(encode, PromptEncoder) else None
            self.true_id, self.false_id = label_tokens(encode.tokenizer, *label_words, ids_of)
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
            fuse_kernels(network)
            compute_first_token(network)

    @classmethod
    def build(
        cls,
        pretrained: str,
        max_tokens: int = 256,
        text_format: ContextFormat | PromptFormat = "fid",
        dropout: float | None = None,
        gradient_checkpointing: bool = False,
        layers: int | None = None,
        label_words: tuple[str, str] = TRUE_FALSE,
    ) -> Self:
        """Load an estimator for training or serving.

        Args:
            pretrained: Folder or hub id: a T5-family model (also v1.1, Flan, mT5), a causal LM, or an encoder-only
                model such as MiniLM, BERT, ModernBERT, MPNet or DeBERTa, which gets a one-label head unless it has a
                classification head.
            max_tokens: Maximum length of a pair, in tokens.
            text_format: Input format of a T5; encoder-only models always use `sentence_pair`, causal LMs that of their
                tokenizer, or `qwen3_reranker`, see `models.prompt_tokenizer`.
            dropout: Rate of all dropout layers, not of a causal LM; the checkpoint's when None.
            gradient_checkpointing: Recompute activations in the backward pass.
            layers: Number of first layers to keep of an encoder-only model; all when None.
            label_words: As of the class; encoder-only models say nothing.

        Raises:
            MissingInputError: If the model is not on this machine.
            UserError: If the tokenizer, `layers`, a label word, the number of labels or max_tokens does not fit the
                model.
        """
        folder = str(resolve(pretrained))
        config = load_config(folder)
        options: dict[str, Any] = {"dtype": torch.float32}  # whatever it was saved in; autocast lowers the precision
        if layers is not None:
            if config.is_encoder_decoder or is_causal(config) or not 1 <= layers <= config.num_hidden_layers:
                raise UserError(
                    f"layers {layers} does not fit {pretrained}: it selects the first layers of an encoder-only model, "
                    f"here 1 to {config.num_hidden_layers}; a T5 or a causal LM is not supported."
                )
            options["num_hidden_layers"] = layers
            if kinds := getattr(config, "layer_types", None):  # ModernBERT's windows, layer by layer
                options["layer_types"] = kinds[:layers]
        if is_causal(config):
            return cls.of_lm(
                load_causal(pretrained, ESTIMATOR, dropout, gradient_checkpointing),
                max_tokens,
                label_words,
                text_format,
            )
        if config.is_encoder_decoder:
            network, tokenizer = load_seq2seq(pretrained, ESTIMATOR, dropout, gradient_checkpointing)
            encode = ContextEncoder(tokenizer, max_tokens, text_format)  # type: ignore[arg-type]  # no prompt's
        else:
            options |= dropout_rates(config, dropout)
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
            if max_tokens > (room := positions(network.config) or max_tokens):
                raise UserError(f"max_tokens {max_tokens} is beyond the {room} positions of {pretrained}: lower it.")
            tokenizer = load_tokenizer(folder)
            check_vocabulary(tokenizer, network, folder)
            encode = ContextEncoder(tokenizer, max_tokens, "sentence_pair")
            if gradient_checkpointing:
                network.activation_checkpointing_enable({"use_reentrant": False})
        return cls(network, encode, label_words)

    @classmethod
    def of_lm(
        cls,
        lm: CausalLanguageModel,
        max_tokens: int,
        label_words: tuple[str, str] = TRUE_FALSE,
        text_format: str = "relevance",
    ) -> Self:
        """A causal LM as estimator; it computes with the adapter of that name, if it has one."""
        task: Task = QWEN3_RERANKER if text_format == QWEN3_RERANKER else "relevance"
        encode = PromptEncoder(lm.tokenizer, max_tokens, task, lm.end_ids)
        return cls(lm.network, encode, label_words, use_of(lm.network, ESTIMATOR))

    def forward(self, ids_PT: Tensor, attention_PT: Tensor) -> Relevance:
        """Scores of P tokenized pairs; see `Relevance`."""
        if not self.generative:
            segments = {"token_type_ids": self._segments(ids_PT, attention_PT)} if self.segmented else {}
            logits_PL = self.network(input_ids=ids_PT, attention_mask=attention_PT, **segments).logits
            return Relevance(log_odds_of(logits_PL), None)
        if self.causal:
            with computing(self.adapter):
                logits_PV = next_logits(self.network, ids_PT, attention_PT, 1)[:, 0]
        else:
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
                progress.update(len(rows))
        return scores.tolist()

    def save(self, folder: Path) -> None:
        """Write config.json, model.safetensors and the tokenizer for transformers' Auto classes.

        Without a decoder also for CrossEncoder: there, the pair (question, "title. text") scores the relevance logit.
        """
        tokenizer, max_tokens = self.encode.tokenizer, self.encode.max_tokens
        if isinstance(self.encode, PromptEncoder):
            save_causal(self.network, self.encode, folder)
        elif self.generative:
            save_network(self.network, folder, with_max_tokens(tokenizer, max_tokens))
        else:
            save_one_score(self.network, folder)
            pair_tokenizer(tokenizer, max_tokens, self.segmented, separator_inside=False).save_pretrained(folder)


def load_scorer(name: str | Path, device: str = "auto", precision: Precision = "auto") -> RelevanceEstimator:
    """A scorer of (question, passage) pairs.

    Args:
        name: Serving folder with an estimator, or folder or hub id of a cross-encoder: a sequence classifier with one
            label, or two of which the second means relevant, such as BAAI/bge-reranker-base.
        device: auto, cpu, cuda or cuda:N.
        precision: auto (bf16 where the device has it in hardware), fp32 or bf16.

    Raises:
        UserError: If the device is not possible here, or the model is no cross-encoder.
        MissingInputError: If there is neither.
        ArtifactError: If a serving folder is corrupt, of another kind or text format, or has no estimator.
    """
    folder = _cross_encoder(name)
    where = resolve_device(device)
    dtype = compute_dtype(precision, where)
    if folder is None:
        serving = Path(name)
        parts = checked_parts(serving, read_manifest(serving, KIND, tuple(FORMATS), {"parts": dict}), (ESTIMATOR,))
        estimator = load_estimator(serving, parts[ESTIMATOR])
        estimator.serving_sha256 = manifest_sha256(serving)
    else:
        most = min(MAX_TOKENS, positions(load_config(folder)) or MAX_TOKENS)
        estimator = RelevanceEstimator.build(str(folder), most)
    estimator = estimator.eval().to(where)
    estimator.inference_dtype = dtype
    return estimator if folder or estimator.generative else with_backend(estimator, Path(name))


def load_estimator(serving: Path, part: Mapping[str, Any], lm: CausalLanguageModel | None = None) -> RelevanceEstimator:
    """The estimator of a serving folder.

    Args:
        serving: The serving folder.
        part: Its entry in the manifest's `parts`.
        lm: The base model with its adapter, where it has one; loaded when None.

    Raises:
        ArtifactError: If the text format is unknown, or the words it says are missing.
    """
    words = part.get("label_words", dict(zip(TRUE_FALSE, TRUE_FALSE, strict=True)))
    check_fields(f"{serving}: label_words", words, dict.fromkeys(TRUE_FALSE, str), CURE)
    said = (words["true"], words["false"])
    if base := part.get("base"):
        max_tokens, form = input_of(serving, part)
        return RelevanceEstimator.of_lm(lm or load_adapted(serving, base, [ESTIMATOR]), max_tokens, said, form)
    return RelevanceEstimator.build(str(serving / ESTIMATOR), *input_of(serving, part), label_words=said)


def checked_parts(serving: Path, manifest: Mapping[str, Any], needs: Sequence[str] = ()) -> dict[str, dict[str, Any]]:
    """The parts of a serving folder by name.

    Raises:
        ArtifactError: If an entry is malformed, or a part that is needed is missing.
    """
    parts: dict[str, dict[str, Any]] = manifest["parts"]
    check_fields(f"{serving}: parts", parts, {name: PART_FIELDS for name in parts}, CURE)
    for name in needs:
        if name not in parts:
            raise ArtifactError(f"{serving} holds no {name}, only {sorted(parts)}: give a folder that has one.")
    return parts


def input_of(serving: Path, part: Mapping[str, Any]) -> tuple[int, Any]:
    """Maximum length in tokens and text format of an exported part.

    Raises:
        ArtifactError: If the text format is unknown.
    """
    stored = part["text_format"]
    if stored not in FORMATS:
        raise ArtifactError(f"{serving} was made for the text format {stored!r}; allowed: {sorted(FORMATS)}.")
    return part["max_tokens"], FORMATS[stored]


def _cross_encoder(name: str | Path) -> Path | None:
    """The folder of a cross-encoder; None if the name is that of a serving folder."""
    folder = Path(name)
    if folder.is_dir() and ((folder / MANIFEST).exists() or not (folder / "config.json").exists()):
        return None
    try:
        folder = resolve(str(name))
    except MissingInputError as error:
        raise MissingInputError(
            f"{name} does not exist: no serving folder there, and no cross-encoder of that name on this machine. Train "
            "one with train.py, name another, or get a cross-encoder of the hub: hf download ID."
        ) from error
    config = load_config(folder)
    architecture = (config.architectures or ["model without a head"])[0]
    if config.is_encoder_decoder or not architecture.endswith("ForSequenceClassification") or config.num_labels > 2:
        labels = f" with {config.num_labels} labels" if architecture.endswith("Classification") else ""
        raise UserError(
            f"{name} is a {architecture}{labels}, not a cross-encoder: name a sequence classifier with 1 or 2 labels, "
            "such as BAAI/bge-reranker-base, or a serving folder with an estimator."
        )
    return folder
