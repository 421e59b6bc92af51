"""MSRAG at inference: three answers, of which one is chosen.

From the web, from a language model's own knowledge and from no context.

q -> sub-questions -> one search each -> merged and summarized -> Information-Web -> answer-Web
q -> context that a language model writes                      -> Information-GPT -> answer-GPT -> selection -> answer
q                                                                                 -> answer-not

The paper selects by the gold answer (Eq. 1-4), which is `harness.answer_selection.oracle.Oracle` here; the default
needs no gold answer.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Self

from common.context_sources import GENERATED, NONE, SOURCES, WEB, SelectedSource, SourceContext
from common.errors import UnavailableError, UserError
from common.records import Answer, Asked, Question
from harness.answer_selection.estimator import EstimatedRelevance
from harness.interfaces import AnswerSelector, ClosedBookReader, ContextSource
from harness.readers.read_answers import sum_costs
from harness.runtime.concurrent_work import run_together
from harness.runtime.failures import answer_each
from harness.runtime.loading import load
from harness.runtime.long_questions import as_read, with_cuts
from harness.runtime.memo import READ_AT_ONCE, Memo
from harness.runtime.provenance import with_arguments
from harness.runtime.stages import stage_ended

CONTEXTS_AT_ONCE = 32  # with five passages each, a line of the memo has at most 200 of them


class Msrag:
    """Answers each question from every source with one reader, and gives the answer that the selector chooses.

    The sources work at the same time, as far as they share no model; what they find is read in one call. A source that
    fails or has nothing leaves the others, and the answer's notes say so.

    The evidence is that of the chosen source; the costs are the sums over all sources, `seconds` too.

    Notes: `sources`, for each one its answer, log-probability and passages
    (id, title, link), or why it has none (`missing`, `error`), and the selector's score; `chosen`; `selector`; `why`;
    `uses_gold` where the selector reads the gold answer; `lost`, why by the source that failed; the web's `queries`,
    `fallbacks` and `reason`; the reader's notes on the chosen answer.

    Args:
        reader: Reads each context, and answers without one.
        selector: Chooses among the answers, such as harness.answer_selection.learned.LearnedSelector; None: the source
            of the most relevant context (harness.answer_selection.estimator.EstimatedRelevance) as the reader notes it.
        web: Information-Web, such as harness.context_sources.web.WebContext; None omits it.
        knowledge: Information-GPT: harness.context_sources.generated.GeneratedContext, a language model that writes, or
            harness.context_sources.facts.IndexedFacts, an index in its place; None omits it.
        sources: Those that answer, in the order that decides ties: web, generated, none. [web, none] is the paper's w/o
            GPT, [generated, none] w/o Web, [generated] GPT-Retrieval, [none] No-RAG.

    Raises:
        UserError: If a source is unknown, stands twice or is not configured, or the reader cannot answer without a
            context.
    """

    study = "harness.evaluation.msrag.study:Study"  # names, because imports run from evaluations to systems
    tuning = "harness.tuning.msrag:Tuning"
    memo: Memo | None = None  # of an evaluation

    def __init__(
        self,
        reader: ClosedBookReader,
        selector: AnswerSelector | None = None,
        web: ContextSource | None = None,
        knowledge: ContextSource | None = None,
        sources: tuple[str, ...] = SOURCES,
    ) -> None:
        unknown = [name for name in sources if name not in SOURCES]
        if unknown or not sources or len(set(sources)) < len(sources):
            wrong = f"contains {unknown[0]!r}" if unknown else "is empty" if not sources else "names one twice"
            raise UserError(f"sources {wrong}; allowed: {', '.join(SOURCES)}, each once.")
        for name, option, source in (WEB, "web", web), (GENERATED, "knowledge", knowledge):
            if name in sources and source is None:
                rest = ", ".join(each for each in sources if each != name) or NONE
                raise UserError(
                    f"sources names {name}, and {option} is not configured: configure it, or set sources to [{rest}]."
                )
        if NONE in sources and not hasattr(reader, "read_closed_book"):
            raise UserError(
                f"reader is {type(reader).__name__}, which needs a context: set sources to [web,generated], or use a "
                "reader of harness.readers."
            )
        self.reader, self.selector, self.names = reader, selector or EstimatedRelevance(), tuple(sources)
        configured = {WEB: web, GENERATED: knowledge}
        self.sources: dict[str, ContextSource] = {
            name: source for name in sources if (source := configured.get(name)) is not None
        }
        self.retrievers = [each for source in self.sources.values() if (each := getattr(source, "retriever", None))]
        if self.retrievers:  # for reports: an index that holds gold passages
            self.retriever = self.retrievers[0]

    @property
    def _parts(self) -> dict[str, Any]:
        return {"reader": self.reader, "web": self.sources.get(WEB), "knowledge": self.sources.get(GENERATED)}

    def with_settings(self, **settings: Any) -> Self:
        """This system with other arguments; the parts that are not named are the same objects."""
        return type(self)(**{"selector": self.selector, "sources": self.names, **self._parts, **settings})

    @property
    def sampling(self) -> list[Any]:
        """The parts that sample."""
        return sampling_parts(self._parts.values())

    def of_run(self, run: int) -> Self:
        """This system, with other samples of all parts that sample for another run than 0."""
        changed = {name: sampled(part, run) for name, part in self._parts.items()}
        return self.with_settings(**changed) if run else self

    @property
    def facts(self) -> list[str]:
        """The prompt without a context, and the models of the sources and of the selection, for reports."""
        parts = [*self.sources.values(), self.selector]
        alone = getattr(self.reader, "closed_book", None) if NONE in self.names else None
        told = [f"without a context: {alone.fact}"] if alone else []
        return told + [fact for part in parts for fact in getattr(part, "facts", ())]

    def load(self) -> None:
        """Load the reader, the sources and the selector."""
        self.load_sources()
        load(self.selector)

    def load_sources(self) -> None:
        """Load the reader and the sources."""
        load(self.reader, *self.sources.values())
        if NONE in self.names:  # a prompt that is missing is told before the sources are asked
            _ = getattr(self.reader, "closed_book", None)

    def answer(self, questions: Asked) -> list[Answer]:
        """One answer per question: all sources at the same time, one reader call, one choice.

        Args:
            questions: One text, several texts, or `Question` records.
        """
        return answer_each(self, self._answers, questions)

    def _answers(self, questions: Sequence[Question]) -> list[Answer]:
        self.load()  # a selector that is missing is told before the sources are asked
        asked, cuts = as_read(self, questions)
        contexts, alone = self.gather(asked)
        stage_ended("sources", [_gathered(each, contexts, row) for row, each in enumerate(asked)])
        by_source = self.read(asked, contexts, alone)
        chosen = self.selector.choose(asked, by_source)
        answers = [chosen_answer(*each, self.selector) for each in zip(asked, by_source, chosen, strict=True)]
        return [with_cuts(*each) for each in zip(answers, cuts, strict=True)]

    def gather(self, questions: Sequence[Question]) -> tuple[dict[str, list[SourceContext]], list[Answer]]:
        """The contexts of every source, and the answers without one; none if `none` is not among the sources.

        A source whose service cannot be reached is lost for all of these questions. Sources that share no model work at
        the same time; under a memo one after the other, for times that can be compared.

        Args:
            questions: Without earlier turns.
        """
        # Not in the sources' threads, of which two would load a part that they share twice.  The selector stays: its
        # file may be what is fitted on these contexts.
        load(self.reader, *self.sources.values())
        calls: dict[str, Callable[[], Any]] = {
            name: partial(self._contexts, source, questions) for name, source in self.sources.items()
        }
        if NONE in self.names:
            calls[NONE] = partial(self._recalled, questions)
        done = run_together(calls, {**self.sources, NONE: self.reader}, together=self.memo is None)
        return {name: done[name] for name in self.sources}, done.get(NONE, [])

    def _contexts(self, source: ContextSource, questions: Sequence[Question]) -> list[SourceContext]:
        """What a source gives, from the memo where there is one."""
        if self.memo is None:
            return contexts_of(source, questions)
        rows = self.memo.by_question("contexts", source, questions, contexts_of, CONTEXTS_AT_ONCE)
        return [*map(SourceContext.from_row, rows)]

    def _recalled(self, questions: Sequence[Question]) -> list[Answer]:
        """The answers without a context, from the memo where there is one."""
        if self.memo is None:
            return recalled(self.reader, questions)
        rows = self.memo.by_question("closed-book-answers", self.reader, questions, recalled, READ_AT_ONCE)
        return [Answer(**{**row, "evidence": ()}) for row in rows]

    def read(
        self, questions: Sequence[Question], contexts: Mapping[str, Sequence[SourceContext]], alone: Sequence[Answer]
    ) -> list[dict[str, Answer]]:
        """The answer of every source to every question, in the order of the sources: all contexts are read in one call.

        The costs of an answer are those of its context and of reading; its notes are the reader's, with the source's
        under `context`.

        Args:
            questions: The questions.
            contexts: By source.
            alone: The answers without a context.
        """
        asked = [
            (name, place) for name, own in contexts.items() for place, context in enumerate(own) if context.passages
        ]
        started = time.perf_counter()
        to_read = [questions[place] for _, place in asked], [contexts[name][place].passages for name, place in asked]
        read = partial(self.memo.read, self.reader, every=True) if self.memo else self.reader.read
        texts = read(*to_read) if asked else []
        seconds = (time.perf_counter() - started) / max(1, len(asked))
        known = dict(zip(asked, texts, strict=True))

        def answer(name: str, place: int) -> Answer:
            if name == NONE:
                return alone[place]
            return source_answer(questions[place], contexts[name][place], known.get((name, place)), seconds)

        return [{name: answer(name, place) for name in self.names} for place in range(len(questions))]


def contexts_of(source: ContextSource, questions: Sequence[Question]) -> list[SourceContext]:
    """What a source gives; it is lost for each question if its service cannot be reached."""
    started = time.perf_counter()
    try:
        return source.contexts(questions)
    except UnavailableError as error:
        costs = {"seconds/search": (time.perf_counter() - started) / len(questions)}
        return [SourceContext((), str(error), lost=True, costs=costs)] * len(questions)


def recalled(reader: ClosedBookReader, questions: Sequence[Question]) -> list[Answer]:
    """A reader's answers without a context; empty with the note `error` if its service cannot be reached."""
    started = time.perf_counter()
    try:
        answers = reader.read_closed_book(questions)
    except UnavailableError as error:
        answers = [Answer(each.id, "", (), notes={"error": str(error)}) for each in questions]
    seconds = (time.perf_counter() - started) / len(questions)
    return [replace(each, costs={**each.costs, "seconds/reading": seconds}) for each in answers]


def sampling_parts(parts: Iterable[object]) -> list[Any]:
    """Those that sample: readers, sources and rewriters with a number `sample` and a temperature above 0.

    Args:
        parts: Readers and sources; the sources' rewriters are looked at, too.
    """
    parts = [*parts]
    return [
        part
        for part in (*parts, *(getattr(part, "rewriter", None) for part in parts))
        if isinstance(getattr(part, "sample", None), int)
        and getattr(part, "temperature", 0.0) > 0
        and getattr(part, "summarizer", True) is not None  # the web's temperature is the summarizer's
    ]


def sampled(part: Any, further: int) -> Any:
    """A part with its number `sample` and its rewriter's so much greater; the same object if neither samples."""
    changes: dict[str, Any] = {}
    for each in sampling_parts([part]):
        number = each.sample + further
        changes |= {"sample": number} if each is part else {"rewriter": with_arguments(each, sample=number)}
    return with_arguments(part, **changes) if changes else part


def source_answer(question: Question, context: SourceContext, read: Answer | None, seconds: float) -> Answer:
    """The answer from one source's context; empty without a context.

    Args:
        question: What was asked.
        context: Of the source.
        read: What the reader answered; None without a context.
        seconds: Of reading it, where `read` does not say it.
    """
    notes: dict[str, object] = {"context": dict(context.notes)} if context.notes else {}
    if read is None:
        notes |= {"missing": context.missing, **({"lost": True} if context.lost else {})}
        return Answer(question.id, "", (), costs=dict(context.costs), notes=notes)
    costs = {**sum_costs(context.costs, read.costs), "seconds/reading": read.costs.get("seconds/reading", seconds)}
    return replace(read, evidence=context.passages, costs=costs, notes={**read.notes, **notes})


def chosen_answer(
    question: Question, by_source: Mapping[str, Answer], chosen: SelectedSource, selector: AnswerSelector
) -> Answer:
    """The system's answer: the chosen source's, with the costs of all sources and notes on all of them (see `Msrag`).

    Args:
        question: What was asked.
        by_source: The answers, in the order of the sources.
        chosen: The choice.
        selector: What chose.
    """
    own = by_source[chosen.source]
    costs: dict[str, float] = {}
    for answer in by_source.values():
        costs = sum_costs(costs, answer.costs)
    lost = {
        name: str(each.notes.get("missing") or each.notes.get("error"))
        for name, each in by_source.items()
        if each.notes.get("lost") or (each.notes.get("error") and not each.text)
    }
    notes: dict[str, object] = {
        "sources": [_told(name, answer, chosen) for name, answer in by_source.items()],
        "chosen": chosen.source,
        "selector": selector.name,
        "why": chosen.why,
        **({"uses_gold": True} if selector.uses_gold else {}),
        **({"lost": lost} if lost else {}),
    }
    web = by_source[WEB].notes.get("context") if WEB in by_source else None
    if isinstance(web, dict):
        notes |= {name: web[name] for name in ("queries", "fallbacks", "reason") if name in web}
    notes |= {name: value for name, value in own.notes.items() if name not in ("context", "missing", "lost")}
    if lost:
        costs["lost_sources"] = float(len(lost))
    return replace(own, question_id=question.id, costs=costs, notes=notes)


def _told(name: str, answer: Answer, chosen: SelectedSource) -> dict[str, object]:
    """The note on one source."""
    passages = []
    for hit in answer.evidence:
        about = hit.passage.metadata or {}
        links = {name: about[name] for name in ("link", "links") if about.get(name)}
        passages.append({"id": hit.passage.id, "title": hit.passage.title, "source": hit.passage.source, **links})
    told: dict[str, object] = {"source": name, "answer": answer.text, "logprob": answer.logprob}
    if passages:
        told["passages"] = passages
    told |= {key: answer.notes[key] for key in ("missing", "error") if answer.notes.get(key)}
    context = answer.notes.get("context")
    if isinstance(context, dict):
        told |= {key: context[key] for key in ("no summary", "short context", "summary of") if key in context}
    if name in chosen.scores:
        told["score"] = chosen.scores[name]
    return told


def _gathered(question: Question, contexts: Mapping[str, Sequence[SourceContext]], row: int) -> Answer:
    """What the sources have given for a question, before it is read."""
    own = {name: each[row] for name, each in contexts.items()}
    notes = [
        {"source": name, "missing": each.missing, "passages": [{"title": hit.passage.title} for hit in each.passages]}
        for name, each in own.items()
    ]
    return Answer(
        question.id, "", tuple(hit for each in own.values() for hit in each.passages), notes={"sources": notes}
    )
