"""Sentence encoders: one vector per text.  Reads sentence-transformers folders without depending on that package.

Shape legend: B texts in a batch, T tokens, D dimensions of the embedding, N texts in all."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import normalizers
from torch import Tensor
from torch.nn import functional as F
from transformers import AutoModel, BatchEncoding, PreTrainedTokenizerBase

from common.errors import ArtifactError, UserError
from common.files import parse_json, sha256
from common.progress import Progress
from common.ranges import Precision
from common.records import as_texts, nfkc
from common.sealed_json import fingerprint
from models.devices import autocast, compute_dtype, resolve_device
from models.encoders import positions
from models.length_batching import length_batches
from models.loading import check_vocabulary, load_network, load_tokenizer
from models.long_questions import question_note, surely_fits, token_count
from models.parallel_batches import each_batch
from models.pretrained import MINILM, resolve

_BATCH_TOKENS = {"cpu": 4096, "cuda": 65536}
# Per tuple, the files of the first pattern found are fingerprinted: a repackaged model keeps its fingerprint.
_FINGERPRINTED_FILES = (("*.safetensors", "pytorch_model*.bin"), ("tokenizer.json", "vocab.*", "*.model"))
_UNREAD = ("truncate_dim", "processing_kwargs", "query_length", "document_length", "query_expansion")  # settings
_IGNORED_CONFIG_KEYS = {"_name_or_path", "architectures", "dtype", "torch_dtype", "transformers_version"}


@dataclass(frozen=True, slots=True)
class Modules:
    """What the folder of a sentence encoder says: where the network is, how texts are read, pooled and compared."""

    transformer: Path  # folder for AutoModel
    pooling: str  # mean, cls or max
    normalize: bool  # to length 1, so that the inner product is the cosine: a module does it, or the similarity is one
    max_tokens: int | None = None  # maximum input length, special tokens included; None: what the tokenizer says
    prompts: dict[str, str] = field(default_factory=dict)  # the encoder's prefixes, e.g. {"query": "query: "}
    include_prompt: bool = True  # whether the tokens of a prefix are pooled, too
    lower_case: bool = False  # whether texts are lower-cased, whatever the tokenizer does

    @classmethod
    def read(cls, folder: Path) -> "Modules":
        """Read `modules.json` and the files it names; without it, mean pooling and no normalization (the default of
        sentence-transformers).

        Raises:
            UserError: If the encoder has a module, a pooling, a similarity or a setting that is not supported.
            ArtifactError: If one of the files is not JSON.
        """
        modules = _json(folder / "modules.json", [])
        if not modules:
            return cls(folder, "mean", False)
        paths = {module["type"].rpartition(".")[2]: folder / module["path"] for module in modules}
        if unknown := paths.keys() - {"Transformer", "Pooling", "Normalize"}:
            raise UserError(
                f"{folder}: sentence encoders with {', '.join(sorted(unknown))} modules are not supported. "
                "Choose one with Transformer, Pooling and Normalize modules only."
            )
        transformer = paths.get("Transformer", folder)
        pools = _json(paths["Pooling"] / "config.json", {}) if "Pooling" in paths else {"pooling_mode": "mean"}
        reads = [_json(file, {}) for file in sorted(transformer.glob("sentence_*_config.json"))]  # bert, roberta, ...
        whole, own = _json(folder / "config_sentence_transformers.json", {}), reads[0] if reads else {}
        pooling, similarity = _pooling(pools), whole.get("similarity_fn_name") or "cosine"
        if pooling not in ("mean", "cls", "max"):
            raise UserError(f"{folder}: pooling {pooling!r} is not supported. Choose an encoder with mean, cls or max.")
        if similarity not in ("cosine", "dot"):
            raise UserError(
                f"{folder}: similarity {similarity!r} is not supported. Choose an encoder of cosine or dot."
            )
        unread = [name for name in _UNREAD if whole.get(name) or own.get(name)]
        if unread := [*unread, *(["a chat template"] if "message" in own.get("modality_config", ()) else [])]:
            raise UserError(
                f"{folder}: sentence encoders with {', '.join(unread)} are not supported. Choose another one."
            )
        return cls(
            transformer,
            pooling,
            "Normalize" in paths or similarity == "cosine",
            own.get("max_seq_length"),
            {name: text for name, text in (whole.get("prompts") or {}).items() if text is not None},
            bool(pools.get("include_prompt", True)),
            bool(own.get("do_lower_case")),
        )


def _json(path: Path, default: Any) -> Any:
    try:
        return parse_json(path.read_text(encoding="utf-8")) if path.is_file() else default
    except ValueError as error:
        raise ArtifactError(f"{path} is not valid JSON ({error}). Download the model again.") from error


def _pooling(config: dict) -> str:
    """The pooling mode, from the key of sentence-transformers 6 (`pooling_mode`) or older (`pooling_mode_*_tokens`)."""
    if "pooling_mode" in config:
        mode = config["pooling_mode"]
        return mode if isinstance(mode, str) else "+".join(mode)
    return "+".join(
        key.removeprefix("pooling_mode_").removesuffix("_tokens").removesuffix("_token")
        for key, value in config.items()
        if key.startswith("pooling_mode_") and value
    )


class SentenceEncoder:
    """Encodes texts with a sentence encoder that AutoModel can load.

    Args:
        name: Folder or hub id; see `models.pretrained.resolve`.
        device: `auto`, `cpu`, `cuda` or `cuda:N`.
        max_tokens: Maximum input length, special tokens included; longer texts are truncated.  None: the encoder's.
        query_prefix: Prepended to every query.  None: the encoder's `query` prompt, usually empty.
        passage_prefix: Prepended to every passage.  None: the encoder's `document` or `passage` prompt.
        precision: Of the network's matrix products: auto, fp32 or bf16; see `models.devices.compute_dtype`.  Embeddings
            are always float32.
        batch_tokens: Tokens per forward pass, padding included; a longer text is a batch by itself.  None: 4,096
            on a CPU (the fastest of 2,048 to 16,384 for MiniLM), 65,536 on a GPU.

    Raises:
        MissingInputError: If the encoder is not found.
        UserError: If `max_tokens` is more than the encoder reads, or the encoder is not supported.
    """

    def __init__(
        self,
        name: str = MINILM,
        device: str = "auto",
        max_tokens: int | None = None,
        query_prefix: str | None = None,
        passage_prefix: str | None = None,
        precision: Precision = "auto",
        batch_tokens: int | None = None,
    ) -> None:
        self.name, self.device = name, resolve_device(device)
        self.precision, self.compute_dtype = precision, compute_dtype(precision, self.device)
        self.batch_tokens = batch_tokens or _BATCH_TOKENS[self.device.type]
        self.modules = Modules.read(resolve(name))
        self.tokenizer = load_tokenizer(self.modules.transformer)
        self.lowered = self.modules.lower_case and lower_case(self.tokenizer)  # which it did not do by itself
        model = load_network(AutoModel, self.modules.transformer, dtype=torch.float32)
        check_vocabulary(self.tokenizer, model, self.modules.transformer)
        if model.config.is_encoder_decoder:
            raise UserError(f"{name} is not a sentence encoder: it has a decoder. Choose one such as {MINILM}.")
        self.model = model.eval().to(self.device)
        self.max_tokens = self._checked_max_tokens(max_tokens)
        prompts = self.modules.prompts
        self.query_prefix = prompts.get("query", "") if query_prefix is None else query_prefix
        passage_prompt = prompts.get("document", prompts.get("passage", ""))
        self.passage_prefix = passage_prompt if passage_prefix is None else passage_prefix
        self.cut_rows: list[int] = []  # which of the texts that were encoded last are longer than `max_tokens`
        self.dimensions: int = self.model.config.hidden_size

    def _checked_max_tokens(self, requested: int | None) -> int:
        longest = positions(self.model.config) or self.tokenizer.model_max_length
        smallest = self.tokenizer.num_special_tokens_to_add() + 1
        if requested is None:
            return min(self.modules.max_tokens or longest, self.tokenizer.model_max_length, longest)
        if not smallest <= requested <= longest:
            raise UserError(f"max_tokens must be {smallest} to {longest} for {self.name}, got {requested}.")
        return requested

    @property
    def recipe(self) -> dict:
        """Everything that determines the vectors: the settings, and a sha256 of settings and encoder files."""
        settings = {
            "pooling": self.modules.pooling,
            "normalise": self.modules.normalize,
            "max_tokens": self.max_tokens,
            "query_prefix": self.query_prefix,
            "passage_prefix": self.passage_prefix,
        }
        # what few encoders have is named for these alone: indexes of all others stay as they are
        prefixed = bool(self.query_prefix or self.passage_prefix)
        settings |= {} if self.modules.include_prompt or not prefixed else {"include_prompt": False}
        settings |= {"lower_case": True} if self.lowered else {}
        folder = self.modules.transformer
        matches = ((folder.glob(p) for p in patterns if any(folder.glob(p))) for patterns in _FINGERPRINTED_FILES)
        files = {path.name: sha256(path) for match in matches for path in next(match, ())}
        config = {k: v for k, v in _json(folder / "config.json", {}).items() if k not in _IGNORED_CONFIG_KEYS}
        return {**settings, "sha256": fingerprint([settings, files, config])}

    @property
    def identity(self) -> dict[str, object]:
        """What determines the vectors, to the last bits."""
        return {"recipe": self.recipe, "computed in": self.dtype, "on": self.device.type}

    def encode_queries(self, queries: Sequence[str]) -> np.ndarray:
        """Embeddings of queries, float32 (N, D), in order."""
        return self._encode([nfkc(query) for query in as_texts(queries)], self.query_prefix)

    def cut_note(self, question: str, history: Sequence[str] = ()) -> str:
        """The part of a question that is read if it is too long; else empty."""
        text = self.query_prefix + nfkc(question)
        room = self.max_tokens - self.tokenizer.num_special_tokens_to_add()
        if surely_fits(text, room) or (tokens := token_count(self.tokenizer, text)) <= room:
            return ""
        return question_note(room, tokens, "last" if self.tokenizer.truncation_side == "left" else "first")

    def encode_passages(self, texts: Sequence[str]) -> np.ndarray:
        """Embeddings of passage texts, float32 (N, D), in order."""
        return self._encode([nfkc(text) for text in as_texts(texts)], self.passage_prefix)

    @property
    def dtype(self) -> str:
        """Name of the data type that the network computes in: float32 or bfloat16."""
        return str(self.compute_dtype).removeprefix("torch.")

    def longer(self, texts: Sequence[str]) -> list[int]:
        """Which passage texts are longer than `max_tokens`: their places."""
        return _cut_rows(self._tokens([self.passage_prefix + text for text in texts]))

    def _tokens(self, texts: list[str]) -> BatchEncoding:
        return self.tokenizer(texts, truncation=True, max_length=self.max_tokens, padding=False)

    def _left_out(self, prefix: str) -> int:
        """The tokens at the beginning that are not pooled: those of a prefix, before the end token, or none."""
        if self.modules.include_prompt or not prefix:
            return 0
        (ids,) = self._tokens([prefix])["input_ids"]
        return len(ids) - (ids[-1] in self.tokenizer.all_special_ids)

    def _encode(self, texts: list[str], prefix: str) -> np.ndarray:
        embeddings_ND = np.empty((len(texts), self.dimensions), dtype=np.float32)
        if not texts:
            self.cut_rows = []
            return embeddings_ND
        tokens, left_out = self._tokens([prefix + text for text in texts]), self._left_out(prefix)
        self.cut_rows = _cut_rows(tokens)

        @torch.inference_mode()
        def encode(rows: list[int]) -> np.ndarray:
            batch = self.tokenizer.pad(
                {key: [values[row] for row in rows] for key, values in tokens.items()}, return_tensors="pt"
            ).to(self.device)
            with autocast(self.device, self.compute_dtype):
                hidden_BTD = self.model(**batch).last_hidden_state
            real_BT = batch["attention_mask"]
            pooled_BD = pool_tokens(hidden_BTD, real_BT * (real_BT.cumsum(1) > left_out), self.modules.pooling)
            if self.modules.normalize:
                pooled_BD = F.normalize(pooled_BD, dim=-1)
            return pooled_BD.cpu().numpy()

        batches = length_batches([len(ids) for ids in tokens["input_ids"]], self.batch_tokens)
        with Progress("encoding texts", len(texts)) as progress:
            for rows, vectors_BD in each_batch(encode, batches, self.device):
                embeddings_ND[rows] = vectors_BD
                progress.update(len(rows))
        return embeddings_ND


def lower_case(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Have a tokenizer lower-case what it reads; False if it does so already."""
    own = tokenizer.backend_tokenizer.normalizer
    if own is not None and own.normalize_str("A") == "a":
        return False
    first = [normalizers.Lowercase(), *([] if own is None else [own])]
    tokenizer.backend_tokenizer.normalizer = normalizers.Sequence(first)
    return True


def _cut_rows(tokens: BatchEncoding) -> list[int]:
    return [row for row, encoding in enumerate(tokens.encodings or ()) if encoding.overflowing]


def pool_tokens(hidden_BTD: Tensor, attention_BT: Tensor, how: str) -> Tensor:
    """Pool token vectors to one float32 vector per text, (B, D).

    Args:
        hidden_BTD: Token vectors.
        attention_BT: 1 for a token, 0 for padding.
        how: `mean` over tokens, `cls` (the first token), or `max` over tokens by dimension.
    """
    hidden_BTD = hidden_BTD.float()
    if how == "cls":
        # not column 0: padding may be on the left
        return hidden_BTD[torch.arange(len(hidden_BTD)), attention_BT.argmax(dim=1)]
    real_BT1 = attention_BT.unsqueeze(-1).bool()
    if how == "max":
        return hidden_BTD.masked_fill(~real_BT1, float("-inf")).amax(dim=1)
    return hidden_BTD.masked_fill(~real_BT1, 0.0).sum(dim=1) / real_BT1.sum(dim=1).clamp(min=1)
