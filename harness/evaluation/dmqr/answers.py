"""The methods of DMQR-RAG's study as the answers of systems: evidence, texts, costs and notes of every question."""

from collections.abc import Sequence
from dataclasses import replace

from common.records import Answer, Question
from harness.evaluation.dmqr.search import Found, Spent
from harness.readers.read_answers import sum_costs
from harness.retrievers.multi_query_records import counts, explanation


def method_answers(
    questions: Sequence[Question],
    found: Found,
    k: int,
    spent: Spent,
    read: Sequence[Answer] | None,
    reading_seconds: float,
) -> list[Answer]:
    """One answer per question.

    A method is charged for what it alone would need: its searches, its pairs at the mean time of a pair, the calls of
    the rewriter for its strategies, and reading.

    Args:
        questions: All of them.
        found: Of the method.
        k: Passages of the evidence.
        spent: Mean costs.
        read: What the reader answered, one per question; None without a reader.
        reading_seconds: Per question.
    """
    method, answers = found.method, []
    for number, (question, hits) in enumerate(zip(questions, found.hits, strict=True)):
        own = replace(hits, ranked=hits.ranked[:k])
        seconds = {
            "retrieval": spent.search_seconds[method.retriever] * len(hits.searches),
            "reranking": spent.pair_seconds * hits.scored,
        }
        costs = {
            **counts(own, spent.pair_tokens * hits.scored),
            **{f"seconds/{stage}": value for stage, value in seconds.items()},
        }
        answer = Answer(question.id, "", own.ranked, costs=costs, notes={} if method.part else explanation(own))
        if read is not None:
            text = read[number]
            costs = {**sum_costs(costs, text.costs), "seconds/reading": reading_seconds}
            answer = replace(text, evidence=own.ranked, costs=costs, notes={**answer.notes, **text.notes})
        answers.append(answer)
    return answers
