"""Retrieval recall of validation questions with and without their rewrites.

Reads gold passages, searches, and counts.
"""

from collections.abc import Collection, Sequence, Set
from typing import NamedTuple

from common.errors import DataError
from common.progress import track
from common.records import Passage, Question, nfkc, passage_text
from common.retrieval import Retriever, search_fused, share_found
from datamodules.examples.data_files import QuestionDataFile
from datamodules.formats.row_counts import RowCounts

_PROBED = 20  # gold passages that are searched by their own text, to check the index

Asked = tuple[str, tuple[str, ...]]  # a question and the turns of the dialogue before it, oldest first, all cleaned


class Recall(NamedTuple):
    """Shares of a question's gold passages, 0 to 1."""

    fused: float  # in the first k of question and rewrites, fused
    question: float  # in the first k of the question alone


def asked(question: str, history: Sequence[str] = ()) -> Asked:
    """The key by which questions of different files are compared."""
    return nfkc(question), tuple(map(nfkc, history))


def read_gold(
    sources: Sequence[QuestionDataFile], wanted: Collection[Asked], counts: RowCounts | None = None
) -> dict[Asked, Question]:
    """Those wanted questions that the files have with gold passages, compared by their text and the turns before it.

    Of a question that occurs several times the first occurrence with all its gold passages counts; `counts` counts what
    is unusual in the files.

    Raises:
        DataError: If the files have none of the questions together with the texts of all its gold passages.
    """
    wanted, found, incomplete = set(wanted), {}, set()
    for source in sources:
        for question in track(source.questions(counts), None, f"reading gold passages from {source.path}"):
            key = asked(question.text, question.history)
            if key not in wanted or key in found:
                continue
            if question.gold_passages and not question.gold.titles:
                found[key] = question
            else:
                incomplete.add(key)
    if not found:
        without = f" ({len(incomplete)} are, without the texts of their gold passages)" if incomplete else ""
        raise DataError(
            f"none of the {len(wanted):,} validation questions, such as {min(wanted)[0][:80]!r}, is in "
            f"data.gold_questions {[source.path for source in sources]}{without}: name the question files that the "
            "rewrites were made of."
        )
    return found


def check_corpus(retriever: Retriever, gold: Collection[tuple[Passage, ...]], k: int) -> None:
    """Check that the retriever's corpus holds gold passages, by searching some of them by their own text.

    Raises:
        DataError: If it finds none of them.
    """
    passages = [passage for each in gold for passage in each][:_PROBED]
    hits = retriever.search([passage_text(passage) for passage in passages], k)
    if not any(passage.id in {hit.passage.id for hit in each} for passage, each in zip(passages, hits, strict=True)):
        raise DataError(
            f"data.retriever finds none of {len(passages)} gold passages by its own text, such as "
            f"{passages[0].title[:80]!r}: build its index from the passages of data.gold_questions; a passage is known "
            "by its title and text."
        )


def recalls(
    retriever: Retriever, k: int, queries: Sequence[Sequence[str]], gold: Sequence[Sequence[Set[str]]]
) -> list[Recall]:
    """Recall of every question at k passages, with one batched search.

    Question and rewrites get k passages together, as many as the question alone: each query retrieves k, and the lists
    are fused by reciprocal ranks.

    Args:
        retriever: Searches.
        k: Passages of each query, and of the fused list.
        queries: Of each question: itself, then its rewrites, all distinct.
        gold: Each question's `Question.gold_groups`, at least one.
    """
    lists = search_fused(retriever, [*queries, *(each[:1] for each in queries)], k)
    together, alone = lists[: len(queries)], lists[len(queries) :]
    return [
        Recall(*(share_found(groups, (hit.passage.id for hit in found[:k])) for found in pair))
        for *pair, groups in zip(together, alone, gold, strict=True)
    ]
