"""Hard negatives: passages that retrieval finds and that are not gold, in one stage or in both of DR-RAG's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

from common.gold_copies import GoldCopies
from common.ranges import NonNegativeInt, PositiveInt
from common.records import Passage, Question, Ranked, nfkc
from common.retrieval import search_for
from datamodules.formats.mined_negatives import Mined
from harness.interfaces import Retriever
from harness.retrievers.false_negatives import FalseNegatives
from harness.retrievers.two_stage import concatenate
from harness.runtime.retriever_tree import check_searched


@dataclass(frozen=True)
class HardNegatives:
    """Searches with the question, and with the question and each of its first and gold documents.

    Args:
        retriever: Used for both stages, or for the first.
        per_question: Maximum passages per question, best ranks first.
        anchors: Number of first-stage documents to concatenate with the question, beside the gold ones; 0: no second
            stage.
        depth: Documents taken from each ranking.
        question_weight: How often the question stands before d in Concat(q, d); as in the selection's options.
        second_retriever: Searches with Concat(q, d) instead, as the system's `second_retriever` does.
        false_negatives: Which passages are left out since they may be relevant.
    """

    retriever: Retriever
    per_question: PositiveInt = 24
    anchors: NonNegativeInt = 3
    depth: PositiveInt = 8
    question_weight: PositiveInt = 1
    second_retriever: Retriever | None = None
    false_negatives: FalseNegatives = FalseNegatives()  # noqa: RUF009 (frozen)

    def of(self, questions: Sequence[Question]) -> list[Mined]:
        """The hard negatives of each question; one batched search per stage.

        Raises:
            SearchFailedError: If a search of one query failed.
        """
        max_gold = max(len(question.support) for question in questions)
        first = search_for(self.retriever, questions, self.depth + max_gold)
        check_searched(self.retriever, [question.text for question in questions], first)
        queries = [
            (row, passage.id, concatenate(question.text, passage, self.question_weight))
            for row, (question, hits) in enumerate(zip(questions, first, strict=True))
            if self.anchors
            for passage in {
                p.id: p for p in [*(h.passage for h in hits[: self.anchors]), *question.gold_passages]
            }.values()
        ]
        again, texts = self.second_retriever or self.retriever, [text for *_, text in queries]
        second = search_for(again, [questions[row] for row, *_ in queries], self.depth + self.anchors, texts)
        check_searched(again, texts, second)
        rankings: list[list[list[Ranked]]] = [[hits] for hits in first]
        anchors_of: list[list[str]] = [[] for _ in questions]
        for (row, anchor, _), hits in zip(queries, second, strict=True):
            rankings[row].append(hits)
            anchors_of[row].append(anchor)
        passages = [
            list({passage.id: passage for passage in (*passages_of(own).values(), *question.gold_passages)}.values())
            for question, own in zip(questions, rankings, strict=True)
        ]
        scores = self.false_negatives.scores(questions, passages)
        return [self._chosen(*each) for each in zip(questions, rankings, anchors_of, scores, strict=True)]

    def _chosen(
        self,
        question: Question,
        rankings: Sequence[Sequence[Ranked]],
        anchors_of: Sequence[str],
        scores: Mapping[str, float],
    ) -> Mined:
        """Round robin over the rankings, without gold passages, by title where that alone is known, and their copies.

        The first ranking is Retriever(q); `anchors_of` has the d of each further one; `scores` are P(relevant) by id.
        """
        titles = {nfkc(title) for title in question.gold.titles}
        passages = passages_of(rankings)
        titled = {id_: passage for id_, passage in passages.items() if nfkc(passage.title) in titles}
        gold = {*question.support, *titled}
        texts = GoldCopies.of([*question.gold_passages, *titled.values()])
        copies = {id_ for id_, passage in passages.items() if id_ not in gold and passage in texts}
        depth = self.depth + self.anchors + len(question.support)
        ranks = [[hit.passage if hit.passage.id not in gold | copies else None for hit in hits] for hits in rankings]
        highest = self.false_negatives.highest([scores[id_] for id_ in gold if id_ in scores])
        relevant = {p.id for own in ranks for p in list(filter(None, own))[: self.false_negatives.range_min]}
        relevant |= {p.id for own in ranks for p in own if p and scores.get(p.id, 0.0) > highest}
        in_turns = chain.from_iterable(zip_longest(*(own[:depth] for own in ranks)))
        negatives = {p.id: p for p in in_turns if p is not None and p.id not in relevant}
        kept = list(negatives.values())[: self.per_question]
        known = {passage.id for passage in kept} | set(question.support)
        hits = {
            d: [hit.passage.id for hit in found if hit.passage.id in known and hit.passage.id != d]
            for d, found in zip(anchors_of, rankings[1:], strict=True)
            if d in known
        }
        return Mined(kept, hits, len(copies), [scores[p.id] for p in kept if scores], len(relevant))


def passages_of(rankings: Sequence[Sequence[Ranked]]) -> dict[str, Passage]:
    """All passages of some rankings, by id."""
    return {hit.passage.id: hit.passage for hits in rankings for hit in hits}
