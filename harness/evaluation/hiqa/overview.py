"""The collection at hand (HiQA's Table 6 in shape), and the Log-Rank Index for several gamma (Figure 11)."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from common.records import Passage, Question
from common.words import word_count
from harness.evaluation.hiqa.ranking import document_of
from harness.evaluation.log_rank import log_rank
from harness.evaluation.plots import axes_of, save
from harness.evaluation.tables import Cell, Cells, Table, not_measured

GAMMAS = (0.1, 1.0, 10.0)


class Tokenizer(Protocol):
    """What counts tokens."""

    def __call__(self, text: list[str], add_special_tokens: bool = True) -> Mapping[str, Sequence[Sequence[int]]]:
        """Token ids of each text under `input_ids`."""


def overview_table(passages: Iterable[Passage], questions: Sequence[Question], tokenizer: Tokenizer | None) -> Table:
    """Table 6: size of the collection by document, and its questions by kind.

    Args:
        passages: All segments of the index.
        questions: With gold segments.
        tokenizer: The encoder's; None: tokens are not counted.
    """
    documents: dict[str, list[Passage]] = {}
    for passage in passages:
        documents.setdefault(document_of(passage), []).append(passage)
    every = [*documents.values()]
    absent = "the retriever has no vectors"
    rows: dict[str, Cells] = {"documents": [Cell(len(every)), None, None, None]}
    rows["pages"] = _spread([_pages(each) for each in every], "the documents have no pages")
    rows["segments"] = _spread([len(each) for each in every])
    kinds = Counter(str((passage.metadata or {}).get("kind", "")) for own in every for passage in own)
    for kind in ("text", "table", "image"):
        if kinds[kind]:
            of_kind = [sum((p.metadata or {}).get("kind") == kind for p in own) for own in every]
            rows[f"segments, {kind}"] = _spread(of_kind)
    rows["words"] = _spread([sum(word_count(passage.text) for passage in own) for own in every])
    rows["tokens"] = _spread([_tokens(own, tokenizer) for own in every] if tokenizer else [], absent)
    rows["questions"] = [Cell(len(questions)), None, None, None]
    for kind, count in sorted(Counter(question.kind or "-" for question in questions).items()):
        rows[f"questions, {kind}"] = [Cell(count), None, None, None]
    golds = [len(question.gold_segments) for question in questions]
    rows["gold segments of a question"] = [Cell(sum(golds)), *_spread(golds)[1:]]
    note = (
        "Of the first row's index. Pages: up to the last one that a segment names. Words and tokens: of the segments' "
        "texts, without metadata; tokens by the encoder's tokenizer. Mean, least and most: of a document, or of a "
        "question."
    )
    return Table("overview", "Table 6: the collection", ("all", "mean", "least", "most"), rows, note=note, decimals=1)


def _pages(passages: Sequence[Passage]) -> int:
    known = [(each.metadata or {}).get("last_page") or (each.metadata or {}).get("page") for each in passages]
    return max((page for page in known if isinstance(page, int)), default=0)


def _tokens(passages: Sequence[Passage], tokenizer: Tokenizer) -> int:
    found = tokenizer([passage.text for passage in passages], add_special_tokens=False)["input_ids"]
    return sum(len(each) for each in found)


def _spread(counts: Sequence[int], absent: str = "") -> Cells:
    """Sum, mean, least and most; the reason if there is nothing to count."""
    if not any(counts):
        return [not_measured(absent)] * 4
    return [Cell(sum(counts)), Cell(sum(counts) / len(counts)), Cell(min(counts)), Cell(max(counts))]


def draw_gammas(segments: int, path: Path) -> None:
    """Figure 11: the index of a segment by its rank, of so many."""
    figure, panels = axes_of()
    ranks = np.unique(np.geomspace(1, segments, 400).astype(int))
    for gamma in GAMMAS:
        panels[0].plot(ranks, [log_rank(int(rank), segments, gamma) for rank in ranks], label=f"gamma {gamma:g}")
    panels[0].set(xscale="log", xlabel="rank", ylabel="index", title=f"Log-Rank Index of {segments:,} segments")
    save(figure, panels, path)
