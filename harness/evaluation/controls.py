"""What a system's trained part is worth: beside the best that is not trained, and beside another question.

Another question: all stays the question's own (searches, candidates, passages, a dialogue's turns); the trained part
alone is asked with another question's text (`common.other_questions`). Its floor is the same row with the trained part
silent. Where another question is far above its floor, the data gives the answer away, and the trained row says nothing.

    trained part   asked otherwise                      its floor                         measure
    selector       chooses for q'                       the best single source            EM
    rewriter       its texts for q' search beside q     q alone, with its turns           recall of gold passages
    pair scorer    (q', d1, d2)                         all pairs have probability 0      recall of gold passages
    estimator      (q', passage)                        chance; with a prior, that alone  R@1

Shape legend: N questions.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from common.other_questions import FEWEST, other_texts
from common.records import Answer, Question, Ranked, clean, nfkc
from common.retrieval import search_for
from harness.answer_selection.answer_texts import answered
from harness.evaluation.answer_scores import Bootstrap
from harness.evaluation.bootstrap import paired_intervals
from harness.evaluation.retrieval_scores import retrieval_scores
from harness.evaluation.tables import Cell, ReportTable
from harness.retrievers.question_passages import shipped_rankings
from harness.retrievers.rerank import shortened
from harness.retrievers.retriever_tree import inner
from harness.retrievers.rm3 import Rm3Retriever

Kind = Literal["selector", "rewriter", "pair scorer", "estimator"]  # the first of a system's is its trained part
METHODS: dict[Kind, str] = {
    "selector": "choose", "rewriter": "rewrite", "pair scorer": "probabilities", "estimator": "scores"
}  # fmt: skip
OTHER, FLOOR = "another question", "floor of another question"
Values = NDArray[np.float64]
Measure = Callable[[Sequence[Question], Sequence[Answer]], Values]
Ask = Callable[[Any, Sequence[Question], str], Sequence[Answer]]


def control_questions(questions: Sequence[Question]) -> int:
    """How many questions are asked again: so few that an evaluation takes a quarter longer at most."""
    return min(200, max(FEWEST, len(questions) // 4))


@dataclass(slots=True)
class Rows:
    """The values of the rows on the questions that are asked again; (N,) each, 0 to 1."""

    measure: str
    trained_N: Values
    untrained: dict[str, Values] = field(default_factory=dict)  # by name
    other_N: Values | None = None  # None: not measured
    floor_N: Values | None = None
    note: str = ""  # why it is not measured


def verdict(rows: Rows, bootstrap: Bootstrap) -> tuple[str, ReportTable]:
    """The first line of a report, and its table.

    The line begins with "not shown" unless the interval of trained minus the best untrained row lies above 0, and if
    more than a quarter of the points above the floor need no question.
    """

    def interval(values_N: Values) -> tuple[float, float]:
        low, high = 100 * paired_intervals(values_N[None], bootstrap.resamples, bootstrap.seed)[0]
        return float(low), float(high)

    named = {**rows.untrained}
    best = max(named, key=lambda name: named[name].mean())
    gain_N = rows.trained_N - named[best]
    (low, high), mean = interval(gain_N), 100 * rows.trained_N.mean()
    shown, told = low > 0, (
        f"{rows.measure} {mean:.1f}, {100 * gain_N.mean():+.1f} [{low:+.1f}, {high:+.1f}] to the best that is not "
        f"trained ({best}), {len(gain_N)} questions"
    )  # fmt: skip
    if rows.other_N is not None and rows.floor_N is not None:
        named |= {OTHER: rows.other_N, FLOOR: rows.floor_N}
        needless_N, above = rows.other_N - rows.floor_N, (rows.trained_N - rows.floor_N).mean()
        if interval(needless_N)[0] > 0:
            told += f"; {100 * needless_N.mean():.1f} of the {100 * above:.1f} points above the floor need no question"
            shown &= bool(needless_N.mean() <= above / 4)
    cells = {
        name: [Cell(100 * each.mean()), Cell(100 * (rows.trained_N - each).mean(), interval(rows.trained_N - each))]
        for name, each in named.items()
    }
    columns = (f"{rows.measure}, %", "trained less this, points")
    title = "The trained part beside what is not trained, and beside another question"
    table = ReportTable(
        "controls",
        title,
        columns,
        {"trained": [Cell(mean), None], **cells},
        note=rows.note,
        signed=frozenset(columns[1:]),
    )
    return f"{'' if shown else 'not shown: '}{told}", table


def parts(value: object, seen: set[int] | None = None) -> Iterator[Any]:
    """A system's parts, each once, from the outside inwards; its models are the last."""
    seen = set() if seen is None else seen
    if _are_parts(value):
        for each in value:  # type: ignore[attr-defined]  # a list or tuple
            yield from parts(each, seen)
    elif _is_part(value) and id(value) not in seen:
        seen.add(id(value))
        yield value
        for own in vars(value).values():
            yield from parts(own, seen)


def _is_part(value: object) -> bool:
    """Whether it answers, searches or decides something, or holds an estimator."""
    methods = ("answer", "search", *METHODS.values())
    return hasattr(value, "__dict__") and (
        "estimator" in vars(value) or any(callable(getattr(type(value), name, None)) for name in methods)
    )


def _are_parts(value: object) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(map(_is_part, value))


def trained_part(system: object) -> tuple[Kind, Any] | None:
    """The trained part of a system that decides last; None if it has none.

    A language model that rewrites by prompt is not trained, nor is a selector without a fitted file.
    """
    from models.cross_encoder import RelevanceEstimator

    all_parts = [*parts(system)]
    of_kind: dict[Kind, Iterable[Any]] = {
        "selector": (each for each in all_parts if hasattr(each, "choose") and hasattr(each, "file")),
        "rewriter": (each for each in all_parts if hasattr(each, "rewrite") and hasattr(each, "serving")),
        "pair scorer": (each for each in all_parts if hasattr(each, "probabilities") and hasattr(each, "threshold")),
        "estimator": (each for each in all_parts if isinstance(each, RelevanceEstimator)),
    }
    return next(((kind, each) for kind, found in of_kind.items() for each in found), None)


def changed(value: Any, changes: Mapping[int, Any], made: dict[int, Any] | None = None) -> Any:
    """A copy of a system without its reader, with other parts.

    Args:
        value: The system, or what is within it.
        changes: The new part for the id of each one that is replaced.
        made: The copies so far.
    """
    made = {**changes} if made is None else made
    if _are_parts(value):
        return type(value)(changed(each, changes, made) for each in value)
    if id(value) not in made and _is_part(value):
        made[id(value)] = new = copy(value)
        for name, own in vars(value).items():
            vars(new)[name] = None if name in ("reader", "generator") else changed(own, changes, made)
    return made.get(id(value), value)


def _with(part: Any, method: str, function: Callable[..., Any]) -> Any:
    """A copy of a part with another method."""
    made = copy(part)
    setattr(made, method, function)
    return made


def remembered(retriever: Any) -> Any:
    """A copy of a retriever that searches once for each text and depth: the rows have most searches in common."""
    found: dict[tuple[str, int], list[Ranked]] = {}

    def search(queries: Sequence[str], k: int) -> list[list[Ranked]]:
        missing = [query for query in dict.fromkeys(queries) if (query, k) not in found]
        if missing:
            found.update(zip(((query, k) for query in missing), retriever.search(missing, k), strict=True))
        return [found[query, k] for query in queries]

    return _with(retriever, "search", search)


def asked_otherwise(kind: Kind, part: Any, texts: Mapping[str, str], asked: list[Any] | None = None) -> Any:
    """A copy of a trained part that is asked with other texts.

    Args:
        kind: Of the part.
        part: The part.
        texts: The other text for that of each question (NFKC).
        asked: Gets what it was asked: (text, passage), (text, d1, d2) or questions. What has no other text stays.
    """

    def other(one: Any) -> Any:
        if isinstance(one, Question):
            return replace(one, text=texts.get(nfkc(one.text), one.text))
        return (texts.get(nfkc(one[0]), one[0]), *one[1:])

    def ask(own: Sequence[Any], *further: Any) -> Any:
        if asked is not None:
            asked.extend(own)
        found = getattr(part, METHODS[kind])([other(one) for one in own], *further)
        if kind != "rewriter":
            return found
        return [  # where a strategy has no query, the question is searched, not the other one
            replace(each, queries={**each.queries, **dict.fromkeys(each.fallbacks, (clean(one.text),))})
            for one, each in zip(own, found, strict=True)
        ]

    return _with(part, METHODS[kind], ask)


class Controls:
    """The rows beside a system's own.

    Args:
        system: Loaded.
        exact: EM of answers.
        ask: Answers questions by a system; the row's name tells kept answers apart.
    """

    def __init__(self, system: Any, exact: Measure, ask: Ask) -> None:
        self.system, self.exact, self.ask = system, exact, ask
        found = trained_part(system)
        self.kind: Kind | None = found[0] if found else None
        self.part: Any = found[1] if found else None

    def rows(self, questions: Sequence[Question], answers: Sequence[Answer], count: int) -> Rows | str:
        """All rows, or why there are none.

        Args:
            questions: All of them.
            answers: The system's.
            count: Of the questions that are asked again, at most.
        """
        if self.kind is None:
            return "no part of this system is trained"
        size = max((len(each.evidence) for each in answers), default=0) or 1
        defined_N = ~np.isnan(self.values(questions, answers, size)[1])
        places = [place for place in range(len(questions)) if defined_N[place]]
        others = other_texts([questions[place] for place in places], count)
        enough = len(others) >= FEWEST
        chosen = [places[each] for each in others] if enough else places[:count]
        if not chosen:
            return f"no question has what {self.values([], [], size)[0]} needs"
        asked, own = [questions[place] for place in chosen], [answers[place] for place in chosen]
        measure, trained_N = self.values(asked, own, size)
        note = "" if enough else f"{OTHER}: not measured, {len(others)} questions have one, and it takes {FEWEST}."
        rows = Rows(measure, trained_N, note=note)
        texts = {nfkc(one.text): text for one, text in zip(asked, others.values(), strict=True)} if enough else {}
        if self.kind == "estimator":  # a retriever that reranks shortens long queries
            texts |= {shortened(self.part, text): shortened(self.part, other) for text, other in texts.items()}
        if self.kind == "selector":
            self._choose(rows, asked, texts)
        else:
            self._find(rows, self.kind, asked, texts, size)
        return rows

    def values(self, questions: Sequence[Question], answers: Sequence[Answer], size: int) -> tuple[str, Values]:
        """Name and values (N,) of the measure; by answers in passages where no gold passage is known."""
        if self.kind == "selector":
            return "EM", self.exact(questions, answers)
        k, name = (1, "hit") if self.kind == "estimator" else (size, "recall")
        scores = retrieval_scores(questions, [each.evidence for each in answers], (k,))
        column = f"has-answer@{k}" if np.isnan(scores[f"{name}@{k}"]).all() else f"{name}@{k}"
        return "R@1" if self.kind == "estimator" else column, scores[column]

    def _find(self, rows: Rows, kind: Kind, asked: Sequence[Question], texts: Mapping[str, str], size: int) -> None:
        """The rows of what finds or orders passages."""
        system, part = self.system, self.part
        retrievers = list({id(each): each for each in [*inner(system)][1:]}.values())
        memo = {id(each): remembered(each) for each in retrievers if len([*inner(each)]) == 1}

        def measured(made: Any, name: str) -> Values:
            return self.values(asked, self.ask(made, asked, name), size)[1]

        def found(row: Sequence[Sequence[Ranked]]) -> Values:
            answers = [Answer(one.id, "", tuple(hits[:size])) for one, hits in zip(asked, row, strict=True)]
            return self.values(asked, answers, size)[1]

        alone = {each: changed(each, memo) for each in retrievers if all(own is not part for own in parts(each))}
        for each, retriever in alone.items():
            name = type(each).__name__.removesuffix("Retriever")
            name = f"{name} {len(rows.untrained) + 1}" if name in rows.untrained else name
            rows.untrained[name] = found(search_for(retriever, asked, size))
            if kind == "rewriter" and hasattr(each, "shares"):
                rows.untrained["RM3"] = found(search_for(Rm3Retriever(retriever), asked, size))
        if not retrievers:
            rows.untrained |= {name: found(row) for name, row in shipped_rankings(asked).items()}
        if kind == "pair scorer" and hasattr(system, "selection"):
            plain = changed(system, memo)
            plain.selection = replace(system.selection, method="qdc")
            rows.untrained["QDC"] = measured(plain, "QDC")
        if kind == "rewriter":
            name = "all turns and the question" if any(one.history for one in asked) else "the question"
            rows.untrained[name] = rows.floor_N = measured(changed(system, {**memo, id(part): None}), name)
        if not texts:
            return
        scored: list[Any] = []
        otherwise = changed(system, {**memo, id(part): asked_otherwise(kind, part, texts, scored)})
        other_N = measured(otherwise, OTHER)
        own = [one.text if isinstance(one, Question) else one[0] for one in scored]
        if strange := sum(nfkc(text) not in texts for text in own):
            rows.note = f"{OTHER}: not measured, the trained part was asked {strange} times about other texts."
            return
        rows.other_N = other_N
        if kind == "estimator" and not any(getattr(each, "prior", None) for each in parts(system)):
            rows.floor_N = np.array([self._chance(one, scored) for one in asked])
        elif kind != "rewriter":
            silent = _with(part, METHODS[kind], lambda own, *_: [0.0] * len(own))
            rows.floor_N = measured(changed(system, {**memo, id(part): silent}), FLOOR)

    def _chance(self, question: Question, scored: Sequence[Any]) -> float:
        """The share of relevant passages among those that an estimator was asked to score: R@1 of a random order."""
        asked = (nfkc(question.text), shortened(self.part, question.text))
        own = [Answer("", "", (Ranked(passage, 0.0),)) for text, passage in scored if nfkc(text) in asked]
        return float(self.values([question] * len(own), own, 1)[1].mean()) if own else 0.0

    def _choose(self, rows: Rows, asked: Sequence[Question], texts: Mapping[str, str]) -> None:
        """The rows of a selector, from one run of the sources and the reader."""
        seen: dict[str, tuple[Question, Mapping[str, Answer]]] = {}

        def choose(own: Sequence[Question], answers: Sequence[Mapping[str, Answer]]) -> Any:
            seen.update((one.id, (one, each)) for one, each in zip(own, answers, strict=True))
            return self.part.choose(own, answers)

        made = copy(self.system)
        made.selector = _with(self.part, "choose", choose)
        self.ask(made, asked, "")
        questions, answers = zip(*(seen[one.id] for one in asked), strict=True)

        def values(sources: Sequence[str]) -> Values:
            return self.exact(asked, [own[source] for own, source in zip(answers, sources, strict=True)])

        known = self.part.probability(questions, answers)
        relevant = [
            max(answered(own) or own, key=lambda source: -1.0 if each[source] is None else each[source])
            for own, each in zip(answers, known, strict=True)
        ]
        single = {source: values([source] * len(asked)) for source in answers[0]}
        rows.untrained = {**single, "the source of the most relevant context": values(relevant)}
        if texts:
            chosen = asked_otherwise("selector", self.part, texts).choose(questions, answers)
            rows.other_N = values([each.source for each in chosen])
            rows.floor_N = max(single.values(), key=lambda each_N: each_N.mean())
