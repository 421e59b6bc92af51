"""Renamed classes and options of earlier releases, for error messages about configurations that use the old names."""

import re
from collections.abc import Sequence

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
# pattern of the parser's error message, and the new name; the message may also be about another class, so it stays
OPTIONS = (
    (r"""Parser key "selection": Unable to load config '(\w+)'""", r"selection: {method: \1, ...}"),
    (rf"Option '({_GROUPED})' is not accepted", r"in DR-RAG selection: {\1: ...}"),
    (r"unrecognized arguments: .*--protocol\b", "--normalization"),
    (r"unrecognized arguments: .*--dtype\b", "--precision"),
    (r"Option 'dtype' is not accepted", "precision"),
    (r"unrecognized arguments: .*--(open|web)-(singles|questions)\b", r"--\1_\2"),
)


_OF_STUDIES = "rows|bm25|scores|temperature_questions|temperature_limit|encoder|baseline_serving"  # now --study.*


def advice(message: str, shown: str, given: Sequence[str] = ()) -> str:
    """What to show for a parser's error message; where it is about a name of an earlier release, with the new name.

    Args:
        message: The parser's.
        shown: The message in plain words.
        given: The command, then the arguments of the command line.
    """
    message = " ".join(message.split())
    moved = [
        f"{old} is now {new}" for old, new in CLASSES.items() if re.search(rf"(?<![\w.]){re.escape(old)}\b", message)
    ]
    if moved:
        return f"the configuration was written for an earlier release: {'; '.join(moved)}"
    renamed = [match.expand(text) for pattern, text in OPTIONS if (match := re.search(pattern, message))]
    renamed += _moved_to_evaluate(message, given)
    return f"{shown} (renamed since an earlier release; now: {'; '.join(renamed)})" if renamed else shown


def _moved_to_evaluate(message: str, given: Sequence[str]) -> list[str]:
    """The command `evaluate` for `answers`, and the options of studies, which both commands had without `study.`"""
    if "invalid choice: 'answers'" in message:
        names = re.findall(rf"(?<!\S)--({_OF_STUDIES})\b", " ".join(given))
        return [" ".join(["evaluate", *(f"--study.{name}" for name in dict.fromkeys(names))])]
    if list(given[:1]) != ["evaluate"] or not re.match("unrecognized arguments|Subcommand", message):
        return []
    names = re.findall(rf"(?:(?<!\S)--|option ')({_OF_STUDIES})\b", message)
    return [f"--study.{name}" for name in dict.fromkeys(names)]
