"""Sentence encoders: text to one vector.  Reads the files of sentence-transformers without depending on the package.

Shape legend: B texts in a batch, T tokens, D dimensions of the embedding, N texts in all."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import AutoModel, AutoTokenizer
from transformers.utils import logging as transformers_logging

from common.errors import ArtifactError, UserError
from common.files import sha256
from common.records import clean
from harness.runtime.provenance import fingerprint
from models.devices import resolve_device
from models.length_batching import length_batches
from models.pretrained import MINILM, resolve

DType = Literal["float32", "bfloat16"]

_BATCH_TOKENS = {"cpu": 4096, "cuda": 65536}
# Of each line the first pattern that a folder has decides: the same model repackaged keeps its fingerprint.
_DECISIVE_FILES = (("*.safetensors", "pytorch_model*.bin"), ("tokenizer.json", "vocab.*", "*.model"))
_INDIFFERENT = {"_name_or_path", "architectures", "dtype", "torch_dtype", "transformers_version"}  # in config.json


@dataclass(frozen=True, slots=True)
class Layout:
    """What the files of a sentence encoder say beside the network: how token vectors become one vector."""

    transformer: Path  # folder for AutoModel
    pooling: str  # mean, cls or max
    normalize: bool  # to length 1, so that the inner product is the cosine
    max_tokens: int | None  # longest input, special tokens included; None: as long as the network takes
    prompts: dict[str, str]  # the encoder's own prefixes, e.g. {"query": "query: "}

    @classmethod
    def read(cls, folder: Path) -> "Layout":
        """Read `modules.json` and its kin; a folder without it is mean pooled and not normalized, as
        sentence-transformers does.

        Raises:
            UserError: If the encoder has a module or a pooling that is not supported.
            ArtifactError: If one of the files is not JSON.
        """
        modules = _json(folder / "modules.json", [])
        if not modules:
            return cls(folder, "mean", False, None, {})
        paths = {module["type"].rpartition(".")[2]: folder / module["path"] for module in modules}
        if unknown := paths.keys() - {"Transformer", "Pooling", "Normalize"}:
            raise UserError(
                f"{folder}: sentence encoders with {', '.join(sorted(unknown))} modules are not supported. "
                "Choose one of Transformer, Pooling and Normalize."
            )
        transformer = paths.get("Transformer", folder)
        pooling = _pooling(_json(paths["Pooling"] / "config.json", {})) if "Pooling" in paths else "mean"
        if pooling not in ("mean", "cls", "max"):
            raise UserError(f"{folder}: pooling {pooling!r} is not supported. Choose an encoder with mean, cls or max.")
        return cls(
            transformer,
            pooling,
            "Normalize" in paths,
            _json(transformer / "sentence_bert_config.json", {}).get("max_seq_length"),
            _json(folder / "config_sentence_transformers.json", {}).get("prompts") or {},
        )


def _json(path: Path, default: Any) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else default
    except ValueError as error:
        raise ArtifactError(f"{path} is not valid JSON ({error}). Fetch the model again.") from error


def _pooling(config: dict) -> str:
    """The mode, in the spelling of sentence-transformers 6 (`pooling_mode`) or before (`pooling_mode_*_tokens`)."""
    if "pooling_mode" in config:
        mode = config["pooling_mode"]
        return mode if isinstance(mode, str) else "+".join(mode)
    return "+".join(
        key.removeprefix("pooling_mode_").removesuffix("_tokens").removesuffix("_token")
        for key, value in config.items()
        if key.startswith("pooling_mode_") and value
    )


class SentenceEncoder:
    """Encodes texts with any sentence encoder that AutoModel loads.

    Args:
        name: Folder or hub id; see `models.pretrained.resolve`.
        device: `auto`, `cpu`, `cuda` or `cuda:N`.
        max_tokens: Longest input in tokens, special tokens included; the end is cut off.  None: as the encoder says.
        query_prefix: Written before every query.  None: the encoder's own `query` prompt, mostly empty.
        passage_prefix: Likewise before every passage (`document` or `passage` prompt).
        dtype: Of the network: `float32`, or on a GPU `bfloat16`.  Embeddings are float32 in any case.
        batch_tokens: Tokens of a forward pass, padding included; a longer text has a pass of its own.  None: 4,096
            on a CPU (the fastest of 2,048 to 16,384 for MiniLM), 65,536 on a GPU.

    Raises:
        MissingInputError: If the encoder is nowhere.
        UserError: If an argument is out of range, or the encoder is of a kind that is not supported.
    """

    def __init__(
        self,
        name: str = MINILM,
        device: str = "auto",
        max_tokens: int | None = None,
        query_prefix: str | None = None,
        passage_prefix: str | None = None,
        dtype: DType = "float32",
        batch_tokens: int | None = None,
    ) -> None:
        self.name, self.device, self.dtype = name, resolve_device(device), dtype
        if dtype not in ("float32", "bfloat16"):
            raise UserError(f"dtype {dtype!r} is not known. Choose float32 or bfloat16.")
        if dtype == "bfloat16" and self.device.type != "cuda":
            raise UserError("dtype bfloat16 is for GPUs: on this device it is slower and less exact. Choose float32.")
        if batch_tokens is not None and batch_tokens < 1:
            raise UserError(f"batch_tokens must be at least 1, got {batch_tokens}.")
        self.batch_tokens = batch_tokens or _BATCH_TOKENS[self.device.type]
        self.layout = Layout.read(resolve(name))
        self.tokenizer = AutoTokenizer.from_pretrained(self.layout.transformer)
        with _quiet():
            model = AutoModel.from_pretrained(self.layout.transformer, dtype=getattr(torch, dtype))
        if model.config.is_encoder_decoder:
            raise UserError(f"{name} is no sentence encoder: it has a decoder. Choose one such as {MINILM}.")
        self.model = model.eval().to(self.device)
        self.max_tokens = self._checked_max_tokens(max_tokens)
        prompts = self.layout.prompts
        self.query_prefix = prompts.get("query", "") if query_prefix is None else query_prefix
        own = prompts.get("document", prompts.get("passage", ""))
        self.passage_prefix = own if passage_prefix is None else passage_prefix
        self.dimensions: int = self.model.config.hidden_size
        self.size_bytes: int = sum(p.numel() * p.element_size() for p in self.model.parameters())

    def _checked_max_tokens(self, asked: int | None) -> int:
        longest = getattr(self.model.config, "max_position_embeddings", None) or self.tokenizer.model_max_length
        # RoBERTa counts positions from padding_idx + 1, so its table is two rows longer than its longest input
        if "roberta" in self.model.config.model_type:
            longest -= (self.model.config.pad_token_id or 0) + 1
        smallest = self.tokenizer.num_special_tokens_to_add() + 1
        if asked is None:
            return min(self.layout.max_tokens or longest, longest)
        if not smallest <= asked <= longest:
            raise UserError(f"max_tokens must lie in {smallest} to {longest} for {self.name}, got {asked}.")
        return asked

    @property
    def recipe(self) -> dict:
        """What decides the vectors: settings, and the fingerprint of all of them with the encoder's files."""
        settings = {
            "pooling": self.layout.pooling,
            "normalise": self.layout.normalize,
            "max_tokens": self.max_tokens,
            "query_prefix": self.query_prefix,
            "passage_prefix": self.passage_prefix,
        }
        folder = self.layout.transformer
        found = [next((list(folder.glob(p)) for p in either if any(folder.glob(p))), []) for either in _DECISIVE_FILES]
        files = {path.name: sha256(path) for paths in found for path in paths}
        config = {k: v for k, v in _json(folder / "config.json", {}).items() if k not in _INDIFFERENT}
        return {**settings, "sha256": fingerprint([settings, files, config])}

    def encode_queries(self, queries: Sequence[str]) -> np.ndarray:
        """Embeddings of queries, float32 (N, D), in their order."""
        return self._encode([self.query_prefix + clean(query) for query in queries])

    def encode_passages(self, texts: Sequence[str]) -> np.ndarray:
        """Embeddings of passage texts, float32 (N, D), in their order."""
        return self._encode([self.passage_prefix + text for text in texts])

    @torch.inference_mode()
    def _encode(self, texts: list[str]) -> np.ndarray:
        embeddings_ND = np.empty((len(texts), self.dimensions), dtype=np.float32)
        if not texts:
            return embeddings_ND
        tokens = self.tokenizer(texts, truncation=True, max_length=self.max_tokens, padding=False)
        for rows in length_batches([len(ids) for ids in tokens["input_ids"]], self.batch_tokens):
            batch = self.tokenizer.pad(
                {key: [values[row] for row in rows] for key, values in tokens.items()}, return_tensors="pt"
            ).to(self.device)
            hidden_BTD = self.model(**batch).last_hidden_state
            pooled_BD = pool(hidden_BTD, batch["attention_mask"], self.layout.pooling)
            if self.layout.normalize:
                pooled_BD = F.normalize(pooled_BD, dim=-1)
            embeddings_ND[rows] = pooled_BD.cpu().numpy()
        return embeddings_ND


@contextmanager
def _quiet() -> Iterator[None]:
    """Load a model without a progress bar of half a second and without the news that its pooler is not used."""
    verbosity, bar = transformers_logging.get_verbosity(), transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(verbosity)
        if bar:
            transformers_logging.enable_progress_bar()


def pool(hidden_BTD: Tensor, attention_BT: Tensor, how: str) -> Tensor:
    """One float32 vector per text from its tokens' vectors, (B, D).

    Args:
        hidden_BTD: Vectors of the tokens.
        attention_BT: 1 for a token, 0 for padding.
        how: `mean` over tokens, `cls` (the first token), or `max` over tokens per dimension.
    """
    hidden_BTD = hidden_BTD.float()
    if how == "cls":
        return hidden_BTD[
            torch.arange(len(hidden_BTD)), attention_BT.argmax(dim=1)
        ]  # not column 0: padding may be left
    real_BT1 = attention_BT.unsqueeze(-1).bool()
    if how == "max":
        return hidden_BTD.masked_fill(~real_BT1, float("-inf")).amax(dim=1)
    return hidden_BTD.masked_fill(~real_BT1, 0.0).sum(dim=1) / real_BT1.sum(dim=1).clamp(min=1)
