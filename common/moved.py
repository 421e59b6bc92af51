"""Renamed classes and options of earlier releases, for error messages about configurations that use the old names."""

import re

CLASSES = {  # class path in an earlier release -> class path today
    "datamodules.context_data.ContextData": "datamodules.rerag.ReRagData",
    "datamodules.span_data.SpanData": "datamodules.t5.SpanCorruptionData",
    "datamodules.triple_data.TripleData": "datamodules.drrag.DrRagData",
    "harness.bm25.Bm25Retriever": "harness.retrievers.bm25.Bm25Retriever",
    "harness.dense.DenseRetriever": "harness.retrievers.dense.DenseRetriever",
    "harness.fusion.FusedRetriever": "harness.retrievers.fusion.FusedRetriever",
    "harness.readers.ContextReader": "harness.readers.t5.ContextReader",
    "harness.readers.PackedReader": "harness.readers.t5.PackedReader",
    "harness.rerank.RerankedRetriever": "harness.retrievers.rerank.RerankedRetriever",
    "trainers.loggers.RunWandbLogger": "trainers.run.loggers.RunWandbLogger",
    "trainers.span_corruption.SpanCorruptionTrainer": "trainers.t5.SpanCorruptionTrainer",
}
_GROUPED = (
    "k|k1|depth|threshold|take|scope|fill|second_stage|anchors|anchor_depth|pool|keep_first|prior_weight|symmetric"
)
OPTIONS = (  # pattern of the parser's error message, and what to write instead
    (r"""Parser key "selection": Unable to load config '(\w+)'""", r"write selection: {method: \1, k: 4, ...}"),
    (
        rf"Option '({_GROUPED})' is not accepted",
        r"an option of DR-RAG's selection goes inside it: selection: {\1: ...}",
    ),
)


def advice(message: str) -> str | None:
    """What to write instead, if a parser's error message is about a name of an earlier release; else None."""
    moved = [
        f"{old} is now {new}" for old, new in CLASSES.items() if re.search(rf"(?<![\w.]){re.escape(old)}\b", message)
    ]
    moved += [match.expand(text) for pattern, text in OPTIONS if (match := re.search(pattern, message))]
    return "; ".join(moved) or None
