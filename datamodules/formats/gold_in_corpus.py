"""Reads questions with their gold passages, also where the file names these by the ids of a corpus."""

import re
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from dataclasses import replace

from common.errors import DataError, UserError
from common.records import Passage, Question, clean
from datamodules.formats.cells import whole
from datamodules.formats.reading import read_joined_questions, read_passages
from datamodules.formats.row_counts import RowCounts
from datamodules.formats.trec import corpus_beside, say_once

CORPUS_LAYOUT = "jsonl"


def read_questions_with_gold(
    layout: str,
    source: str,
    limit: int | None = None,
    corpus: str | None = None,
    counts: RowCounts | None = None,
    min_grade: int | None = None,
) -> Iterator[Question]:
    """The questions of a file, in file order; several rows of one question are joined (`read_joined_questions`).

    Gold passages that it names by a corpus's own ids become passages of the question: all passages that have the id,
    such as the chunks of a document. Questions some of whose gold passages are not in the corpus are left out, and
    counted in one line.

    Args:
        layout: Layout of the questions.
        source: As of `read_questions`.
        limit: Maximum number of rows; all by default.
        corpus: The corpus whose ids `Gold.corpus_ids` are, in the layout jsonl; read once, of which the gold
            passages, and those that are judged, are kept in memory. Not used by a file that names no ids. None: of a
            folder of BEIR the corpus in it.
        counts: Counts what is unusual.
        min_grade: As of `at_least`.

    Raises:
        UserError: While reading, if a question names gold passages by ids and no corpus is given; else as
            `read_questions`.
        DataError: While reading, if the corpus lacks gold passages of all questions.
    """
    questions = at_least(min_grade, read_joined_questions(layout, source, limit, counts))
    if (corpus := corpus or corpus_beside(source)) is None:
        return _without_corpus(questions, source)
    again = at_least(min_grade, read_joined_questions(layout, source, limit))
    return _with_corpus(again, questions, source, corpus)


def at_least(min_grade: int | None, questions: Iterable[Question]) -> Iterator[Question]:
    """The questions with those of their gold passages that have this grade or a higher one; all of them for None.

    What has no grade has the grade 1. Lower grades stay in `Gold.grades`.
    """
    for question in questions:
        grades = dict(question.gold.grades)
        support, ids = (
            tuple(id_ for id_ in gold if grades.get(id_, 1) >= (min_grade or 0))
            for gold in (question.support, question.gold.corpus_ids)
        )
        yield replace(question, support=support, gold=replace(question.gold, corpus_ids=ids))


def _without_corpus(questions: Iterator[Question], source: str) -> Iterator[Question]:
    for question in questions:
        if question.gold.corpus_ids:
            raise UserError(
                f"{source} names its gold passages by the ids of a corpus, such as {question.gold.corpus_ids[0]!r}: "
                "give that corpus's file too, as --corpus FILE, in a training as --data.corpus FILE."
            )
        yield question


def _with_corpus(
    questions: Iterator[Question], again: Iterator[Question], source: str, corpus: str
) -> Iterator[Question]:
    named = [id_ for question in questions for id_ in named_ids(question)]
    if not named:
        say_once(f"{source} names no gold passage by the ids of a corpus: {corpus} is not used.")
    found = passages_by_id(read_passages(CORPUS_LAYOUT, [corpus], repeated=True) if named else (), named)
    if several := [own for own, each in found.items() if len(each) > 1]:
        say_once(
            f"{corpus}: {len(several):,} of the ids that {source} names are of several passages with different texts, "
            f"which all count, such as {several[0]!r}."
        )
    kept, absent = 0, []  # of those that are left out a gold passage that is not there
    for question in again:
        question = replace(question, gold=replace(question.gold, corpus_ids=in_corpus(question.gold.corpus_ids, found)))
        if missing := [id_ for id_ in question.gold.corpus_ids if clean(id_) not in found]:
            absent.append(f"{missing[0]!r} of question {question.id!r}")
            continue
        kept += 1
        yield _with_passages(question, found)
    if absent and not kept:
        raise DataError(
            f"{source}: the gold passage {absent[0]} is not in {corpus}, and so it is with every question. "
            "Give the corpus that the questions were written for; several ids in one cell are parted by |, commas or "
            "semicolons."
        )
    if absent:
        say_once(
            f"{source}: {len(absent):,} of {kept + len(absent):,} questions are left out, for want of gold passages in "
            f"{corpus}, such as {absent[0]}."
        )


def in_corpus(ids: Collection[str], corpus: Container[str]) -> tuple[str, ...]:
    """The ids as a corpus has them: a cell whose text is no id of it, and all of whose parts are, is several ids.

    An id is looked up as written, then as a whole number: 3.0, as tables with missing values write it, is 3.

    Args:
        ids: As the file of questions gives them; several in one cell may be parted by commas or semicolons.
        corpus: The ids of the corpus, cleaned, and the whole numbers of those that end in .0.
    """
    found: dict[str, None] = {}
    for id_ in ids:
        own = [id_] if clean(id_) in corpus else parts(id_)
        known = [each if clean(each) in corpus else whole(clean(each)) for each in own]
        found |= dict.fromkeys(known if all(clean(each) in corpus for each in known) else [id_])
    return tuple(found)


def passages_by_id(passages: Iterable[Passage], named: Iterable[str]) -> dict[str, dict[str, Passage]]:
    """The passages that ids name, as they are in the corpus or in parts, by own id, then by id; 3.0 is 3, too."""
    ids = {form for id_ in named for each in (clean(id_), *parts(id_)) for form in (each, whole(each))}
    found: dict[str, dict[str, Passage]] = {}
    by_number: dict[str, dict[str, Passage]] = {}  # the same of ids such as 3.0, by 3
    for passage in passages:
        for own in map(clean, (passage.corpus_id, *passage.other_ids)):
            if own in ids:
                found.setdefault(own, {}).setdefault(passage.id, passage)
            elif (number := whole(own)) in ids:
                by_number.setdefault(number, {}).setdefault(passage.id, passage)
    return by_number | found


def parts(id_: str) -> list[str]:
    """The parts of a cell at commas and semicolons, cleaned."""
    return [part for each in re.split("[,;]", id_) if (part := clean(each))]


def named_ids(question: Question) -> set[str]:
    """The ids of the corpus that a question names: of gold passages, and of those that are judged."""
    gold = question.gold
    return {*gold.corpus_ids, *(id_ for id_, _ in gold.grades)} - {each.id for each in question.passages}


def _with_passages(question: Question, found: Mapping[str, Mapping[str, Passage]]) -> Question:
    """A question with the passages that it names by the ids of a corpus."""
    known = question.gold
    named = [clean(id_) for id_ in (*known.corpus_ids, *(id_ for id_, _ in known.grades))]
    gold = {id_: None for own in known.corpus_ids for id_ in found[clean(own)]}
    grades = tuple((id_, grade) for own, grade in known.grades for id_ in found.get(clean(own), (own,)) if grade)
    joined = {id_: each for own in named for id_, each in found.get(own, {}).items()}
    shipped = {passage.id for passage in question.passages}
    return replace(
        question,
        passages=(*question.passages, *(passage for id_, passage in joined.items() if id_ not in shipped)),
        scores=() if joined else question.scores,  # they are of the passages in the file alone
        support=tuple(dict.fromkeys([*question.support, *gold])),
        gold=replace(known, corpus_ids=(), grades=grades),
    )
