"""DR-RAG's classifier C(q, d1, d2): whether two documents together answer a question (Section 2.2.2, Eq. 2).

Shape legend: P triples, T tokens.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Self, get_args

import numpy as np
import torch
from torch import Tensor, nn
from transformers import (
    AutoModel,
    AutoModelForSequenceClassification,
    BigBirdForSequenceClassification,
    PretrainedConfig,
    PreTrainedModel,
)

from common.errors import UserError
from common.progress import Progress, say
from common.ranges import Precision
from common.records import Passage
from models.bigbird.attention import AttentionKind, freeze_pooler, fuse, resolve_kind, sparse_minimum_tokens, sparsify
from models.bigbird.conversion import convertible, to_bigbird
from models.devices import autocast, compute_dtype, resolve_device
from models.drrag.triple_tokenizer import TEXT_FORMAT, Padding, TripleEncoder
from models.encoders import check_encoder, dropout_rates, positions
from models.first_token import center_first_token, compute_first_token
from models.full_precision import keep_heads_in_fp32
from models.fused_kernels import fuse_kernels
from models.length_batching import length_batches
from models.loading import check_vocabulary, load_config, load_network, load_tokenizer
from models.lora import Lora, add_adapter
from models.onnx_network import with_backend
from models.pair_export import log_odds_of, pad_always_to, pair_tokenizer, save_one_score, widen
from models.parallel_batches import each_batch
from models.pretrained import resolve
from models.sdpa import train_fast_on_cpu
from models.serving_manifest import FromServing, manifest_sha256, read_manifest
from models.token_count import CountsTokens

KIND = "triple_classifier"
PART = "classifier"
FIELDS = {"attention": list(get_args(AttentionKind)), "threshold": float}  # of the manifest
LABELS = {0: "negative", 1: "positive"}
_NUMPY_STATE = threading.Lock()
TOKENS_PER_BATCH = {"cpu": 2048, "cuda": 65_536}  # 2,048 fits CPU caches: 25-33% faster than 8,192; GPUs need more


class TripleClassifier(CountsTokens, FromServing, nn.Module):
    """Scores (question, document, document) triples.  Create it with `build` (training) or `load` (serving).

    Args:
        network: A sequence classifier of two labels (training, earlier exports) or one (exports); see `log_odds_of`.
        encode: Turns triples into token ids.
        attention: BigBird's attention kind, see `build`; ignored for other models.
    """

    network: PreTrainedModel
    threshold = 0.5
    new_head = False  # whether the head starts from random weights
    inference_dtype: torch.dtype | None = None  # of `log_odds`; None: as the caller's autocast says

    def __init__(self, network: PreTrainedModel, encode: TripleEncoder, attention: AttentionKind = "auto") -> None:
        super().__init__()
        self.network, self.encode = network, encode
        keep_heads_in_fp32(network)
        fuse_kernels(network)
        self.sparse = False
        if network.config.model_type == "big_bird":
            kind = resolve_kind(attention, encode.max_tokens)
            self.sparse = kind == "block_sparse"
            if kind == "fused":
                fuse(network.bert)
                compute_first_token(network)
            elif self.sparse:
                sparsify(network.bert)
            freeze_pooler(network.bert)
        else:
            train_fast_on_cpu(network)

    @classmethod
    def build(
        cls,
        pretrained: str,
        max_tokens: int = 512,
        attention: AttentionKind = "auto",
        layers: int | None = None,
        dropout: float | None = None,
    ) -> Self:
        """A classifier to train.

        Args:
            pretrained: Folder or hub id: BigBird, another encoder such as Longformer, ModernBERT, MPNet or DeBERTa, or
                a BERT/RoBERTa-family checkpoint, which is converted to BigBird.
            max_tokens: Maximum length of a triple, in tokens.
            attention: For BigBird: `fused` (full attention in one kernel), `full` (the same, eager), `block_sparse`, or
                `auto`: fused up to 1,024 tokens and block-sparse above.
            layers: Number of first layers to keep of a BERT/RoBERTa checkpoint; all when None.
            dropout: Rate for hidden states and attention; the checkpoint's when None.

        Raises:
            MissingInputError: If the model is not on this machine.
            UserError: If it is no encoder, or max_tokens exceeds its positions.
        """
        folder = str(resolve(pretrained))
        config = load_config(folder)
        encode = TripleEncoder(load_tokenizer(folder), max_tokens)
        labels = {"num_labels": 2, "id2label": LABELS, "label2id": {name: i for i, name in LABELS.items()}}
        check_encoder(AutoModelForSequenceClassification, pretrained, config)
        pair_tokenizer(
            encode.tokenizer, max_tokens, token_types=False, separator_inside=True
        )  # refuse it now, not at export
        if convertible(config):
            body = load_network(AutoModel, folder, dtype=torch.float32)
            body = to_bigbird(body, positions_for(max_tokens, attention), layers)
            for key, value in {**labels, **dropout_rates(body.config, dropout)}.items():
                setattr(body.config, key, value)
            body.config.attention_type = _attention_type(attention, max_tokens)
            network = BigBirdForSequenceClassification(body.config)
            network.bert.load_state_dict(body.state_dict())
            say(f"{folder}: converted to BigBird, with a new head, from random weights.")
        elif layers is not None:
            raise UserError(
                f"layers is for BERT/RoBERTa checkpoints; {pretrained} is a {config.model_type}: remove the option."
            )
        else:
            options = {**attention_options(folder, attention, max_tokens), **dropout_rates(config, dropout)}
            network = _with_two_labels(folder, config, **labels, **options)
        check_vocabulary(encode.tokenizer, network, folder)
        classifier = cls(network, encode, attention)
        classifier.new_head = not (config.architectures or [""])[0].endswith("ForSequenceClassification")
        room = positions(network.config)
        if room is not None and (needed := classifier.padded_length(max_tokens)) > room:
            padded = "" if needed == max_tokens else f" (padded to {needed})"
            raise UserError(
                f"max_tokens {max_tokens}{padded} is beyond the {room} positions of {pretrained}: lower it."
            )
        return classifier

    @classmethod
    def load(
        cls, serving: Path, device: str = "auto", attention: AttentionKind | None = None, precision: Precision = "auto"
    ) -> Self:
        """Load the classifier of a serving folder, in evaluation mode; the files' checksums are verified.

        Args:
            serving: Folder that training exported, e.g. checkpoints/drrag-hotpotqa/serving.
            device: auto, cpu, cuda or cuda:N.
            attention: As in `build`; the kind used in training when None.
            precision: Of `log_odds` and `probabilities`: auto, fp32 or bf16; see `models.devices.compute_dtype`.

        Raises:
            MissingInputError: If the folder does not exist.
            UserError: If the device is not possible here, or the precision is unknown.
            ArtifactError: If it is corrupt or was made for another text format.
        """
        where = resolve_device(device)
        dtype = compute_dtype(precision, where)
        manifest = read_classifier_manifest(Path(serving))
        kind = attention or manifest["attention"]
        folder = str(Path(serving) / PART)
        options: dict[str, Any] = {"dtype": torch.float32}  # whatever it was saved in
        options |= attention_options(folder, kind, manifest["max_tokens"])
        network = load_network(AutoModelForSequenceClassification, folder, **options)
        classifier = cls(network, TripleEncoder(folder, manifest["max_tokens"]), kind)
        classifier.threshold, classifier.inference_dtype = manifest["threshold"], dtype
        classifier.serving_sha256 = manifest_sha256(serving)
        return with_backend(classifier.to(where).eval(), Path(serving))

    def save(self, folder: Path) -> None:
        """Write network and tokenizer to `folder/classifier` for transformers' Auto classes and CrossEncoder.

        There, the pair (question, "title. text [SEP] title. text") scores the log-odds, in one label.
        """
        encode = self.encode
        save_one_score(self.network, folder / PART)
        pair_tokenizer(encode.tokenizer, encode.max_tokens, token_types=False, separator_inside=True).save_pretrained(
            folder / PART
        )
        if self.sparse:
            pad_always_to(folder / PART, self.padded_length(encode.max_tokens))

    def center(self, ids_PT: Tensor, attention_PT: Tensor) -> None:
        """Center what the head reads on some triples; see `center_first_token`."""
        with _preserved_numpy_state() if self.sparse else nullcontext():
            center_first_token(self.network, ids_PT, attention_PT)

    def add_adapter(self, base: str, lora: Lora) -> None:
        """Put a LoRA adapter into the body; it and the head are trained, all other weights are frozen.

        Args and errors as of `models.lora.add_adapter`.
        """
        add_adapter(self.network.base_model, base, lora)
        for name, parameter in self.network.base_model.named_parameters():
            if "pooler" in name.split("."):  # the head does not use it
                parameter.requires_grad_(False)

    @property
    def padding(self) -> Padding:
        """How batches are padded."""
        if not self.sparse:
            return Padding()
        config = self.network.config
        return Padding(config.block_size, sparse_minimum_tokens(config.block_size, config.num_random_blocks))

    def padded_length(self, tokens: int) -> int:
        """Length to which a batch is padded whose longest row has `tokens` tokens; see `Padding`."""
        return self.padding.length(tokens)

    def pad(self, sequences: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """Right-padded token ids and attention mask of a batch, both (P, T) int64."""
        return self.padding.pad(self.encode, sequences)

    def forward(self, ids_PT: Tensor, attention_PT: Tensor) -> Tensor:
        """Log-odds of "positive", (P,), nats, fp32."""
        with _preserved_numpy_state() if self.sparse else nullcontext():
            logits_PL = self.network(input_ids=ids_PT, attention_mask=attention_PT).logits
        return log_odds_of(logits_PL)

    def log_odds(
        self, triples: Sequence[tuple[str, Passage, Passage]], tokens_per_batch: int | None = None
    ) -> Iterator[tuple[list[int], list[float]]]:
        """Score triples, longest first, in batches of at most `tokens_per_batch` padded tokens.

        Without it the device decides.

        Yields:
            Per batch: positions in `triples` and their log-odds (nats), so that callers can report and save progress.
        """
        device = self.network.device
        tokens_per_batch = tokens_per_batch or TOKENS_PER_BATCH[device.type]
        self.encode.remember_triples(triples)
        sequences = [self.encode(*triple) for triple in triples]
        self.tokens_read += sum(map(len, sequences))

        @torch.inference_mode()
        def score(rows: list[int]) -> list[float]:
            ids_PT, attention_PT = self.pad([sequences[row] for row in rows])
            with autocast(device, self.inference_dtype):
                scores_P = self(ids_PT.to(device, non_blocking=True), attention_PT.to(device, non_blocking=True))
            return scores_P.tolist()

        batches = length_batches([self.padded_length(len(s)) for s in sequences], tokens_per_batch)
        yield from each_batch(score, batches, device)

    def probabilities(
        self, triples: Sequence[tuple[str, Passage, Passage]], tokens_per_batch: int | None = None
    ) -> list[float]:
        """P(positive | q, d1, d2) of every triple, in order, with a progress line.  Not symmetric in d1 and d2."""
        scores = np.empty(len(triples))
        with Progress("pairs", len(triples)) as progress:
            for rows, batch in self.log_odds(triples, tokens_per_batch):
                scores[rows] = batch
                progress.update(len(rows))
        return (1 / (1 + np.exp(-scores))).tolist()


def read_classifier_manifest(serving: Path, check_files: bool = True) -> dict[str, Any]:
    """The manifest of a classifier.  Raises as `read_manifest`."""
    return read_manifest(serving, KIND, TEXT_FORMAT, FIELDS, check_files)


def positions_for(max_tokens: int, attention: AttentionKind) -> int:
    """Number of positions that a converted model needs: block-sparse batches are padded beyond max_tokens."""
    if resolve_kind(attention, max_tokens) != "block_sparse":
        return max_tokens
    return max(max_tokens, sparse_minimum_tokens(64, 3)) + 3 * 64


def attention_options(folder: str | Path, kind: AttentionKind, max_tokens: int) -> dict[str, str]:
    """Options of transformers' configuration for the attention kind of an exported classifier; none but for BigBird."""
    is_big_bird = load_config(folder).model_type == "big_bird"
    return {"attention_type": _attention_type(kind, max_tokens)} if is_big_bird else {}


def _attention_type(kind: AttentionKind, max_tokens: int) -> str:
    return "block_sparse" if resolve_kind(kind, max_tokens) == "block_sparse" else "original_full"


def _with_two_labels(folder: str, config: PretrainedConfig, **options: Any) -> PreTrainedModel:
    """Load a sequence classifier with two labels: an exported head of one label is widened, another one starts anew."""
    options["dtype"] = torch.float32  # whatever it was saved in; autocast lowers the precision
    exported = config.num_labels == 1 and (config.architectures or [""])[0].endswith("ForSequenceClassification")
    if not exported:
        return load_network(AutoModelForSequenceClassification, folder, new_head=True, **options)
    labels = {name: options.pop(name) for name in ("num_labels", "id2label", "label2id")}
    network = load_network(AutoModelForSequenceClassification, folder, **options)
    widen(network)
    network.config.id2label, network.config.label2id = labels["id2label"], labels["label2id"]
    return network


@contextmanager
def _preserved_numpy_state() -> Iterator[None]:
    """Restore NumPy's global random state on exit: BigBird's block-sparse forward reseeds it with a constant.

    One thread at a time: another one would take the reseeded state for the caller's.
    """
    with _NUMPY_STATE:
        state: dict[str, Any] = np.random.get_state(legacy=False)
        try:
            yield
        finally:
            np.random.set_state(state)
