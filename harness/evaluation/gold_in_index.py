"""Gold passages that a question file names but does not ship, looked up in the system's index.

By title or by the corpus's own id.
"""

from collections.abc import Sequence
from dataclasses import replace

from common.errors import UserError
from common.records import Passage, Question, clean
from harness.retrievers.corpora import indexes_of


def with_gold_in_index(searching: object, questions: Sequence[Question]) -> tuple[list[Question], list[str]]:
    """The questions all of whose gold passages are in an index, with these as their gold passages.

    A gold passage is the one of the index with its title and text; else, and where the file gives a title alone, the
    only one with its title. An id of the corpus (`Question.gold_corpus_ids`) names all passages that have it, such as
    the chunks of a document.

    Args:
        searching: A retriever or a system; its first index is read once, in order.
        questions: With or without gold passages.

    Returns:
        The questions, and lines for a report on those that were left out.

    Raises:
        UserError: If nothing that has an index is searched.
    """
    indexes = indexes_of(searching)
    if not indexes:
        raise UserError(
            "--gold index looks gold passages up in the system's index, and it searches none. Type --gold file."
        )
    titles = {clean(title) for question in questions for title in _gold_titles(question)}
    own_ids = {own for question in questions for own in question.gold_corpus_ids}
    by_title: dict[str, list[Passage]] = {}
    by_own_id: dict[str, list[Passage]] = {}
    for passage in indexes[0].stored:
        if passage.title in titles:
            by_title.setdefault(passage.title, []).append(passage)
        if passage.corpus_id in own_ids:
            by_own_id.setdefault(passage.corpus_id, []).append(passage)

    def of_title(title: str, id_: str | None = None) -> Passage | None:
        same = by_title.get(clean(title), [])
        exact = [passage for passage in same if passage.id == id_]
        return next(iter(exact or (same if len(same) == 1 else [])), None)

    found, unknown, absent = [], 0, 0
    for question in questions:
        gold = [
            *(of_title(passage.title, passage.id) for passage in question.gold),
            *(of_title(title) for title in question.unshipped_support),
            *(passage for own in question.gold_corpus_ids for passage in by_own_id.get(own, [None])),
        ]
        known = {passage.id: passage for passage in gold if passage is not None}
        if not gold:
            unknown += 1
        elif None in gold:
            absent += 1
        else:
            shipped = {passage.id for passage in question.passages}
            further = (passage for id_, passage in known.items() if id_ not in shipped)
            found.append(
                replace(
                    question,
                    passages=(*question.passages, *further),
                    scores=(),  # they are of the passages in the file alone
                    support=tuple(known),
                    unshipped_support=(),
                    gold_corpus_ids=(),
                )
            )
    left_out = f"{absent:,} of {len(questions):,} questions are left out, for want of some of theirs"
    lines = [f"gold passages looked up in {indexes[0].folder}: {left_out if absent else 'all of them are there'}"]
    return found, lines + [f"{unknown:,} questions are left out that name no gold passage"] * bool(unknown)


def _gold_titles(question: Question) -> list[str]:
    return [*(passage.title for passage in question.gold), *question.unshipped_support]
