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

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from operator import methodcaller
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.other_questions import FEWEST, MOST, other_texts
from common.records import Answer, Question, Ranked, clean, nfkc
from harness.answer_selection.estimator import most_relevant
from harness.evaluation.answer_scores import percent_cells
from harness.evaluation.retrieval_scores import retrieval_scores
from harness.evaluation.settings import Bootstrap
from harness.evaluation.tables import Cell, ReportTable
from harness.retrievers.question_passages import shipped_rankings
from harness.retrievers.rerank import shortened
from harness.retrievers.rm3 import Rm3Retriever
from harness.runtime.failures import failure_of
from harness.runtime.retriever_tree import inner
from harness.systems.retrieve_read import RetrieveRead

PARTS = {  # the method of each kind of part, and an attribute of a trained one; the first of a system's is controlled
    "selector": ("choose", "file"),
    "rewriter": ("rewrite", "serving"),  # not a language model by prompt
    "pair scorer": ("probabilities", "threshold"),
    "estimator": ("scores", "encode"),
}
OTHER, FLOOR = "another question", "floor of another question"
Values = NDArray[np.float64]
Ask = Callable[[Any, Sequence[Question]], Sequence[Answer]]


@dataclass(slots=True)
class Rows:
    """The values of the rows on the questions that are asked again; (N,) each, 0 to 1."""

    measure: str
    trained_N: Values
    untrained: dict[str, Values] = field(default_factory=dict)  # by name
    controls: dict[str, Values] = field(default_factory=dict)  # OTHER and FLOOR; empty: not measured
    note: str = ""  # why they are not measured


def verdict(rows: Rows, bootstrap: Bootstrap) -> tuple[str, ReportTable]:
    """The first line of a report, and its table.

    The line begins with "not shown" unless the interval of trained less the best untrained row lies above 0, and if
    more than a quarter of the points above the floor need no question.
    """
    named, mean = {**rows.untrained, **rows.controls}, 100 * rows.trained_N.mean()
    less = dict(zip(named, percent_cells([rows.trained_N - each for each in named.values()], bootstrap), strict=True))
    best = max(rows.untrained, key=lambda name: rows.untrained[name].mean())
    low, high = less[best].interval or (0.0, 0.0)
    told = (
        f"{rows.measure} {mean:.1f}, {less[best].value:+.1f} [{low:+.1f}, {high:+.1f}] to the best that is not trained "
        f"({best}), {len(rows.trained_N)} questions"
    )
    shown = low > 0
    if rows.controls:
        (needless,), above = percent_cells([rows.controls[OTHER] - rows.controls[FLOOR]], bootstrap), less[FLOOR].value
        if needless.interval and needless.interval[0] > 0:
            told += f"; {needless.value:.1f} of the {above:.1f} points above the floor need no question"
            shown &= needless.value <= above / 4
    columns = (f"{rows.measure}, %", "trained less this, points")
    title = "The trained part beside what is not trained, and beside another question"
    cells: dict[str, list[Cell | None]] = {"trained": [Cell(mean), None]}
    cells |= {name: [Cell(100 * each.mean()), less[name]] for name, each in named.items()}
    table = ReportTable("controls", title, columns, cells, note=rows.note, signed=frozenset(columns[1:]))
    return f"{'' if shown else 'not shown: '}{told}", table


def parts(part: Any, seen: set[int] | None = None) -> Iterator[Any]:
    """A system's parts, each once, from the outside inwards."""
    seen = set() if seen is None else seen
    seen.add(id(part))
    yield part
    for held in vars(part).values():
        for each in held if isinstance(held, list | tuple) else (held,):
            if not _is_part(each):
                break
            if id(each) not in seen:
                yield from parts(each, seen)


def _is_part(value: object) -> bool:
    """Whether it answers, searches or decides something, or holds an estimator."""
    methods = ("answer", "search", *(method for method, _ in PARTS.values()))
    return hasattr(value, "__dict__") and (
        "estimator" in vars(value) or any(hasattr(type(value), name) for name in methods)
    )


def trained_part(system: object) -> tuple[str, Any] | None:
    """Kind and part: the trained part of a system that decides last; None if it has none."""
    for kind, (method, mark) in PARTS.items():
        for each in parts(system):
            if hasattr(type(each), method) and hasattr(each, mark):
                return kind, each
    return None


def changed(value: Any, changes: Mapping[int, Any], made: dict[int, Any] | None = None) -> Any:
    """A system with other parts; what holds none of them is the same object, so that a memo knows it.

    Args:
        value: The system, or what is within it.
        changes: The new part for the id of each one that is replaced.
        made: The copies so far.
    """
    made = {**changes} if made is None else made
    if isinstance(value, list | tuple) and value and _is_part(value[0]):
        held = [changed(each, changes, made) for each in value]
        return value if all(one is other for one, other in zip(value, held, strict=True)) else type(value)(held)
    if id(value) not in made and _is_part(value):
        new = {name: changed(own, changes, made) for name, own in vars(value).items()}
        made[id(value)] = value
        if any(new[name] is not own for name, own in vars(value).items()):
            made[id(value)] = copy(value)
            vars(made[id(value)]).update(new)
    return made.get(id(value), value)


def _with(part: Any, method: str, function: Callable[..., Any]) -> Any:
    """A copy of a part with another method, of which a memo saves nothing."""
    made = copy(part)
    vars(made).update({method: function, "unsaved": True})
    return made


def key_of(question: Question) -> str:
    """The text (NFKC) of a question; behind its turns, for other dialogues may ask the same."""
    return " // ".join((*question.history, nfkc(question.text)))


def asked_otherwise(kind: str, part: Any, texts: Mapping[str, str], asked: list[Any]) -> Any:
    """A copy of a trained part that is asked with other texts.

    Args:
        kind: Of the part.
        part: The part.
        texts: The other text by `key_of` of each question; what has none stays.
        asked: Gets what it was asked: the text, and for pairs and triples what follows it.
    """
    method = PARTS[kind][0]

    def ask(own: Sequence[Any], *further: Any) -> Any:
        if kind in ("estimator", "pair scorer"):
            asked.extend((nfkc(text), *rest) for text, *rest in own)
            others = [(texts.get(nfkc(text), text), *rest) for text, *rest in own]
            return methodcaller(method, others, *further)(part)
        asked.extend((key_of(one),) for one in own)
        questions = [replace(one, text=texts.get(key_of(one), one.text)) for one in own]
        found = methodcaller(method, questions, *further)(part)
        if kind == "rewriter":  # where a strategy has no query, the question is searched, not the other one
            for place, (one, each) in enumerate(zip(own, found, strict=True)):
                own_text = dict.fromkeys(each.fallbacks, (clean(one.text),))
                found[place] = replace(each, queries={**each.queries, **own_text})
        return found

    return _with(part, method, ask)


class Controls:
    """The rows beside a system's own.

    Args:
        system: Loaded, with a trained part.
        exact: EM (N,) of answers.
        ask: Answers questions by a system.
    """

    def __init__(self, system: Any, exact: Callable[..., Values], ask: Ask) -> None:
        self.system, self.exact, self.ask = system, exact, ask
        self.kind, self.part = trained_part(system) or ("", None)  # type: ignore[var-annotated]

    def rows(self, questions: Sequence[Question], answers: Sequence[Answer]) -> Rows | str:
        """All rows, or why there are none.

        A quarter of the questions is asked again, 30 to 200, so that an evaluation takes a quarter longer at most.

        Args:
            questions: All of them.
            answers: The system's.
        """
        if self.part is None:
            return "no part of this system is trained"
        size = max((len(each.evidence) for each in answers), default=0) or 1
        count = min(MOST, max(FEWEST, len(questions) // 4))
        defined = np.flatnonzero(~np.isnan(self.values(questions, answers, size)[1])).tolist()
        places = [place for place in defined if not failure_of(answers[place])]
        others = other_texts([questions[place] for place in places], count)
        enough = len(others) >= FEWEST
        chosen = [places[each] for each in others] if enough else places[:count]
        if not chosen:
            return "no question has gold passages or answers"
        asked = [questions[place] for place in chosen]
        rows = Rows(*self.values(asked, [answers[place] for place in chosen], size))
        texts = {key_of(one): text for one, text in zip(asked, others.values(), strict=False)}
        if not enough:
            texts, rows.note = {}, f"{OTHER}: not measured, {len(others)} questions have one, and it takes {FEWEST}."
        if self.kind == "selector":
            self._choose(rows, asked, texts)
        else:
            self._find(rows, asked, texts, size)
        return rows

    def values(self, questions: Sequence[Question], answers: Sequence[Answer], size: int) -> tuple[str, Values]:
        """Name and values (N,) of the measure; by answers in passages where no gold passage is known."""
        if self.kind == "selector":
            return "EM", self.exact(questions, answers)
        k, name = (1, "hit") if self.kind == "estimator" else (size, "recall")
        scores = retrieval_scores(questions, [each.evidence for each in answers], (k,))
        column = f"has-answer@{k}" if np.isnan(scores[f"{name}@{k}"]).all() else f"{name}@{k}"
        return "R@1" if self.kind == "estimator" else column, scores[column]

    def _find(self, rows: Rows, asked: Sequence[Question], texts: dict[str, str], size: int) -> None:
        """The rows of what finds or orders passages."""
        system, kind, part = self.system, self.kind, self.part
        retrievers: list[Any] = [*{id(each): each for each in [*inner(system)][1:]}.values()]
        readers = [own for each in parts(system) for name in ("reader", "generator") if (own := vars(each).get(name))]
        unread = dict.fromkeys(map(id, readers))

        def of(made: Any) -> Values:
            return self.values(asked, self.ask(made, asked), size)[1]

        def measured(new: Any = part, **options: Any) -> Values:
            made = copy(changed(system, {**unread, id(part): new}))
            vars(made).update(options)
            return of(made)

        for each in retrievers:
            if all(own is not part for own in parts(each)):
                name = type(each).__name__.removesuffix("Retriever")
                name = f"{name} {len(rows.untrained) + 1}" if name in rows.untrained else name
                rows.untrained[name] = of(RetrieveRead(each, size))
                if kind == "rewriter" and hasattr(each, "shares"):
                    rows.untrained["RM3"] = of(RetrieveRead(Rm3Retriever(each), size))
        for name, row in shipped_rankings(asked).items() if not retrievers else ():
            found = [Answer(one.id, "", tuple(hits[:size])) for one, hits in zip(asked, row, strict=True)]
            rows.untrained[name] = self.values(asked, found, size)[1]
        if kind == "pair scorer" and hasattr(system, "selection"):
            for name in ("QDC", "walk"):
                rows.untrained[name] = measured(selection=replace(system.selection, method=name.lower()))
        if kind == "rewriter":
            name = "all turns and the question" if any(one.history for one in asked) else "the question"
            floor_N = rows.untrained[name] = measured(None)
        if not texts:
            return
        if kind == "estimator":  # a retriever that reranks shortens long queries
            texts |= {shortened(part, text): shortened(part, other) for text, other in texts.items()}
        seen: list[Any] = []
        other_N = measured(asked_otherwise(kind, part, texts, seen))
        if strange := sum(text not in texts for text, *_ in seen):
            rows.note = f"{OTHER}: not measured, the trained part was asked {strange} times about other texts."
            return
        if kind == "estimator" and not any(vars(each).get("prior") for each in parts(system)):
            floor_N = np.array([self._chance(one, seen) for one in asked])
        elif kind != "rewriter":
            floor_N = measured(_with(part, PARTS[kind][0], lambda own, *_: [0.0] * len(own)))
        rows.controls = {OTHER: other_N, FLOOR: floor_N}

    def _chance(self, question: Question, scored: Sequence[Any]) -> float:
        """The share of relevant passages among those that an estimator was asked to score: R@1 of a random order."""
        asked = (nfkc(question.text), shortened(self.part, question.text))
        own = [Answer("", "", (Ranked(passage, 0.0),)) for text, passage in scored if text in asked]
        return float(self.values([question] * len(own), own, 1)[1].mean()) if own else 0.0

    def _choose(self, rows: Rows, asked: Sequence[Question], texts: Mapping[str, str]) -> None:
        """The rows of a selector, from one run of the sources and the reader."""
        seen: dict[str, tuple[Question, Mapping[str, Answer]]] = {}

        def choose(own: Sequence[Question], answers: Sequence[Mapping[str, Answer]]) -> Any:
            seen.update((one.id, (one, each)) for one, each in zip(own, answers, strict=True))
            return self.part.choose(own, answers)

        made = copy(self.system)
        made.selector = _with(self.part, "choose", choose)
        self.ask(made, asked)
        known_N = [one.id in seen for one in asked]  # the others failed
        rows.trained_N, asked = rows.trained_N[known_N], [one for one in asked if one.id in seen]
        questions, answers = zip(*(seen[one.id] for one in asked), strict=True)

        def values(sources: Sequence[str]) -> Values:
            return self.exact(asked, [own[source] for own, source in zip(answers, sources, strict=True)])

        known = self.part.probability(questions, answers)
        relevant = [most_relevant(own, each).source for own, each in zip(answers, known, strict=True)]
        single = {source: values([source] * len(asked)) for source in answers[0]}
        rows.untrained = {**single, "the source of the most relevant context": values(relevant)}
        if texts:
            chosen = asked_otherwise("selector", self.part, texts, []).choose(questions, answers)
            floor_N = max(single.values(), key=lambda each_N: each_N.mean())
            rows.controls = {OTHER: values([each.source for each in chosen]), FLOOR: floor_N}
