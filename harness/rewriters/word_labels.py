"""Labels of the extractive rewriter.

How much the retrieval of a question's gold passages changes with and without each word.

f(query) = mean over the gold passages of C² / (C² + rank²), rank from 1 in the retriever's list of `depth` passages, 0
if not in it

f is a smooth recall@C: a passage that moves from rank 30 to rank 5 changes it much, one that moves from rank 2 to rank
1 hardly.

    change with word w      f(q + " " + w) - f(q)     each distinct word w of the feedback passages that q lacks
    change without word w   f(q without w) - f(q)     each distinct word w of q; f is 0 if no word is left
"""

from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass
from itertools import chain, islice, zip_longest

from common.ranges import PositiveFloat, PositiveInt
from common.records import Passage, Question, Ranked
from common.words import distinct_words, new_words, without, words_of
from datamodules.formats.word_labels import WordLabels
from harness.indexing.passage_store import indexed_text
from harness.interfaces import Retriever

VALUE = "mean of C^2 / (C^2 + rank^2)"  # f; an interrupted run that computed another value is not continued


def gold_recall(hits: Sequence[Ranked], gold: Sequence[Set[str]], half_rank: float) -> float:
    """f: mean over the gold passages of C² / (C² + rank²), 0 for those that are not among the hits.

    Args:
        hits: Distinct, best first.
        gold: `Question.gold_groups`, at least one; the best rank of a group counts.
        half_rank: C, the rank at which a passage counts half.
    """
    rank_of = {hit.passage.id: rank for rank, hit in enumerate(hits, 1)}
    ranks = [min((rank_of[id_] for id_ in group if id_ in rank_of), default=None) for group in gold]
    return sum(half_rank**2 / (half_rank**2 + rank**2) for rank in sorted(filter(None, ranks))) / len(gold)


def interleaved(lists: Sequence[Sequence[Ranked]], most: int) -> list[Passage]:
    """The first distinct passages of several lists: the best of each list, then the second of each, and so on."""
    ranks = (hit.passage for hit in chain.from_iterable(zip_longest(*lists)) if hit is not None)
    return list(islice(dict.fromkeys(ranks), most))


@dataclass(frozen=True)
class WordLabeler:
    """Labels the words of questions and of their feedback passages by searches of one retriever.

    Args:
        retriever: The labels are of its lists.
        feedback_retrievers: Further retrievers over the same corpus, whose passages join the retriever's as feedback,
            interleaved by rank.
        passages: Feedback passages per question, of all retrievers together.
        depth: Passages per search; gold passages below count 0.
        half_rank: Rank at which a gold passage counts half (C).
    """

    retriever: Retriever
    feedback_retrievers: list[Retriever] | None = None
    passages: PositiveInt = 5
    depth: PositiveInt = 100
    half_rank: PositiveFloat = 10.0

    @property
    def retrievers(self) -> list[Retriever]:
        """All that it searches."""
        return [self.retriever, *(self.feedback_retrievers or ())]

    def label(self, questions: Sequence[Question]) -> list[WordLabels]:
        """The labels of every question, in order; each must have a gold passage.

        All variants of all questions are one search: as many queries as the questions and their passages have distinct
        words.
        """
        texts = [question.text for question in questions]
        found = [retriever.search(texts, self.passages) for retriever in self.retrievers]
        feedback_passages = [interleaved(lists, self.passages) for lists in zip(*found, strict=True)]
        leaving = [distinct_words(text) for text in texts]
        joining = [
            new_words(text, map(indexed_text, passages))
            for text, passages in zip(texts, feedback_passages, strict=True)
        ]
        variants = [
            [text, *(_searchable(without(text, {word})) for word in own), *(f"{text} {word}" for word in others)]
            for text, own, others in zip(texts, leaving, joining, strict=True)
        ]
        searched = iter(self.retriever.search([*chain.from_iterable(variants)], self.depth))
        labels = []
        for question, passages, own, others, queries in zip(
            questions, feedback_passages, leaving, joining, variants, strict=True
        ):
            gold = question.gold_groups
            recall, *changed = [gold_recall(hits, gold, self.half_rank) for hits in islice(searched, len(queries))]
            changes = [value - recall for value in changed]
            labels.append(
                WordLabels(
                    question.id,
                    question.text,
                    recall,
                    dict(zip(own, changes[: len(own)], strict=True)),
                    dict(zip(others, changes[len(own) :], strict=True)),
                    tuple(passages),
                )
            )
        return labels


def _searchable(query: str) -> str:
    """The query, or an empty one, which finds nothing, if it has no word."""
    return query if words_of(query) else ""


class LabelCounts:
    """Counts of labelled words, and of those that help or harm."""

    def __init__(self) -> None:
        self.questions = 0
        self._counts: Counter[str] = Counter()

    def add(self, labels: WordLabels) -> None:
        """Count one question's words."""
        self.questions += 1
        new, own = new_words(labels.question, map(indexed_text, labels.passages)), distinct_words(labels.question)
        joined, staying = labels.with_word.values(), [-each for each in labels.without_word.values()]
        for name, words, changes in (("words of passages", new, joined), ("words of questions", own, staying)):
            better, worse = sum(each > 0 for each in changes), sum(each < 0 for each in changes)
            self._counts.update({name: len(words), f"{name} that help": better, f"{name} that harm": worse})

    def __str__(self) -> str:
        """One line for the console."""
        return ", ".join([f"{self.questions:,} questions", *(f"{n:,} {name}" for name, n in self._counts.items())])
