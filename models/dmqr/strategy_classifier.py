"""The network of the adaptive choice (not in the paper, which asks an LLM).

Predicts for a question which rewriting strategies will add relevant passages. An encoder with one logit per system: a
sequence classifier of transformers whose labels are separate decisions.

Its input is `[CLS] turns question [SEP]`: the earlier turns of a dialogue, oldest first, if there are any. Their oldest
tokens are left out where they do not fit; a question that is too long by itself keeps its first tokens.

Shape legend: P questions, T tokens, S strategies.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn
from transformers import AutoModelForSequenceClassification, PreTrainedModel, PreTrainedTokenizerBase

from common.errors import ArtifactError, UserError
from common.ranges import Precision
from common.records import nfkc
from models.devices import autocast, compute_dtype, resolve_device
from models.encoders import is_trained, new_classifier
from models.full_precision import keep_heads_in_fp32
from models.length_batching import length_batches, pad
from models.loading import load_network, load_tokenizer, save_network
from models.long_questions import HISTORY_NOTE, question_note, surely_fits
from models.pair_export import with_max_tokens
from models.parallel_batches import each_batch
from models.sdpa import train_fast_on_cpu
from models.serving_manifest import CURE, read_manifest
from models.text_formats import neutralize
from models.token_count import CountsTokens

KIND = "dmqr_strategy_choice"
TEXT_FORMAT = "cls turns question sep; nfkc, single blanks; v1"
PART = "choice"
TOKENS_PER_BATCH = {"cpu": 2048, "cuda": 65_536}
_SPECIAL_TOKENS = 2


class QuestionEncoder:
    """Tokenizes questions with their earlier turns.

    Args:
        tokenizer: A fast tokenizer: it tells where in the text each token is.
        max_tokens: Maximum length, in tokens, special tokens included.

    Raises:
        UserError: If the tokenizer is not a fast one or lacks a class, separator or padding token.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, max_tokens: int) -> None:
        if not tokenizer.is_fast or None in (tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.pad_token_id):
            raise UserError(
                f"the tokenizer {tokenizer.name_or_path} must be a fast one (tokenizer.json) with a class, a separator "
                "and a padding token."
            )
        self.tokenizer, self.max_tokens = tokenizer, max_tokens
        self._specials = sorted(set(tokenizer.all_special_tokens), key=len, reverse=True)

    def __call__(self, asked: Sequence[tuple[str, Sequence[str]]]) -> list[list[int]]:
        """Token ids of every (question, earlier turns), in order."""
        cls, sep = self.tokenizer.cls_token_id, self.tokenizer.sep_token_id
        return [
            [cls, *(ids[-self._room :] if own <= self._room else ids[len(ids) - own :][: self._room]), sep]
            for ids, own in self._tokens(asked)
        ]

    def cut_note(self, question: str, history: Sequence[str] = ()) -> str:
        """The part of a question with its earlier turns that is read if it is too long; else empty."""
        if surely_fits(" ".join(map(self._text, (*history, question))), self._room):
            return ""
        ((ids, own),) = self._tokens([(question, history)])
        if own > self._room:
            return question_note(self._room, own)
        return HISTORY_NOTE if len(ids) > self._room else ""

    @property
    def _room(self) -> int:
        return self.max_tokens - _SPECIAL_TOKENS

    def _tokens(self, asked: Sequence[tuple[str, Sequence[str]]]) -> list[tuple[list[int], int]]:
        """Token ids of every (question, earlier turns), and how many at the end are the question's."""
        if not asked:
            return []
        turns = [" ".join(filter(None, map(self._text, history))) for _, history in asked]
        texts = [f"{before} {self._text(question)}".strip() for before, (question, _) in zip(turns, asked, strict=True)]
        parts = self.tokenizer(texts, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        rows = zip(turns, parts["input_ids"], parts["offset_mapping"], strict=True)
        return [(ids, sum(end > len(before) for _, end in spans)) for before, ids, spans in rows]

    def pad(self, sequences: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """Right-padded token ids and attention mask, both (P, T) int64."""
        return pad(sequences, self.tokenizer.pad_token_id, self.max_tokens)

    def _text(self, text: str) -> str:
        return neutralize(nfkc(text), self._specials)


class StrategyClassifier(CountsTokens, nn.Module):
    """Log-odds that a question's rewrite by each strategy adds relevant passages.

    Create it with `build` (training) or `load` (serving).

    Args:
        network: A sequence classifier with one label per strategy, each of which is a decision by itself (sigmoid, not
            softmax).
        encode: Turns questions into token ids.
        strategies: Names of the labels.
    """

    network: PreTrainedModel
    threshold = 0.5  # a strategy is chosen from this probability on
    inference_dtype: torch.dtype | None = None  # of `probabilities`; None: as the caller's autocast says

    def __init__(self, network: PreTrainedModel, encode: QuestionEncoder, strategies: Sequence[str]) -> None:
        super().__init__()
        self.network, self.encode, self.strategies = network, encode, tuple(strategies)
        keep_heads_in_fp32(network)
        train_fast_on_cpu(network)

    @classmethod
    def build(
        cls, pretrained: str, strategies: Sequence[str], max_tokens: int = 256, dropout: float | None = None
    ) -> Self:
        """A model to train.

        Args:
            pretrained: Folder or hub id of an encoder such as MiniLM or a BERT, whose head starts anew, or of a
                classifier of these strategies.
            strategies: Names of the strategies, each once.
            max_tokens: Maximum length of a question, in tokens.
            dropout: Rate for hidden states and attention; the checkpoint's when None.

        Raises:
            MissingInputError: If the model is not on this machine.
            UserError: If it is no encoder, or one of other strategies, or max_tokens exceeds its positions.
        """
        labels = dict(enumerate(strategies))
        network, tokenizer = new_classifier(
            AutoModelForSequenceClassification, pretrained, labels, max_tokens, dropout,
            problem_type="multi_label_classification",
        )  # fmt: skip
        is_trained(pretrained, AutoModelForSequenceClassification, labels)
        return cls(network, QuestionEncoder(tokenizer, max_tokens), strategies)

    @classmethod
    def load(cls, serving: Path, device: str = "auto", precision: Precision = "auto") -> Self:
        """Load the model of a serving folder, in evaluation mode; the files' checksums are verified.

        Args:
            serving: Folder that training exported, e.g. checkpoints/dmqr-adaptive-world/serving.
            device: auto, cpu, cuda or cuda:N.
            precision: Of `probabilities`: auto, fp32 or bf16; see `models.devices.compute_dtype`.

        Raises:
            MissingInputError: If the folder does not exist.
            UserError: If the device is not possible here, or the precision is unknown.
            ArtifactError: If it is corrupt, of another kind or text format.
        """
        where = resolve_device(device)
        dtype = compute_dtype(precision, where)
        manifest = read_choice_manifest(Path(serving))
        folder = str(Path(serving) / PART)
        network = load_network(AutoModelForSequenceClassification, folder, dtype=torch.float32)
        encode = QuestionEncoder(load_tokenizer(folder), manifest["max_tokens"])
        classifier = cls(network, encode, manifest["strategies"])
        classifier.threshold, classifier.inference_dtype = manifest["threshold"], dtype
        return classifier.to(where).eval()

    def save(self, folder: Path) -> None:
        """Write network and tokenizer to `folder/choice` for transformers' Auto classes."""
        save_network(self.network, folder / PART)
        with_max_tokens(self.encode.tokenizer, self.encode.max_tokens).save_pretrained(folder / PART)

    def forward(self, ids_PT: Tensor, attention_PT: Tensor) -> Tensor:
        """Log-odds of every strategy, (P, S), nats, fp32."""
        logits_PS: Tensor = self.network(input_ids=ids_PT, attention_mask=attention_PT).logits
        return logits_PS.float()

    def probabilities(self, asked: Sequence[tuple[str, Sequence[str]]]) -> list[list[float]]:
        """Probabilities by strategy of every (question, earlier turns), in order; batched by length."""
        sequences = self.encode(asked)
        device = next(self.parameters()).device
        self.tokens_read += sum(map(len, sequences))

        @torch.inference_mode()
        def score(rows: list[int]) -> list[list[float]]:
            ids_PT, attention_PT = self.encode.pad([sequences[row] for row in rows])
            with autocast(device, self.inference_dtype):
                logits_PS = self(ids_PT.to(device, non_blocking=True), attention_PT.to(device, non_blocking=True))
            scores: list[list[float]] = logits_PS.double().sigmoid().tolist()
            return scores

        found: dict[int, list[float]] = {}
        batches = length_batches([len(each) for each in sequences], TOKENS_PER_BATCH[device.type])
        for rows, batch in each_batch(score, batches, device):
            found |= zip(rows, batch, strict=True)
        return [found[row] for row in range(len(asked))]


def read_choice_manifest(serving: Path, check_files: bool = True) -> dict[str, Any]:
    """The manifest of a serving folder, with its `strategies` (names, in the order of the labels) and its `threshold`.

    Raises:
        MissingInputError: If the folder does not exist.
        ArtifactError: If it is corrupt, of another kind or text format.
    """
    manifest = read_manifest(serving, KIND, TEXT_FORMAT, {"threshold": float}, check_files)
    names = manifest.get("strategies")
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise ArtifactError(f"{serving}: strategies must be a list of names, got {names!r}. {CURE}")
    return manifest
