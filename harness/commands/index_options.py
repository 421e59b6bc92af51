"""The groups of options of `infer.py index`; how documents are cut is `documents.folder.options.Cutting`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from common.ranges import NonNegativeFloat, PositiveFloat, PositiveInt, Precision, Share
from documents.folder.options import MEBIBYTES, SECONDS, Mebibytes
from harness.interfaces import LanguageModel
from models.pretrained import MINILM


@dataclass(frozen=True)
class ReadingOptions:
    """How documents are read.

    Args:
        outline: Whether headings are looked up in the outline (bookmarks) of a PDF file that has one.
        llm: Language model that converts what was read: a class, or a file such as configs/llm/openai.yaml.
        captioner: Model that describes images, a folder or a hub id in the hub cache, e.g.
            Salesforce/blip-image-captioning-base.
        document_cache: Folder that keeps what is read, so that only changed documents are read again; null:
            FOLDER.documents beside `out`.
        seconds: CPU time that reading one may take.
        mebibytes: Memory that reading one may take.
        strict: Whether one that cannot be read ends the command.
    """

    outline: bool = True
    llm: LanguageModel | None = None
    captioner: str | None = None
    document_cache: Path | None = None
    seconds: PositiveFloat = SECONDS
    mebibytes: Mebibytes = MEBIBYTES
    strict: bool = False


@dataclass(frozen=True)
class DenseOptions:
    """Of a dense index.

    Args:
        encoder: The sentence encoder, a folder or a hub id in the hub cache.
        max_tokens: Maximum passage length in tokens, longer ones are truncated; null: the encoder's.
        query_prefix: Prepended to every query; null: the encoder's own prompt, usually none.
        passage_prefix: Prepended to every passage; null: the encoder's own prompt, usually none.
        precision: Of the encoder: auto (bf16 where the device has it in hardware), fp32 or bf16.
        batch_tokens: Tokens per forward pass; null: chosen by device.
        chunk_passages: Passages per saved chunk.
        faiss_index: flat (exact), or a string of faiss.index_factory, such as IVF4096,Flat (4096 clusters),
            IVF4096,PQ64x8np (of vectors compressed to 64 bytes) or HNSW32 (a graph of 32 links for each vector).
    """

    encoder: str = MINILM
    max_tokens: PositiveInt | None = None
    query_prefix: str | None = None
    passage_prefix: str | None = None
    precision: Precision = "auto"
    batch_tokens: PositiveInt | None = None
    chunk_passages: PositiveInt = 4096
    faiss_index: str = "flat"


@dataclass(frozen=True)
class Bm25Options:
    """Of a BM25 index.

    Args:
        k1: Saturation of term frequency.
        b: Strength of length normalization, 0 to 1.
        stop_words: english or none.
    """

    k1: NonNegativeFloat = 1.5
    b: Share = 0.75
    stop_words: Literal["english", "none"] = "english"


@dataclass(frozen=True)
class KeywordOptions:
    """Of an index of keywords.

    Args:
        max_share: A name in a greater share of the passages is no keyword, 0 to 1.
        file: Further keywords, one a line.
    """

    max_share: Share = 0.2
    file: Path | None = None
