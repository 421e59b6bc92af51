"""Gold passages that a question file names but does not ship, looked up in the system's index.

By title or by the corpus's own id.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from common.errors import DataError, UserError
from common.records import Passage, Question, clean, nfkc
from datamodules.formats.gold_in_corpus import in_corpus, named_ids, passages_by_id
from harness.retrievers.corpora import indexes_of

ABSENT = "not in the index: "  # before the name of a gold passage


def with_gold_in_index(
    searching: object, questions: Sequence[Question], missed: bool = False
) -> tuple[list[Question], list[str]]:
    """The questions with their gold passages in an index.

    A gold passage is the one of the index with its title and text; else, and where the file gives a title alone, the
    only one with its title. An id of the corpus (`Gold.corpus_ids`) names all passages that have it, such as
    the chunks of a document, also those that are indexed under the id of an equal one.

    Args:
        searching: A retriever or a system; its first index is read once, in order, or what it has `stored`.
        questions: With or without gold passages.
        missed: Whether gold passages that are not in the index count as never found, as in BEIR: they are in `support`;
            else their questions are left out.

    Returns:
        The questions, and lines for a report on those some of whose gold passages are not there.

    Raises:
        UserError: If nothing that has an index is searched.
        DataError: If gold passages may be missed, and none that the questions name by ids is there.
    """
    searched: Any = next(iter(indexes_of(searching)), searching)
    if not hasattr(searched, "stored"):
        raise UserError(
            "--gold index looks gold passages up in the system's index, and it searches none. Type --gold file."
        )
    titles = {nfkc(title) for question in questions for title in question.gold.titles}
    titles |= {nfkc(passage.title) for question in questions for passage in question.gold_passages}
    by_title: dict[str, list[Passage]] = {}

    def stored() -> Iterator[Passage]:
        for passage in searched.stored:
            if (title := nfkc(passage.title)) in titles:
                by_title.setdefault(title, []).append(passage)
            yield passage

    named = dict.fromkeys(own for question in questions for own in sorted(named_ids(question)))
    by_own_id = passages_by_id(stored(), named)

    def of_title(title: str, id_: str | None = None) -> list[Passage]:
        same = by_title.get(nfkc(title), [])
        return [passage for passage in same if passage.id == id_] or same

    found, unknown, absent, unclear = [], 0, 0, 0
    for question in questions:
        titled = {  # gold passage as the file names it -> the passages of the index
            **{f"passage {each.id}": of_title(each.title, each.id) for each in question.gold_passages},
            **{f"title {title}": of_title(title) for title in question.gold.titles},
        }
        own_gold = in_corpus(question.gold.corpus_ids, by_own_id)
        gold = titled | {f"id {own}": [*by_own_id.get(clean(own), {}).values()] for own in own_gold}
        known = {passage.id: passage for each in gold.values() for passage in each}
        missing = [name for name, each in gold.items() if not each]
        if not gold and not (missed and question.gold.grades):
            unknown += 1
        elif any(len(each) > 1 for each in titled.values()):
            unclear += 1
        elif missing and not missed:
            absent += 1
        else:
            absent += bool(missing)
            shipped = {passage.id for passage in question.passages}
            further = (passage for id_, passage in known.items() if id_ not in shipped)
            grades = dict.fromkeys(map(clean, own_gold), 1.0)
            for own, grade in question.gold.grades:
                grades |= dict.fromkeys(map(clean, in_corpus([own], by_own_id)), grade)
            found.append(
                replace(
                    question,
                    passages=(*question.passages, *further),
                    scores=(),  # they are of the passages in the file alone
                    support=(*known, *(f"{ABSENT}{name}" for name in missing)),
                    gold=replace(question.gold, titles=(), corpus_ids=(), grades=tuple(grades.items())),
                )
            )
    outcome = (
        "have some that are not there and count as missed" if missed else "are left out, for want of some of theirs"
    )
    said = f"{absent:,} of {len(questions):,} questions {outcome}" if absent else "all of them are there"
    lines = [f"gold passages looked up in {searched.folder}: {said}"]
    elsewhere = [own for own in named if any(clean(each) not in by_own_id for each in in_corpus([own], by_own_id))]
    if elsewhere and missed:
        lines.append(f"{len(elsewhere):,} of {len(named):,} judged passages are not there, such as {elsewhere[0]!r}")
        if len(elsewhere) == len(named):
            raise DataError(
                f"None of the {len(named):,} judged passages, such as {elsewhere[0]!r}, is in {searched.folder}: it "
                "must hold the corpus of these questions."
            )
    if unclear:
        lines.append(f"{unclear:,} questions are left out that name a gold passage by a title that several have")
    return found, lines + [f"{unknown:,} questions are left out that name no gold passage"] * bool(unknown)
