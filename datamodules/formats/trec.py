"""TREC's files, qrels and runs, and queries beside their qrels as BEIR has them.  Standard library only."""

import math
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
    folder = Path(name)
    if not (queries := packed(folder / QUERIES)).is_file():
        return (folder, Path(split)) if folder.is_file() and Path(split).is_file() else None
    if not (qrels := packed(folder / QRELS / f"{split}.tsv")).is_file():
        known = sorted(file.name.partition(".tsv")[0] for file in (folder / QRELS).glob("*.tsv*"))
        raise MissingInputError(
            f"{source}: {folder / QRELS} has no split {split!r}; it has: {', '.join(known) or 'none'}."
        )
    return queries, qrels


def corpus_beside(source: str) -> str | None:
    """The corpus in the folder of BEIR whose split a source names; None without one."""
    files = judged_files(source)
    corpus = packed(files[0].parent / CORPUS) if files else None
    return str(corpus) if corpus is not None and corpus.is_file() else None


def packed(path: Path) -> Path:
    """The file, or its gzip'd form where only that is there."""
    other = path.with_name(f"{path.name}.gz")
    return other if other.is_file() and not path.exists() else path


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


def read_qrels(qrels: str, lines: Cells) -> dict[str, dict[str, float]]:
    """The grade of each judged document, by query.

    Of several grades of a document the highest counts.

    Args:
        qrels: The file's name.
        lines: `query document grade` as in BEIR, or TREC's `query iteration document grade`; the first may be a header.

    Raises:
        DataError: If a line is none of these, or an id has a blank; names it.
    """
    found: dict[str, dict[str, float]] = {}
    for number, (place, row) in enumerate(lines):
        cells = row[CELLS]
        grade = _number(cells[-1])
        if not number and cells[0].lower() in _HEADERS:
            continue
        if len(cells) not in (3, 4) or not math.isfinite(grade):
            raise DataError(
                f"{qrels}, {place}: {' '.join(cells)[:60]!r} is no judgement: a line is `query document grade`, or "
                "`query iteration document grade`."
            )
        query, document = (clean(check_id(id_, f"{qrels}, {place}")) for id_ in (cells[0], cells[-2]))
        own = found.setdefault(query, {})
        own[document] = max(grade, own.get(document, grade))
    return found


def judged_rows(source: str, queries: Cells, qrels: str, lines: Cells) -> Iterator[tuple[str, dict]]:
    """A row `{_id, text, qrels}` for each judged query in the order of `queries`, then for judged ones without a text.

    Queries without judgements, which are of other splits, are counted in one line.

    Raises:
        DataError: As `read_qrels`; if a query is there twice, or none is judged.
    """
    judgements = read_qrels(qrels, lines)
    absent, others = dict(judgements), 0
    for place, row in queries:
        id_ = clean(str(row.get("_id", "")))
        others += id_ not in judgements
        if id_ in judgements:
            if absent.pop(id_, None) is None:
                raise DataError(f"{source}, {place}: the query {id_!r} is there twice.")
            yield place, {"_id": id_, "text": row.get("text"), QRELS: judgements[id_]}
    if len(absent) == len(judgements):
        raise DataError(
            f"{source}: none of its queries has a judgement in {qrels}, which judges others, such as "
            f"{next(iter(judgements), 'none')!r}: give the qrels of these queries."
        )
    if others:
        say_once(f"{source}: {others:,} queries without a judgement in {qrels} are not asked.")
    for id_, own in absent.items():
        yield f"query {id_} of {qrels}", {"_id": id_, "text": None, QRELS: own}


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
        cells = row[CELLS]
        rank, score = (_number(cell) for cell in cells[3:5]) if len(cells) == 6 else (math.nan, 0.0)
        if math.isnan(rank):
            raise DataError(
                f"{run}, {place}: {' '.join(cells)[:60]!r} is no line of a run, `query Q0 document rank score tag`."
            )
        if not math.isfinite(score):
            raise DataError(f"{run}, {place}: the score {cells[4]!r} is no finite number.")
        own, document = found.setdefault(clean(cells[0]), {}), clean(cells[2])
        if document in own:
            raise DataError(f"{run}, {place}: the document {document!r} is there twice for the query {cells[0]!r}.")
        own[document] = -score, rank
    told, ranked = [], {}
    for query, own in found.items():
        ranked[query] = {document: -own[document][0] for document in sorted(own, key=lambda each: own[each])}
    tied = sum(len(set(each.values())) < len(each) for each in ranked.values())
    other = sum([*each] != sorted(each, key=lambda one, of=found[query]: of[one][1]) for query, each in ranked.items())
    if tied:
        told.append(f"{tied:,} queries have equal scores, of which the rank decides")
    if other:
        told.append(f"the ranks of {other:,} queries contradict their scores, which decide")
    return ranked, told


def check_id(id_: str, whose: str) -> str:
    """An id that a line of TREC's files can hold.  Raises DataError if it is empty or has a blank."""
    if len(id_.split()) != 1:
        raise DataError(f"{whose}: the id {id_!r} has a blank or is empty, which no file of TREC can hold.")
    return id_


def _number(text: str) -> float:
    """NaN for what is no number."""
    try:
        return float(text)
    except ValueError:
        return math.nan


@cache
def say_once(line: str) -> None:
    """Print a line once: a file is read several times."""
    say(line)
