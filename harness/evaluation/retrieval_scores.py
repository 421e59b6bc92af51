"""Retrieval scores of every question.

Recall, hit rate and precision at k, MRR, EM and F1 of the passages, Log-Rank Index, and has-answer recall and precision
at k.

Shape legend: N questions.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from math import nan

import numpy as np
from numpy.typing import NDArray

from common.answer_metrics import findable, has_answer
from common.gold_segments import documents_of, is_relevant
from common.records import Passage, Question, Ranked
from harness.evaluation.log_rank import log_rank_index

_has_answer = lru_cache(maxsize=2**17)(has_answer)  # the rows of a study have passages in common
Holders = Sequence[Collection[str]]  # ids of passages, for each gold passage or gold segment


def retrieval_scores(
    questions: Sequence[Question], evidence: Sequence[Sequence[Ranked]], ks: Sequence[int], indexed: int | None = None
) -> dict[str, NDArray[np.float64]]:
    """Scores of every question's evidence against its gold passages and its answers; (N,) each, 0 to 1.

    The gold passages with one id in the corpus, such as the chunks of a document, count as one, which is found at the
    first of them (`Question.gold_groups`). A passage that occurs several times counts once, at its first place. NaN
    where a score is undefined: the first eight if the file names no gold passages or does not ship all of them,
    has-answer if it gives no answers. Where a file names gold segments of documents instead of passages, a segment is
    found at the first passage that holds its evidence (`common.gold_segments`).

        recall@k      share of the gold passages or gold segments among the first k
        all@k         1 if all of them are among the first k, else 0
        hit@k         1 if one of them is among the first k, else 0
        precision@k   passages among the first k that are gold or hold a gold segment, divided by k even if there are
                      fewer, as trec_eval does
        MRR           1 / place of the first one, in all of the evidence; 0 without one
        EM            1 if all of the evidence is gold and no gold is missing, else 0 (Beam Retrieval's, of a selection
                      that says how many)
        F1            harmonic mean of recall and of the share of the evidence that is gold or holds a gold segment; 0
                      without evidence
        Log-Rank      HiQA's index (`harness.evaluation.log_rank`) in the ranking of all `indexed` passages; what is not
                      in the evidence counts as last; only with `indexed`
        has-answer@k  1 if one of the first k contains an answer by DPR's rule (`common.answer_metrics.has_answer`),
                      else 0
        has-answer precision@k  those of the first k that contain one, divided by k

    Args:
        questions: The questions, with the gold passages and answers of their file.
        evidence: The passages found for each question, best first.
        ks: Numbers of passages, in the order of the columns.
        indexed: Number of passages of the index that was searched.

    Returns:
        The columns by name: for each k `recall@k`, `all@k`, `hit@k`, `precision@k`, `has-answer@k`, `has-answer
        precision@k`, then `MRR`, `EM`, `F1`, and with `indexed` `Log-Rank`.
    """
    rows = [_scores(question, hits, ks, indexed) for question, hits in zip(questions, evidence, strict=True)]
    of_k = ("recall", "all", "hit", "precision", "has-answer", "has-answer precision")
    names = [*(f"{name}@{k}" for k in ks for name in of_k), "MRR", "EM", "F1", *["Log-Rank"] * (indexed is not None)]
    return {name: np.array([row[name] for row in rows], dtype=np.float64) for name in names}


def gold_places(
    question: Question, passages: Sequence[Passage], holders: Holders | None = None
) -> tuple[list[int | None], list[int]]:
    """The place, from 1, at which each gold passage or gold segment is found, None where it is not.

    Also the places of all passages that are gold or hold a gold segment.

    Args:
        question: One whose file does not ship all gold passages has none.
        passages: Distinct, best first.
        holders: Of the question, see `holders_of`, where many rankings of the same passages are scored; None: looked up
            among `passages`.
    """
    held = holders_of(question, by_document(passages) if question.gold.segments else {}) if holders is None else holders
    place_of = {passage.id: place for place, passage in enumerate(passages, start=1)}
    found = [[place_of[id_] for id_ in ids if id_ in place_of] for ids in held]
    return [min(each, default=None) for each in found], sorted({place for each in found for place in each})


def holders_of(question: Question, of_document: Mapping[str, Sequence[Passage]]) -> Holders:
    """For each gold passage or gold segment of a question the ids of the passages that are it or hold it.

    Args:
        question: One whose file does not ship all gold passages has none.
        of_document: The passages of each document, for gold segments.
    """
    groups = () if question.gold.titles else question.gold_groups
    segments = () if groups else question.gold.segments
    held = [{p.id for p in of_document.get(gold.document, ()) if is_relevant(p, gold)} for gold in segments]
    return [*groups, *held]


def by_document(passages: Iterable[Passage]) -> dict[str, list[Passage]]:
    """The passages of each document."""
    found: dict[str, list[Passage]] = {}
    for passage in passages:
        for document in documents_of(passage):
            found.setdefault(document, []).append(passage)
    return found


def _scores(question: Question, hits: Sequence[Ranked], ks: Sequence[int], indexed: int | None) -> dict[str, float]:
    """One question's scores by column."""
    passages = list({hit.passage.id: hit.passage for hit in hits}.values())
    gold, relevant = gold_places(question, passages)
    places = [place for place in gold if place]
    first = enumerate(passages[: max(ks, default=0)], start=1)
    looked_for = tuple(findable(question.answers))
    held = [place for place, each in first if _has_answer(each.text, looked_for)]
    scores = {
        "MRR": (1 / min(places) if places else 0.0) if gold else nan,
        "EM": float(len(places) == len(gold) and len(relevant) == len(passages)) if gold else nan,
        "F1": _f1(len(places) / len(gold), len(relevant) / len(passages) if passages else 0.0) if gold else nan,
    }
    if indexed is not None:
        scores["Log-Rank"] = log_rank_index(gold, max(indexed, len(passages)))
    for k in ks:
        found = sum(place <= k for place in places)
        scores[f"recall@{k}"] = found / len(gold) if gold else nan
        scores[f"all@{k}"] = float(found == len(gold)) if gold else nan
        scores[f"hit@{k}"] = float(found > 0) if gold else nan
        scores[f"precision@{k}"] = sum(place <= k for place in relevant) / k if gold else nan
        answered = sum(place <= k for place in held)
        scores[f"has-answer@{k}"] = float(answered > 0) if looked_for else nan
        scores[f"has-answer precision@{k}"] = answered / k if looked_for else nan
    return scores


def _f1(recall: float, precision: float) -> float:
    """Their harmonic mean."""
    return 2 * recall * precision / (recall + precision) if recall and precision else 0.0
