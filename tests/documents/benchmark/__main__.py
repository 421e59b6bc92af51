"""Engines that read documents, compared on real ones: headings, tables, text lost and invented, seconds a page.

    python -m tests.documents.benchmark.fetch --out FOLDER
    python -m tests.documents.benchmark --documents FOLDER --half tuning \
        --engines ours ours-without-bookmarks edgeparse --python PYTHON --out FILE

PYTHON belongs to an environment with the engines of others.
"""

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import get_args

import numpy as np

from common.errors import MissingInputError, UserError
from common.files import write_text
from common.progress import say
from documents.records import Document
from tests.documents.benchmark.catalogue import CatalogueEntry, Half, catalogue
from tests.documents.benchmark.engines import ENGINES
from tests.documents.benchmark.reading import OURS, ReadDocument, formats, read_by
from tests.documents.benchmark.scores import scores
from tests.documents.benchmark.truth.editions import WITH_TABLES, true_document

_COLUMNS = {
    "precision": "heading precision", "recall": "heading recall", "f1": "heading F1", "mhs": "MHS",
    "mhs_structure": "MHS-S", "outline": "outline", "teds": "TEDS", "extra_tables": "extra tables", "lost": "text lost",
    "invented": "text invented", "pairs_lost": "pairs lost", "seconds": "s/{unit}",
}  # fmt: skip
_WITH_INTERVALS = ("mhs", "teds", "lost", "pairs_lost")
_RESAMPLES = 10_000
Row = dict[str, float] | str  # what an engine has in the columns for a document, or why it has nothing


def parser() -> argparse.ArgumentParser:
    """The command line."""
    options = argparse.ArgumentParser(
        "python -m tests.documents.benchmark", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument(
        "--documents", type=Path, required=True, help="folder that the command `fetch` beside this one filled"
    )
    options.add_argument("--half", choices=get_args(Half), default="tuning")
    options.add_argument("--engines", nargs="+", default=list(OURS), choices=(*OURS, *ENGINES), metavar="ENGINE")
    options.add_argument("--only", nargs="+", default=[], metavar="ID", help="these documents of the half")
    options.add_argument("--python", default="", help="of an environment that has the engines of others")
    options.add_argument("--work", type=Path, help="keeps the engines' Markdown and times; others' are not made again")
    options.add_argument("--out", type=Path, required=True, help="Markdown file for the tables")
    return options


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare engines and write the tables."""
    options = parser().parse_args(arguments)
    entries = [entry for entry in catalogue(options.half) if not options.only or entry.id in options.only]
    if not entries:
        raise UserError(f"--only {' '.join(options.only)} names no document of the half {options.half}.")
    work = options.work or options.out.with_suffix(".work")
    parts = [f"# Documents of the {options.half} half"]
    rows: dict[str, dict[str, Row]] = {engine: {} for engine in options.engines}
    for entry in entries:
        file = options.documents / entry.half / entry.file
        if not file.is_file():
            raise MissingInputError(
                f"{file} does not exist; fetch it: python -m tests.documents.benchmark.fetch --out FOLDER"
            )
        truth = true_document(entry, options.documents / "truth")
        for engine in options.engines:
            if entry.format not in formats(engine):
                continue
            if engine in ENGINES and not options.python:
                raise UserError(f"--engines {engine} needs --python PYTHON, of an environment that has it.")
            result = read_by(engine, entry, file, options.python, work)
            rows[engine][entry.id] = _row(entry, truth, result)
            say(f"{entry.id}: {engine} {result.note}")
        parts.append(
            _document_table(entry, truth.title, {name: row[entry.id] for name, row in rows.items() if entry.id in row})
        )
    for kind, group in (
        ("PDFs", [e for e in entries if e.format == "pdf"]),
        ("other formats", [e for e in entries if e.format != "pdf"]),
    ):
        if group:
            parts.insert(1, _mean_table(kind, group, rows))
    write_text(options.out, "\n\n".join(parts) + "\n")


def _row(entry: CatalogueEntry, truth: Document, result: ReadDocument) -> Row:
    if result.document is None or result.seconds is None:
        return f"did not run: {result.note}"
    scored = asdict(scores(truth, result.document, entry.truth.kind in WITH_TABLES))
    scored["seconds"] = result.seconds / (entry.pages or 1)
    return {name: value for name, value in scored.items() if value is not None}


def _document_table(entry: CatalogueEntry, title: str, rows: dict[str, Row]) -> str:
    of_pdf = (f"{entry.pages} pages", f"{entry.columns} columns") if entry.pages else ()
    about = f"{', '.join([entry.format, *of_pdf, *entry.contains])}; truth: {entry.truth.kind}"
    table = [[engine, *([row] if isinstance(row, str) else _cells(row))] for engine, row in rows.items()]
    return "\n".join([f"## {entry.id}: {title}", "", about, "", *_table(_head([entry]), table)])


def _mean_table(kind: str, entries: Sequence[CatalogueEntry], rows: dict[str, dict[str, Row]]) -> str:
    """Means over the documents that an engine read, with 95 % bootstrap intervals over documents.

    The last column is the difference to the first engine's MHS, over the documents that both read.
    """
    table = []
    first = {
        id_: row["mhs"] for id_, row in next(iter(rows.values())).items() if isinstance(row, dict) and "mhs" in row
    }
    for engine, of_documents in rows.items():
        found = {entry.id: of_documents[entry.id] for entry in entries if entry.id in of_documents}
        scored = {id_: row for id_, row in found.items() if isinstance(row, dict)}
        if not scored:
            table += [[engine, str(row)] for row in found.values()][:1]
            continue
        values = {name: [row[name] for row in scored.values() if name in row] for name in _COLUMNS}
        cells = _cells({name: fmean(of_column) for name, of_column in values.items() if of_column})
        cells = [
            f"{cell} {_interval(values[name])}" if name in _WITH_INTERVALS and values[name] else cell
            for name, cell in zip(_COLUMNS, cells, strict=True)
        ]
        less = [row["mhs"] - first[id_] for id_, row in scored.items() if "mhs" in row and id_ in first]
        difference = f"{fmean(less):+.3f} {_interval(less, '+')}" if any(less) else "-"
        name = engine if len(scored) == len(entries) else f"{engine} ({len(scored)} of {len(entries)} documents)"
        table.append([name, *cells, difference])
    head = [*_head(entries), f"MHS less that of {next(iter(rows))}"]
    return "\n".join([f"## Means over {len(entries)} {kind}", "", *_table(head, table)])


def _interval(values: Sequence[float], sign: str = "") -> str:
    """The middle 95 % of the means of resampled documents."""
    drawn = np.random.default_rng(0).choice(np.array(values, float), (_RESAMPLES, len(values))).mean(axis=1)
    low, high = np.percentile(drawn, (2.5, 97.5))
    return f"[{low:{sign}.3f}, {high:{sign}.3f}]"


def _head(entries: Iterable[CatalogueEntry]) -> list[str]:
    unit = "page" if all(entry.pages for entry in entries) else "document"
    return ["engine", *(column.format(unit=unit) for column in _COLUMNS.values())]


def _cells(values: dict[str, float]) -> list[str]:
    found = (values.get(name) for name in _COLUMNS)
    return ["-" if one is None else f"{one:g}" if isinstance(one, int) else f"{one:.3f}" for one in found]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return ["| " + " | ".join([*line, *[""] * (len(head) - len(line))]) + " |" for line in lines]


if __name__ == "__main__":
    main()
