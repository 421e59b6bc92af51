"""Answers against gold answers: EM, F1 and accuracy by inclusion, per question and as means with intervals.

Shape legend: N questions, R rows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from common.answer_metrics import Normalize, exact_match, f1, inclusion, re_rag, squad, triviaqa
from common.errors import UserError
from common.records import Answer, Question
from harness.evaluation.bootstrap import paired_intervals
from harness.evaluation.tables import Cell, Table

Normalization = Literal["squad", "triviaqa", "re_rag"]
NORMALIZATIONS: dict[Normalization, Normalize] = {"squad": squad, "triviaqa": triviaqa, "re_rag": re_rag}
YES_NO_LAYOUTS = frozenset({"hotpotqa", "twowiki"})  # whose official F1 counts yes and no by equality alone
MEASURES = ("EM %", "F1 %", "Acc %")


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """How intervals are drawn."""

    resamples: int = 10_000
    seed: int = 0


@dataclass(frozen=True, slots=True)
class AnswerScores:
    """Measures per question, 0 to 1."""

    exact_N: NDArray[np.float64]
    f1_N: NDArray[np.float64]
    inclusion_N: NDArray[np.float64]

    def stacked(self) -> NDArray[np.float64]:
        """(3, N) in the order of `MEASURES`."""
        return np.stack([self.exact_N, self.f1_N, self.inclusion_N])


def normalizer(normalization: Normalization) -> Normalize:
    """The normalization of `common.answer_metrics` with that name.

    Raises:
        UserError: If there is none.
    """
    if normalization not in NORMALIZATIONS:
        raise UserError(f"normalization {normalization!r} is unknown; allowed: {', '.join(NORMALIZATIONS)}.")
    return NORMALIZATIONS[normalization]


def with_answers(questions: Sequence[Question]) -> list[Question]:
    """The questions whose answers are known.

    Raises:
        UserError: If none is.
    """
    usable = [question for question in questions if question.answers]
    if not usable:
        raise UserError(
            f"None of the {len(questions)} questions has an answer to compare with: name a file that ships its answers, "
            "such as a dev file."
        )
    return usable


def score_answers(
    texts: Sequence[str], questions: Sequence[Question], normalization: Normalization, yes_no_rule: bool = False
) -> AnswerScores:
    """Every text against its question's gold answers; an empty text is wrong.

    Args:
        texts: What was answered.
        questions: All with answers.
        normalization: How both sides are normalized.
        yes_no_rule: See `common.answer_metrics.f1`.
    """
    normalize = normalizer(normalization)

    def each(measure: Callable[[str, Sequence[str]], float]) -> NDArray[np.float64]:
        return np.array([measure(t, q.answers) if t else 0.0 for t, q in zip(texts, questions, strict=True)])

    return AnswerScores(
        each(lambda text, golds: exact_match(text, golds, normalize)),
        each(lambda text, golds: f1(text, golds, normalize, yes_no_rule)),
        each(lambda text, golds: inclusion(text, golds, normalize)),
    )


def percent_cells(values_RN: ArrayLike, bootstrap: Bootstrap) -> list[Cell]:
    """Mean of each row in per cent (points, for rows of differences) with its 95% bootstrap interval."""
    values = np.asarray(values_RN, dtype=np.float64)
    if not values.shape[1]:
        return [Cell(float("nan"))] * len(values)
    ends_R2 = 100 * paired_intervals(values, bootstrap.resamples, bootstrap.seed)
    return [
        Cell(100 * float(mean), (float(low), float(high)))
        for mean, (low, high) in zip(values.mean(axis=1), ends_R2, strict=True)
    ]


def answer_tables(
    questions: Sequence[Question],
    answers: Sequence[Answer],
    normalization: Normalization,
    yes_no_rule: bool,
    bootstrap: Bootstrap,
) -> list[Table]:
    """Measures under every normalization, the chosen one first; by kind of question under it; costs."""
    texts = [answer.text for answer in answers]
    names = [normalization, *(name for name in NORMALIZATIONS if name != normalization)]
    scored = {name: score_answers(texts, questions, name, yes_no_rule) for name in names}
    tables = [
        Table(
            "answers",
            "Answers",
            MEASURES,
            {f"ours, {name}": percent_cells(each.stacked(), bootstrap) for name, each in scored.items()},
        )
    ]
    kinds_N = np.array([question.kind or "-" for question in questions])
    kinds, counts = np.unique(kinds_N, return_counts=True)
    if len(kinds) > 1:
        rows = {}
        for place in np.argsort(-counts, kind="stable"):
            of_kind = scored[normalization].stacked()[:, kinds_N == kinds[place]]
            rows[str(kinds[place])] = [Cell(int(counts[place])), *percent_cells(of_kind, bootstrap)]
        tables.append(
            Table("answers by kind", f"Answers by kind of question, {normalization}", ("questions", *MEASURES), rows)
        )
    costs = {name: None for answer in answers for name in answer.costs}
    means = {name: [Cell(sum(a.costs.get(name, 0.0) for a in answers) / len(answers))] for name in costs}
    if means:
        tables.append(
            Table(
                "costs",
                "Costs per question",
                ("mean",),
                {name.replace("_", " "): mean for name, mean in means.items()},
                decimals=4,
            )
        )
    return tables
