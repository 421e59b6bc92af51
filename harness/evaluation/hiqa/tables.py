"""Tables and plots of HiQA's study.

Rankings of the rows and their differences (Table 2), by number of documents (Figure 2), in contexts of so many words,
readers' answers from these (Table 7), the collection (Table 6), the index for several gamma (Figure 11).

Rows whose passages are of different length are compared fairly in contexts of equal length alone: every row fills the
same number of words.

Shape legend: N questions.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from common.records import Answer, Passage, Question
from common.words import word_count
from harness.evaluation.answer_scores import Bootstrap, answer_values, differences_table, row_cells
from harness.evaluation.hiqa.accuracy import RIGHT_OR_WRONG, exact_accuracy
from harness.evaluation.hiqa.ranking import HIT, RECALL, WHOLE, HiQaRow, Scores, document_of
from harness.evaluation.judging.system import judged_values
from harness.evaluation.log_rank import log_rank
from harness.evaluation.plots import axes_of, save
from harness.evaluation.study import Settings
from harness.evaluation.tables import Cell, Cells, ReportTable, not_measured

LOG_RANK = "Log-Rank"
GAMMAS = (0.1, 1.0, 10.0)
TITLES = {RECALL: "Gold segments in a context of so many words, %", WHOLE: "Questions with all gold segments in it, %"}
_BUDGETS = (
    "The passages of the ranking, best first, each with its title, that fit so many words together: as the system "
    "fills its context, but without its limit on their number. The first passage always counts."
)
BySize = Mapping[str, Mapping[int, Scores]]  # row -> number of documents, or words of the context -> its scores


def ranking_tables(
    rows: Mapping[str, Scores], k: int, gamma: float, segments: int, bootstrap: Bootstrap
) -> list[ReportTable]:
    """Hit rate, recall, MRR and Log-Rank Index of every row, in per cent (Table 2), and differences of the first row.

    Args:
        rows: The scores of each row.
        k: Of hit rate and recall.
        gamma: Of the Log-Rank Index.
        segments: Of the first row's index.
        bootstrap: For the intervals.
    """
    measures = (f"hit@{k}", f"recall@{k}", "MRR", LOG_RANK)
    values = {name: [each[measure] for measure in measures] for name, each in rows.items()}
    note = (
        f"Rankings of all segments of the row's index ({segments:,} in the first row's), Log-Rank Index with gamma "
        f"{gamma:g}. A gold segment is found at the first one that holds its evidence; what no segment holds whole "
        "counts as last."
    )
    cells, columns = row_cells(values, bootstrap), tuple(f"{measure} %" for measure in measures)
    tables = [ReportTable("ranking", "Table 2: augmentation and routes", columns, cells, note=note)]
    if len(rows) > 1:
        own, points = next(iter(rows)), [f"{measure}, points" for measure in measures]
        title = f"Differences of {own} to the others"
        tables.append(differences_table("differences", title, points, values, own, bootstrap, of_it=True))
    return tables


def degradation_tables(rows: BySize, sizes: Sequence[int], k: int, bootstrap: Bootstrap) -> list[ReportTable]:
    """Hit rate and Log-Rank Index of every row by number of documents (Figure 2 in shape)."""
    columns = tuple(f"{size} documents" for size in sizes)
    return [
        ReportTable(
            f"documents - {measure}", f"Figure 2: {measure} % as documents are added", columns,
            row_cells(_values(rows, measure, sizes), bootstrap),
        )
        for measure in (f"hit@{k}", LOG_RANK)
    ]  # fmt: skip


def budget_tables(rows: BySize, budgets: Sequence[int], bootstrap: Bootstrap) -> list[ReportTable]:
    """The content of every row's context, and the paired differences of the first row to the others."""
    tables = []
    for measure, title in TITLES.items():
        values = _values(rows, measure, budgets)
        name, columns = f"budgets - {measure}", columns_of(budgets)
        table = differences_table(name, title, columns, values, next(iter(rows)), bootstrap, of_it=True)
        table.rows, table.note = row_cells(values, bootstrap) | dict(table.rows), _BUDGETS
        tables.append(table)
    return tables


def columns_of(budgets: Sequence[int]) -> tuple[str, ...]:
    """The column of each budget."""
    return tuple(f"{budget:,} words" for budget in budgets)


def _values(rows: BySize, measure: str, sizes: Sequence[int]) -> dict[str, list[NDArray[np.float64]]]:
    return {name: [by_size[size][measure] for size in sizes] for name, by_size in rows.items()}


def draw_curves(rows: BySize, sizes: Sequence[int], titles: Mapping[str, str], xlabel: str, path: Path) -> None:
    """Curves of the rows' means over the sizes, one panel per measure.

    Args:
        rows: Of each row.
        sizes: Numbers of documents, or of words of the context.
        titles: Measure -> title of its panel.
        xlabel: What the sizes are.
        path: The PNG.
    """
    figure, panels = axes_of(len(titles))
    for axes, (measure, title) in zip(panels, titles.items(), strict=True):
        for name, values in _values(rows, measure, sizes).items():
            axes.plot(sizes, [100 * np.nanmean(values_N) for values_N in values], marker="o", label=name)
        axes.set(xlabel=xlabel, ylabel=f"{measure} %", title=title)
    save(figure, panels, path)


def readers_table(
    answers: Mapping[str, Sequence[Sequence[Answer]]],
    own: HiQaRow,
    budgets: Sequence[int],
    questions: Sequence[Question],
    settings: Settings,
) -> ReportTable:
    """Table 7: accuracy of every reader by words of the context, below what the context holds.

    Args:
        answers: By reader and budget.
        own: The row whose contexts were read.
        budgets: Words.
        questions: The questions.
        settings: Normalization, bootstrap and judge.
    """
    held = {"a gold segment in the context": HIT, "all gold segments in the context": WHOLE}
    rows: dict[str, Cells] = {}
    rows |= row_cells({name: [own.by_budget[b][of] for b in budgets] for name, of in held.items()}, settings.bootstrap)
    if not answers:
        rows["readers"] = [not_measured("no readers are given (--study.readers)")] * len(budgets)
    values: dict[str, list[NDArray[np.float64]]] = {}
    for name, by_budget in answers.items():
        values[f"{name}: EM"] = [100 * answer_values(questions, each, settings)[0] for each in by_budget]
        of_budget = {str(place): each for place, each in enumerate(by_budget)}
        values[f"{name}: accuracy, exact match"] = [*exact_accuracy(of_budget, questions).values()]
        if settings.judge is not None and "answers" in settings.judge.prompts:
            judged = [judged_values(settings.judge, "answers", questions, each)[0][1] for each in by_budget]
            values[f"{name}: accuracy, judged"] = judged
    absent = not_measured("no question of these kinds has a gold answer")
    for name, cells in row_cells(values, settings.bootstrap, 100).items():
        rows[name] = [cell or absent for cell in cells]
    note = f"{_BUDGETS} Accuracy by exact match: of the kinds {', '.join(RIGHT_OR_WRONG)}."
    return ReportTable("readers", "Table 7: readers by words of the context, %", columns_of(budgets), rows, note=note)


class Tokenizer(Protocol):
    """A tokenizer that counts tokens."""

    def __call__(self, text: list[str], add_special_tokens: bool = True) -> Mapping[str, Sequence[Sequence[int]]]:
        """Token ids of each text under `input_ids`."""


def overview_table(
    passages: Iterable[Passage], questions: Sequence[Question], tokenizer: Tokenizer | None
) -> ReportTable:
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
    return ReportTable(
        "overview", "Table 6: the collection", ("all", "mean", "least", "most"), rows, note=note, decimals=1
    )


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
