"""Engines that read documents, compared on real ones: headings, tables, text lost and invented, seconds a page.

    python -m documents.benchmark.fetch --out FOLDER
    python -m documents.benchmark --documents FOLDER --half tuning --engines ours ours-without-bookmarks edgeparse \
        --python PYTHON --out FILE

PYTHON belongs to an environment with the engines of others (`docling=PYTHON` gives one engine its own).
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
from documents.benchmark.catalogue import CatalogueEntry, Half, catalogue
from documents.benchmark.engines import ENGINES
from documents.benchmark.reading import OURS, ReadDocument, formats, read_by
from documents.benchmark.scores import Scores, scores
from documents.benchmark.truth.editions import WITH_TABLES, true_document
from documents.records import Document

_COLUMNS = {
    "precision": "heading precision", "recall": "heading recall", "f1": "heading F1", "mhs": "MHS",
    "mhs_structure": "MHS-S", "outline": "outline", "teds": "TEDS", "extra_tables": "extra tables", "lost": "text lost",
    "invented": "text invented", "pairs_lost": "pairs lost",
}  # fmt: skip
_WITH_INTERVALS = ("mhs", "teds", "lost", "pairs_lost")
_RESAMPLES = 10_000


def parser() -> argparse.ArgumentParser:
    """The command line."""
    options = argparse.ArgumentParser(
        "python -m documents.benchmark", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--documents", type=Path, required=True, help="folder that `documents.benchmark.fetch` filled")
    options.add_argument("--half", choices=get_args(Half), default="tuning")
    options.add_argument("--engines", nargs="+", default=list(OURS), choices=(*OURS, *ENGINES), metavar="ENGINE")
    options.add_argument("--only", nargs="+", default=[], metavar="ID", help="these documents of the half")
    options.add_argument("--python", nargs="+", default=[], metavar="[ENGINE=]PYTHON")
    options.add_argument("--work", type=Path, help="keeps the engines' Markdown and times; others' are not made again")
    options.add_argument("--out", type=Path, required=True, help="Markdown file for the tables")
    return options


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare engines and write the tables."""
    options = parser().parse_args(arguments)
    pythons: dict[str, str] = dict((["", *given.split("=", 1)])[-2:] for given in options.python)
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
                f"{file} does not exist; fetch it: python -m documents.benchmark.fetch --out FOLDER"
            )
        truth = true_document(entry, options.documents / "truth")
        for engine in options.engines:
            if entry.format not in formats(engine):
                continue
            python = pythons.get(engine, pythons.get("", ""))
            if engine in ENGINES and not python:
                raise UserError(f"--engines {engine} needs --python PYTHON, of an environment that has it.")
            result = read_by(engine, entry, file, python, work)
            rows[engine][entry.id] = result, _scores(entry, truth, result)
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


def _scores(entry: CatalogueEntry, truth: Document, result: ReadDocument) -> Scores | None:
    return scores(truth, result.document, entry.truth.kind in WITH_TABLES) if result.document else None


Row = tuple[ReadDocument, Scores | None]


def _document_table(entry: CatalogueEntry, title: str, rows: dict[str, Row]) -> str:
    about = [
        entry.format,
        *([f"{entry.pages} pages", f"{entry.columns} columns"] if entry.pages else []),
        *entry.contains,
    ]
    lines = [f"## {entry.id}: {title}", "", f"{', '.join(about)}; truth: {entry.truth.kind}", ""]
    table = []
    for engine, (result, scored) in rows.items():
        if scored is None or result.seconds is None:
            table.append([engine, f"did not run: {result.note}"])
        else:
            table.append([engine, *_cells(asdict(scored)), _seconds(result.seconds / (entry.pages or 1))])
    return "\n".join([*lines, *_table(["engine", *_COLUMNS.values(), _unit([entry])], table)])


def _mean_table(kind: str, entries: Sequence[CatalogueEntry], rows: dict[str, dict[str, Row]]) -> str:
    """Means over the documents that an engine read, with 95 % bootstrap intervals over documents.

    The last column is the difference to the first engine's MHS, over the documents that both read.
    """
    ids = {entry.id for entry in entries}
    pages = {entry.id: entry.pages or 1 for entry in entries}
    table = []
    first = {id_: row[1].mhs for id_, row in next(iter(rows.values())).items() if row[1] is not None}
    for engine, of_documents in rows.items():
        found = {id_: row for id_, row in of_documents.items() if id_ in ids}
        scored = [row[1] for row in found.values() if row[1] is not None]
        if not scored:
            if found:
                table.append([engine, f"did not run: {next(iter(found.values()))[0].note}"])
            continue
        values = {name: [value for one in scored if (value := getattr(one, name)) is not None] for name in _COLUMNS}
        cells = _cells({name: fmean(of_documents) if of_documents else None for name, of_documents in values.items()})
        cells = [
            f"{cell} {_interval(values[name])}" if name in _WITH_INTERVALS and values[name] else cell
            for name, cell in zip(_COLUMNS, cells, strict=True)
        ]
        less = [
            row[1].mhs - mhs
            for id_, row in found.items()
            if row[1] is not None and row[1].mhs is not None and (mhs := first.get(id_)) is not None
        ]
        difference = f"{fmean(less):+.3f} {_interval(less, '+')}" if any(less) else "-"
        seconds = [row[0].seconds / pages[id_] for id_, row in found.items() if row[0].seconds is not None]
        name = engine if len(scored) == len(entries) else f"{engine} ({len(scored)} of {len(entries)} documents)"
        table.append([name, *cells, _seconds(fmean(seconds)), difference])
    head = ["engine", *_COLUMNS.values(), _unit(entries), f"MHS less that of {next(iter(rows))}"]
    return "\n".join([f"## Means over {len(entries)} {kind}", "", *_table(head, table)])


def _interval(values: Sequence[float], sign: str = "") -> str:
    """The middle 95 % of the means of resampled documents."""
    drawn = np.random.default_rng(0).choice(np.array(values, float), (_RESAMPLES, len(values))).mean(axis=1)
    low, high = np.percentile(drawn, (2.5, 97.5))
    return f"[{low:{sign}.3f}, {high:{sign}.3f}]"


def _unit(entries: Iterable[CatalogueEntry]) -> str:
    return "s/page" if all(entry.pages for entry in entries) else "s/document"


def _cells(values: dict[str, float | None]) -> list[str]:
    cells = []
    for name in _COLUMNS:
        value = values[name]
        cells.append("-" if value is None else f"{value:g}" if isinstance(value, int) else f"{value:.3f}")
    return cells


def _seconds(value: float) -> str:
    return f"{value:.3f}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return ["| " + " | ".join([*line, *[""] * (len(head) - len(line))]) + " |" for line in lines]


if __name__ == "__main__":
    main()
