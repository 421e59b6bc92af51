"""Asks every source of MSRAG once per question and run, in resumable batches.

A run is one set of samples: run r adds r to the `sample` of every part that samples, so that several runs of one study
are independent draws and each is stored and resumed alone.
"""

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from common.context_sources import WEB
from common.records import Answer, Question
from harness.context_sources.web import WebContext
from harness.evaluation.serialization import digest, pack_answer, unpack_answer
from harness.evaluation.study import Settings
from harness.runtime.concurrent_work import run_together
from harness.runtime.provenance import configuration, hardware
from harness.runtime.resumable import ResumableBatches
from harness.systems.msrag import Msrag, contexts_of

QUESTIONS_AT_ONCE = 64
SINGLE_SEARCH, WHOLE_QUESTION = (
    "single search",
    "question searched",
)  # further answers: SR-RAG's, and without segmentation


@dataclass(frozen=True, slots=True)
class SourceAnswers:
    """The results of one run."""

    answers: list[dict[str, Answer]]  # of every question, by source
    extra: dict[str, list[Answer]]  # by further way to search the web
    seconds_before: float  # of an interrupted run, whose answers were reused


def ask_sources(
    system: Msrag, questions: Sequence[Question], settings: Settings, segmentation: bool, run: int = 0
) -> SourceAnswers:
    """The answers of every source, and of further ways to search.

    Args:
        system: The system.
        questions: The questions.
        settings: Of the evaluation; answers are kept in its folder for partial results.
        segmentation: Whether the web is also searched with the whole question.
        run: Number of the run, from 0.
    """
    with _sampling(system, run):
        further = _further(system) if segmentation else {}

        def work(batch: Sequence[Question]) -> list[dict[str, Any]]:
            contexts, alone = system.gather(batch, together=False)
            found = system.read(batch, contexts, alone)
            others = {name: _searched(system, web, batch) for name, web in further.items()}
            return [
                {name: pack_answer(question, answer) for name, answer in each.items()}
                | {name: pack_answer(question, own[place]) for name, own in others.items()}
                for place, (question, each) in enumerate(zip(batch, found, strict=True))
            ]

        saved = _stored(system, questions, settings, [*further], run)
        starts = range(0, len(questions), QUESTIONS_AT_ONCE)
        batches = [questions[start : start + QUESTIONS_AT_ONCE] for start in starts]
        what = f"run {run + 1}, " if run else ""
        found = saved.run(batches, work, f"answering from every source, {what}batches")
        packed = [*itertools.chain.from_iterable(found)]
    rows = [
        {name: unpack_answer(question, each) for name, each in own.items()}
        for question, own in zip(questions, packed, strict=True)
    ]
    answers = [{name: row[name] for name in system.names} for row in rows]
    return SourceAnswers(answers, {name: [row[name] for row in rows] for name in further}, saved.seconds)


def sampling_parts(parts: Sequence[object]) -> list[Any]:
    """Those that sample: readers, sources and rewriters with a number `sample` and a temperature above 0.

    Args:
        parts: Readers and sources; the sources' rewriters are looked at, too.
    """
    known = [*parts, *(getattr(part, "rewriter", None) for part in parts)]
    return [
        part
        for part in known
        if isinstance(getattr(part, "sample", None), int)
        and getattr(part, "temperature", 0.0) > 0
        and getattr(part, "summarizer", True) is not None  # the web's temperature is the summarizer's
    ]


@contextmanager
def _sampling(system: Msrag, run: int) -> Iterator[None]:
    """While open, every part draws the samples of a run."""
    parts = sampling_parts([system.reader, *system.sources.values()])
    first = [part.sample for part in parts]
    try:
        for part in parts:
            part.sample += run
        yield
    finally:
        for part, sample in zip(parts, first, strict=True):
            part.sample = sample


def _stored(
    system: Msrag, questions: Sequence[Question], settings: Settings, further: list[str], run: int
) -> ResumableBatches:
    """The stored batches of a run; none if the system was not built by the command line."""
    configured = configuration(system)
    if configured is None:
        return ResumableBatches()
    parts: dict[str, object] = {**system.sources, "reader": system.reader}
    depends_on = {
        **{key: value for key, value in configured.items() if key != "selector"},
        **{f"{name} recipe": each.recipe for name, each in parts.items() if hasattr(each, "recipe")},
        "further": further,
        "questions": digest(questions),
        "hardware": hardware(),
        **({"run": run} if run else {}),
    }
    name = f"sources-{run + 1}.jsonl" if run else "sources.jsonl"
    return ResumableBatches(settings.partial / name, depends_on)


def _further(system: Msrag) -> dict[str, WebContext]:
    """The web searched with the whole question: as SR-RAG does, and with the summary where the system makes one."""
    web = system.sources.get(WEB)
    if not isinstance(web, WebContext):
        return {}
    return {SINGLE_SEARCH: web.unsegmented(summarized=False), WHOLE_QUESTION: web.unsegmented(summarized=True)}


def _searched(system: Msrag, web: WebContext, questions: Sequence[Question]) -> list[Answer]:
    """The answers from the web, searched in another way; empty where the web is lost."""
    done = run_together({WEB: (web.contexts, (questions,))}, {WEB: web})[WEB]
    rows = system.read(questions, {WEB: contexts_of(done, questions)}, None, (WEB,))
    return [each[WEB] for each in rows]
