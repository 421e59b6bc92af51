"""DR-RAG's classifier C(q, d1, d2): whether two documents together answer a question (Section 2.2.2, Eq. 2).

Shape legend: P triples, T tokens.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BigBirdForSequenceClassification,
    PreTrainedModel,
)

from common.errors import UserError
from common.records import Passage
from models.bigbird.attention import AttentionKind, fuse, resolve_kind, sparse_minimum_tokens
from models.bigbird.conversion import convertible, to_bigbird
from models.devices import resolve_device
from models.drrag.triple_tokenizer import TEXT_FORMAT, TripleEncoder
from models.length_batching import length_batches
from models.pretrained import resolve
from models.serving_manifest import read_manifest

KIND = "triple_classifier"
PART = "classifier"
LABELS = {0: "negative", 1: "positive"}
TOKENS_PER_BATCH = {"cpu": 2048}  # fits CPU caches: 25-33% faster than 8,192; GPUs need more


class TripleClassifier(nn.Module):
    """Scores (question, document, document) triples.  Create it with `build` (training) or `load` (serving).

    Args:
        network: A two-label sequence classifier.
        encode: Turns triples into token ids.
        attention: BigBird's attention kind, see `build`; ignored for other models.
    """

    network: PreTrainedModel
    threshold = 0.5

    def __init__(self, network: PreTrainedModel, encode: TripleEncoder, attention: AttentionKind = "auto") -> None:
        super().__init__()
        self.network, self.encode = network, encode
        self.pad_to: int | None = None
        self.sparse = False
        if network.config.model_type == "big_bird":
            kind = resolve_kind(attention, encode.max_tokens)
            self.sparse = kind == "block_sparse"
            if kind == "fused":
                fuse(network.bert)
            if self.sparse:
                # The last block is global: scores depend on padding unless it is all padding, hence one fixed length.
                block = network.config.block_size
                minimum = sparse_minimum_tokens(block, network.config.num_random_blocks)
                self.pad_to = -(-max(encode.max_tokens + 1, minimum) // block) * block + block
            for unused in network.bert.pooler.parameters():
                unused.requires_grad_(False)  # DDP fails on parameters without gradient

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
            pretrained: Folder or hub id: BigBird, Longformer, or a BERT/RoBERTa-family checkpoint, which is converted
                to BigBird.
            max_tokens: Maximum length of a triple, in tokens.
            attention: For BigBird: `fused` (full attention in one kernel), `full` (the same, eager), `block_sparse`, or
                `auto`: fused up to 1,024 tokens and block-sparse above.
            layers: Number of first layers to keep of a BERT/RoBERTa checkpoint; all when None.
            dropout: Rate for hidden states and attention; the checkpoint's when None.

        Raises:
            MissingInputError: If the model is not on this machine.
            UserError: If the model family is not supported, or max_tokens exceeds its positions.
        """
        folder = str(resolve(pretrained))
        config = AutoConfig.from_pretrained(folder)
        encode = TripleEncoder(AutoTokenizer.from_pretrained(folder), max_tokens)
        labels = {"num_labels": 2, "id2label": LABELS, "label2id": {name: i for i, name in LABELS.items()}}
        rates = ("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout")
        dropouts = {} if dropout is None else dict.fromkeys(rates, dropout)
        if convertible(config):
            body = to_bigbird(AutoModel.from_pretrained(folder), positions_for(max_tokens, attention), layers)
            for key, value in {**labels, **dropouts}.items():
                setattr(body.config, key, value)
            body.config.attention_type = _attention_type(attention, max_tokens)
            network = BigBirdForSequenceClassification(body.config)
            network.bert.load_state_dict(body.state_dict())
        elif layers is not None:
            raise UserError(
                f"layers is for BERT/RoBERTa checkpoints; {pretrained} is a {config.model_type}: remove the option."
            )
        elif config.model_type == "big_bird":
            network = AutoModelForSequenceClassification.from_pretrained(
                folder, attention_type=_attention_type(attention, max_tokens), **labels, **dropouts
            )
        elif config.model_type == "longformer":
            network = AutoModelForSequenceClassification.from_pretrained(folder, **labels, **dropouts)
        else:
            raise UserError(
                f"{pretrained} is a {config.model_type!r}; allowed: big_bird, longformer, bert, roberta, xlm-roberta, camembert."
            )
        room = network.config.max_position_embeddings - (2 if config.model_type == "longformer" else 0)
        if max_tokens > room:
            raise UserError(f"max_tokens {max_tokens} is beyond the {room} positions of {pretrained}: lower it.")
        return cls(network, encode, attention)

    @classmethod
    def load(cls, serving: Path, device: str = "auto", attention: AttentionKind | None = None) -> Self:
        """Load the classifier of a serving folder, in evaluation mode; the files' checksums are verified.

        Args:
            serving: Folder that training exported, e.g. checkpoints/drrag-hotpotqa/serving.
            device: auto, cpu, cuda or cuda:N.
            attention: As in `build`; the kind used in training when None.

        Raises:
            MissingInputError: If the folder does not exist.
            ArtifactError: If it is corrupt or was made for another text format.
        """
        manifest = read_manifest(Path(serving), KIND, TEXT_FORMAT)
        kind = attention or manifest["attention"]
        folder = str(Path(serving) / PART)
        config = AutoConfig.from_pretrained(folder)
        extra = {}
        if config.model_type == "big_bird":
            extra["attention_type"] = _attention_type(kind, manifest["max_tokens"])
        network = AutoModelForSequenceClassification.from_pretrained(folder, **extra)
        classifier = cls(network, TripleEncoder(folder, manifest["max_tokens"]), kind)
        classifier.threshold = manifest["threshold"]
        return classifier.to(resolve_device(device)).eval()

    def save(self, folder: Path) -> None:
        """Write the network and its tokenizer to `folder/classifier`, loadable by transformers' Auto classes alone."""
        self.network.save_pretrained(folder / PART)
        self.encode.tokenizer.save_pretrained(folder / PART)

    def forward(self, ids_PT: Tensor, attention_PT: Tensor) -> Tensor:
        """Log-odds of "positive", (P,), nats, fp32: logit of label 1 minus logit of label 0."""
        with _preserved_numpy_state() if self.sparse else nullcontext():
            logits_P2 = self.network(input_ids=ids_PT, attention_mask=attention_PT).logits.float()
        return logits_P2[:, 1] - logits_P2[:, 0]

    @torch.inference_mode()
    def log_odds(
        self, triples: Sequence[tuple[str, Passage, Passage]], tokens_per_batch: int | None = None
    ) -> Iterator[tuple[list[int], list[float]]]:
        """Score triples, longest first, in batches of at most `tokens_per_batch` padded tokens (by device when None).

        Yields:
            Per batch: positions in `triples` and their log-odds (nats), so that callers can report and save progress.
        """
        device = next(self.parameters()).device
        tokens_per_batch = tokens_per_batch or TOKENS_PER_BATCH.get(device.type, 65_536)
        self.encode.remember_triples(triples)
        sequences = [self.encode(*triple) for triple in triples]
        for rows in length_batches([len(s) for s in sequences], tokens_per_batch, self.pad_to):
            ids_PT, attention_PT = self.encode.pad([sequences[row] for row in rows], self.pad_to)
            with torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type == "cuda"):
                scores_P = self(ids_PT.to(device, non_blocking=True), attention_PT.to(device, non_blocking=True))
            yield rows, scores_P.tolist()

    def probabilities(
        self, triples: Sequence[tuple[str, Passage, Passage]], tokens_per_batch: int | None = None
    ) -> list[float]:
        """P(positive | q, d1, d2) of every triple, in order.  Not symmetric in d1 and d2."""
        scores = np.empty(len(triples))
        for rows, batch in self.log_odds(triples, tokens_per_batch):
            scores[rows] = batch
        return (1 / (1 + np.exp(-scores))).tolist()


def positions_for(max_tokens: int, attention: AttentionKind) -> int:
    """Number of positions that a converted model needs: block-sparse batches are padded beyond max_tokens."""
    if resolve_kind(attention, max_tokens) != "block_sparse":
        return max_tokens
    return max(max_tokens, sparse_minimum_tokens(64, 3)) + 3 * 64


def _attention_type(kind: AttentionKind, max_tokens: int) -> str:
    return "block_sparse" if resolve_kind(kind, max_tokens) == "block_sparse" else "original_full"


@contextmanager
def _preserved_numpy_state() -> Iterator[None]:
    """Restore NumPy's global random state on exit: BigBird's block-sparse forward reseeds it with a constant."""
    state: dict[str, Any] = np.random.get_state(legacy=False)
    try:
        yield
    finally:
        np.random.set_state(state)
