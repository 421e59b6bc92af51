"""Engines that read documents, compared on real ones: headings, tables, text lost and invented, seconds a page.

    python -m tests.documents.benchmark.fetch --out FOLDER
    python -m tests.documents.benchmark --documents FOLDER --half tuning \
        --engines ours ours-without-bookmarks edgeparse --python PYTHON --out FILE

PYTHON belongs to an environment with the engines of others.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from common.errors import UserError
from common.files import write_text
from common.progress import say
from documents.records import Document
from harness.evaluation.tables import markdown_table
from tests.documents.benchmark.catalogue import HALVES, catalogue
from tests.documents.benchmark.engines import ENGINES
from tests.documents.benchmark.reading import OURS, ReadDocument, read_by, reads
from tests.documents.benchmark.scores import scores
from tests.documents.benchmark.truth.editions import WITH_TABLES, true_document, unpacked

_COLUMNS = {
    "precision": "heading precision", "recall": "heading recall", "f1": "heading F1", "mhs": "MHS",
    "mhs_structure": "MHS-S", "outline": "outline", "teds": "TEDS", "extra_tables": "extra tables", "lost": "text lost",
    "invented": "text invented", "pairs_lost": "pairs lost", "seconds": "s/{unit}",
}  # fmt: skip
_WITH_INTERVALS = ("mhs", "teds", "lost", "pairs_lost")
_RESAMPLES = 10_000
Row = dict[str, float] | str  # what an engine has in the columns for a document, or why it has nothing


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare engines and write the tables."""
    parser = argparse.ArgumentParser(
        "python -m tests.documents.benchmark", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--documents", type=Path, required=True, help="folder that the command `fetch` filled")
    parser.add_argument("--half", choices=HALVES, default="tuning")
    parser.add_argument("--engines", nargs="+", default=list(OURS), choices=(*OURS, *ENGINES), metavar="ENGINE")
    parser.add_argument("--only", nargs="+", default=[], metavar="ID", help="these documents of the half")
    parser.add_argument("--python", default="", help="of an environment that has the engines of others")
    parser.add_argument("--work", type=Path, help="keeps the engines' Markdown and times; others' are not made again")
    parser.add_argument("--out", type=Path, required=True, help="Markdown file for the tables")
    options = parser.parse_args(arguments)
    entries = [entry for entry in catalogue(options.half) if not options.only or entry.id in options.only]
    if not entries:
        raise UserError(f"--only {' '.join(options.only)} names no document of the half {options.half}.")
    parts = []
    rows: dict[str, dict[str, Row]] = {engine: {} for engine in options.engines}
    for entry in entries:
        file = options.documents / entry.half / entry.file
        unpacked(file)  # one that is missing ends the comparison before an engine reads it
        truth = true_document(entry, options.documents / "truth")
        read = {engine: row for engine, row in rows.items() if reads(engine, entry.format)}
        for engine, row in read.items():
            result = read_by(engine, entry, file, options.python, options.work or options.out.with_suffix(".work"))
            row[entry.id] = _row(entry, truth, result)
            say(f"{entry.id}: {engine} {result.note}")
        of_pdf = (f"{entry.pages} pages", f"{entry.columns} columns") if entry.pages else ()
        about = f"{', '.join([entry.format, *of_pdf, *entry.contains])}; truth: {entry.truth.kind}"
        table = [[engine, *_cells(row[entry.id])] for engine, row in read.items()]
        parts += [f"## {entry.id}: {truth.title}", about, _table([entry], table)]
    means = []
    for kind, is_pdf in (("other formats", False), ("PDFs", True)):
        if group := [entry for entry in entries if (entry.format == "pdf") == is_pdf]:
            means += [f"## Means over {len(group)} {kind}", _mean_table(group, rows)]
    write_text(options.out, "\n\n".join([f"# Documents of the {options.half} half", *means, *parts]) + "\n")


def _row(entry: Any, truth: Document, result: ReadDocument) -> Row:
    if result.document is None:
        return f"did not run: {result.note}"
    scored = scores(truth, result.document, entry.truth.kind in WITH_TABLES)
    return {**scored, "seconds": result.seconds / (entry.pages or 1)}


def _mean_table(entries: Sequence[Any], rows: dict[str, dict[str, Row]]) -> str:
    """Means over the documents that an engine read, with 95 % bootstrap intervals over documents.

    The last column is the difference to the first engine's MHS, over the documents that both read.
    """
    table = []
    first = next(iter(rows.values()))
    for engine, of_documents in rows.items():
        found = {entry.id: of_documents[entry.id] for entry in entries if entry.id in of_documents}
        scored = {id_: row for id_, row in found.items() if isinstance(row, dict)}
        if not scored:
            table += [[engine, *_cells(row), ""] for row in found.values()][:1]
            continue
        values = {name: [row[name] for row in scored.values() if name in row] for name in _COLUMNS}
        cells = _cells({name: fmean(of_column) for name, of_column in values.items() if of_column})
        for place, name in enumerate(_COLUMNS):
            if name in _WITH_INTERVALS and values[name]:
                cells[place] += f" {_interval(values[name])}"
        pairs = [(row, first.get(id_)) for id_, row in scored.items()]
        less = [
            one["mhs"] - other["mhs"] for one, other in pairs if isinstance(other, dict) and "mhs" in {*one} & {*other}
        ]
        difference = f"{fmean(less):+.3f} {_interval(less, '+')}" if any(less) else "-"
        name = engine if len(scored) == len(entries) else f"{engine} ({len(scored)} of {len(entries)} documents)"
        table.append([name, *cells, difference])
    return _table(entries, table, f"MHS less that of {next(iter(rows))}")


def _interval(values: Sequence[float], sign: str = "") -> str:
    """The middle 95 % of the means of resampled documents."""
    drawn = np.random.default_rng(0).choice(np.array(values, float), (_RESAMPLES, len(values))).mean(axis=1)
    low, high = np.percentile(drawn, (2.5, 97.5))
    return f"[{low:{sign}.3f}, {high:{sign}.3f}]"


def _cells(row: Row) -> list[str]:
    if isinstance(row, str):
        return [row, *[""] * (len(_COLUMNS) - 1)]
    found = (row.get(name) for name in _COLUMNS)
    return ["-" if one is None else f"{one:g}" if isinstance(one, int) else f"{one:.3f}" for one in found]


def _table(entries: Sequence[Any], rows: Sequence[Sequence[str]], *more: str) -> str:
    unit = "page" if all(entry.pages for entry in entries) else "document"
    return "\n".join(markdown_table(["engine", *(one.format(unit=unit) for one in _COLUMNS.values()), *more], rows))


if __name__ == "__main__":
    main()
