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
OPTIONS = (  # pattern of the parser's error message, and the new name; the message may also be about another class, so it stays
    (r"""Parser key "selection": Unable to load config '(\w+)'""", r"selection: {method: \1, ...}"),
    (rf"Option '({_GROUPED})' is not accepted", r"in DR-RAG selection: {\1: ...}"),
    (r"unrecognized arguments: .*--protocol\b", "--normalization"),
    (r"unrecognized arguments: .*--dtype\b", "--precision"),
    (r"Option 'dtype' is not accepted", "precision"),
    (r"unrecognized arguments: .*--(open|web)-(singles|questions)\b", r"--\1_\2"),
)


def advice(message: str, shown: str) -> str:
    """What to show for a parser's error message; where it is about a name of an earlier release, with the new name."""
    message = " ".join(message.split())
    moved = [
        f"{old} is now {new}" for old, new in CLASSES.items() if re.search(rf"(?<![\w.]){re.escape(old)}\b", message)
    ]
    if moved:
        return f"the configuration was written for an earlier release: {'; '.join(moved)}"
    renamed = [match.expand(text) for pattern, text in OPTIONS if (match := re.search(pattern, message))]
    return f"{shown} (renamed since an earlier release; now: {'; '.join(renamed)})" if renamed else shown
