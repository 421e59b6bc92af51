"""Hard negatives: passages that retrieval finds and that are not gold, in one stage or in both of DR-RAG's."""

from collections.abc import Sequence
from dataclasses import dataclass

from common.gold_copies import GoldCopies
from common.ranges import NonNegativeInt, PositiveInt
from common.records import Passage, Question, Ranked, nfkc
from common.retrieval import search_for
from datamodules.formats.mined_negatives import Mined
from harness.interfaces import Retriever
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
    """

    retriever: Retriever
    per_question: PositiveInt = 24
    anchors: NonNegativeInt = 3
    depth: PositiveInt = 8
    question_weight: PositiveInt = 1
    second_retriever: Retriever | None = None

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
        return [self._chosen(*each) for each in zip(questions, rankings, anchors_of, strict=True)]

    def _chosen(self, question: Question, rankings: Sequence[Sequence[Ranked]], anchors_of: Sequence[str]) -> Mined:
        """Round robin over the rankings, without gold passages, by title where that alone is known, and their copies.

        The first ranking is Retriever(q); `anchors_of` has the d of each further one.
        """
        titles = {nfkc(title) for title in question.gold.titles}
        passages = {hit.passage.id: hit.passage for hits in rankings for hit in hits}
        titled = {id_: passage for id_, passage in passages.items() if nfkc(passage.title) in titles}
        gold = {*question.support, *titled}
        texts = GoldCopies.of([*question.gold_passages, *titled.values()])
        copies = {id_ for id_, passage in passages.items() if id_ not in gold and passage in texts}
        negatives: dict[str, Passage] = {}
        for rank in range(self.depth + self.anchors + len(question.support)):
            for passage in (hits[rank].passage for hits in rankings if rank < len(hits)):
                if passage.id not in gold and passage.id not in copies:
                    negatives.setdefault(passage.id, passage)
        kept = list(negatives.values())[: self.per_question]
        known = {passage.id for passage in kept} | set(question.support)
        hits = {
            d: [hit.passage.id for hit in found if hit.passage.id in known and hit.passage.id != d]
            for d, found in zip(anchors_of, rankings[1:], strict=True)
            if d in known
        }
        return Mined(kept, hits, len(copies))
