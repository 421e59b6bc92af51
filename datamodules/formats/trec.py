"""TREC's files, qrels and runs, and queries beside their qrels as BEIR has them.  Standard library only."""

import math
import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

from common.errors import DataError, MissingInputError
from common.progress import say
from common.records import clean
from datamodules.formats.file_kinds import opened, rereadable

QUERIES, QRELS, CORPUS = "queries.jsonl", "qrels", "corpus.jsonl"  # of a folder of BEIR
CELLS = "cells"
_HEADERS = ("_id", "id", "qid", "query", "query_id", "query-id", "topic")  # names of a first column
Cells = Iterable[tuple[str, dict]]  # place, and `CELLS` of a line


def judged_files(source: str) -> tuple[Path, Path] | None:
    """The files of queries and of qrels that a source names; None if it names no such pair.

    Args:
        source: `FOLDER:SPLIT` of BEIR, or `QUERIES:QRELS`, two files.

    Raises:
        MissingInputError: If the folder does not have the split.
    """
    name, _, split = source.rpartition(":")
    if not name or Path(source).exists():
        return None
    if not (queries := Path(name, QUERIES)).is_file():
        return (Path(name), Path(split)) if Path(name).is_file() and Path(split).is_file() else None
    if not (qrels := Path(name, QRELS, f"{split}.tsv")).is_file():
        known = ", ".join(sorted(file.stem for file in qrels.parent.glob("*.tsv")))
        raise MissingInputError(f"{source}: {qrels.parent} has no split {split!r}; it has: {known or 'none'}.")
    return queries, qrels


def corpus_beside(source: str) -> str | None:
    """The corpus in the folder of BEIR whose split a source names; None without one."""
    corpus = files[0].with_name(CORPUS) if (files := judged_files(source)) else None
    return str(corpus) if corpus is not None and corpus.is_file() else None


def cell_rows(path: Path) -> Iterator[tuple[str, dict]]:
    """The cells of each line that is not empty, parted by tabs, or by blanks where it has no tab."""
    with ExitStack() as stack:
        for number, line in enumerate(opened(rereadable(path), stack), 1):
            try:
                text = line.decode("utf-8-sig").strip()
            except UnicodeDecodeError as error:
                raise DataError(f"line {number}: not UTF-8: byte 0x{error.object[error.start]:02x}") from error
            if text:
                yield f"line {number}", {CELLS: [*map(str.strip, text.split("\t"))] if "\t" in text else text.split()}


def topics(lines: Cells) -> Iterator[tuple[str, dict]]:
    """The queries of lines `id<tab>text`, as `{_id, text}`; a header is no query."""
    for number, (place, row) in enumerate(lines):
        id_, *text = row[CELLS]
        if number or id_.lower() not in _HEADERS:
            yield place, {"_id": id_, "text": " ".join(text)}


def read_qrels(qrels: str, lines: Cells) -> dict[str, dict[str, str]]:
    """The grade of each judged document, by query; of several grades of a document the last.

    Args:
        qrels: The file's name.
        lines: `query document grade` as in BEIR, or TREC's `query iteration document grade`; the first may be a header.

    Raises:
        DataError: If a line is none of these, or an id has a blank; names it.
    """
    found: dict[str, dict[str, str]] = {}
    for number, (place, row) in enumerate(lines):
        cells = row[CELLS]
        if not number and cells[0].lower() in _HEADERS:
            continue
        if len(cells) not in (3, 4) or not re.fullmatch(r"-?\d+(\.\d+)?", cells[-1]):
            raise DataError(
                f"{qrels}, {place}: {' '.join(cells)[:60]!r} is no judgement: a line is `query document grade`, or "
                "`query iteration document grade`."
            )
        query, document = (clean(check_id(id_, f"{qrels}, {place}")) for id_ in (cells[0], cells[-2]))
        found.setdefault(query, {})[document] = cells[-1]
    return found


def judged_rows(source: str, queries: Cells, qrels: str, lines: Cells) -> Iterator[tuple[str, dict]]:
    """A row `{_id, text, qrels}` for each judged query in the order of `queries`, then for judged ones without a text.

    Queries without judgements, which are of other splits, are counted in one line.

    Raises:
        DataError: As `read_qrels`; if none of the queries is judged.
    """
    judgements, known, others = read_qrels(qrels, lines), set[str](), 0
    for place, row in queries:
        id_ = clean(str(row.get("_id", "")))
        if id_ in judgements:
            known.add(id_)
            yield place, {"_id": id_, "text": row.get("text"), QRELS: judgements[id_]}
        else:
            others += 1
    if not known:
        raise DataError(
            f"{source}: none of its queries has a judgement in {qrels}, which judges others, such as "
            f"{next(iter(judgements), 'none')!r}: give the qrels of these queries."
        )
    if others:
        say_once(f"{source}: {others:,} queries without a judgement in {qrels} are not asked.")
    for id_ in judgements:
        if id_ not in known:
            yield f"query {id_} of {qrels}", {"_id": id_, "text": None, QRELS: judgements[id_]}


def read_run(run: str, lines: Cells) -> tuple[dict[str, dict[str, float]], list[str]]:
    """The documents of each query with their scores, best first, and lines on ties and ranks.

    Scores decide, of equal ones the rank.

    Args:
        run: The file's name.
        lines: `query Q0 document rank score tag`.

    Raises:
        DataError: If a line is another, a score is not finite, or a query has a document twice; names it.
    """
    found: dict[str, dict[str, tuple[float, float]]] = {}
    for place, row in lines:
        try:
            query, _, document, rank, score, _ = row[CELLS]
            order = -float(score), float(rank)
        except ValueError as error:
            shown = " ".join(row[CELLS])[:60]
            raise DataError(f"{run}, {place}: {shown!r} is not `query Q0 document rank score tag`.") from error
        if not math.isfinite(order[0]):
            raise DataError(f"{run}, {place}: the score {score!r} is no finite number.")
        own = found.setdefault(clean(query), {})
        if document in own:
            raise DataError(f"{run}, {place}: the document {document!r} is there twice for the query {query!r}.")
        own[clean(document)] = order
    ranked = {query: {one: -own[one][0] for one in sorted(own, key=own.__getitem__)} for query, own in found.items()}
    tied = sum(len({*own.values()}) < len(own) for own in ranked.values())
    ranks = ([found[query][document][1] for document in own] for query, own in ranked.items())
    other = sum(each != sorted(each) for each in ranks)
    told = {"equal scores, of which the rank decides": tied, "ranks that contradict the scores, which decide": other}
    return ranked, [f"{count:,} queries have {what}" for what, count in told.items() if count]


def check_id(id_: str, whose: str) -> str:
    """An id that a line of TREC's files can hold.  Raises DataError if it is empty or has a blank."""
    if len(id_.split()) != 1:
        raise DataError(f"{whose}: the id {id_!r} has a blank or is empty, which no file of TREC can hold.")
    return id_


@cache
def say_once(line: str) -> None:
    """Print a line once: a file is read several times."""
    say(line)
