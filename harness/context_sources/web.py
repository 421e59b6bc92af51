"""Information-Web (MSRAG, Section II): sub-questions, one search each, results merged and summarized.

q -> sub-questions (at most three) -> one search each -> merged by rank, without duplicates -> summary by a language
model, or the passages themselves under a budget of words
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Self

from common.chat import Chat, Reply, named_calls, reply_costs
from common.context_sources import WEB, SourceContext
from common.ranges import NonNegativeFloat, NonNegativeInt, PositiveInt
from common.records import Passage, Question, Ranked, as_questions
from harness.context_sources.budget import of_source, within_words
from harness.interfaces import LanguageModel, Retriever, Rewriter
from harness.llm.prompts import Prompt
from harness.readers.read_answers import sum_costs
from harness.retrievers.multi_query import MultiQueryHits, MultiQueryRetriever
from harness.retrievers.multi_query_records import counts, explanation
from harness.runtime.loading import load
from harness.runtime.provenance import with_arguments

NOTHING_FOUND = "no search found anything"
READ_PASSAGES, READ_WORDS = 5, 600  # of the context without a summary, where no option says otherwise
DECOMPOSITION = ("decomposition",)


class WebContext:
    """Searches with the sub-questions of each question and merges the results.

    The lists of the sub-questions are merged by reciprocal ranks, each passage once. Without a summarizer the merged
    passages are the context; with one, its summary is, as one passage whose metadata has the links; a failed call
    leaves the passages. The summarizer reads all passages that were found, as in the paper.

    Args:
        retriever: Searches: a web search, or an index over a corpus that stands for the web.
        rewriter: Makes the sub-questions: harness.rewriters.prompted.PromptRewriter with the prompt sub_questions, or a
            trained rewriter; None searches with the question alone.
        strategies: Of the rewriter; [sub_questions] for that prompt.
        sub_questions: At most this many of them, the first ones.
        per_query: Passages per search.
        passages: Passages after merging, at most; when omitted all are summarized, and without a summary 5 are read.
        max_words: Words of these passages together, at most; when omitted all are summarized, and without a summary 600
            are read.
        summarizer: Language model that merges and summarizes; None leaves the passages as they are.
        prompt: Of the summarizer: a name or a .yaml file, with the places documents, question and sub_questions.
        temperature: Of the summarizer; 0 is greedy.
        sample: Number of the sample, with a temperature above 0: another number gives other summaries.

    Raises:
        UserError: If the prompt has another place.
        MissingInputError: If the prompt's file does not exist.
        DataError: If it is no prompt.
    """

    def __init__(
        self,
        retriever: Retriever,
        rewriter: Rewriter | None = None,
        strategies: tuple[str, ...] = DECOMPOSITION,
        sub_questions: PositiveInt = 3,
        per_query: PositiveInt = 5,
        passages: PositiveInt | None = None,
        max_words: PositiveInt | None = None,
        summarizer: LanguageModel | None = None,
        prompt: str = "summarize_web",
        temperature: NonNegativeFloat = 0.0,
        sample: NonNegativeInt = 0,
    ) -> None:
        self.retriever, self.rewriter, self.strategies = retriever, rewriter, tuple(strategies)
        self.sub_questions, self.per_query, self.passages = sub_questions, per_query, passages
        self.max_words, self.summarizer = max_words, summarizer
        self.prompt_file, self.temperature, self.sample = prompt, temperature, sample
        _ = self._search  # a wrong option is told at once

    def load(self) -> None:
        """Load the prompt, the summarizer, the rewriter and the retriever."""
        _ = self.prompt
        load(self.summarizer, self._search)

    @property
    def _search(self) -> MultiQueryRetriever:
        return MultiQueryRetriever(
            self.retriever, self.rewriter, self.strategies, self.per_query, "rrf", original=self.rewriter is None,
            max_queries=self.sub_questions,
        )  # fmt: skip

    @cached_property
    def prompt(self) -> Prompt:
        """Of the summarizer."""
        return Prompt.with_places(self.prompt_file, ["question", "sub_questions"])

    @property
    def facts(self) -> list[str]:
        """The models behind the sub-questions and the summary, for reports."""
        rewriter = getattr(self.rewriter, "facts", [f"rewriter: {self.rewriter.name}"]) if self.rewriter else []
        summary = [f"summary of the web: {self.summarizer.name}", self.prompt.fact] if self.summarizer else []
        return [*(f"sub-questions, {fact}" for fact in rewriter), *summary]

    @property
    def recipe(self) -> dict[str, object]:
        """What the contexts depend on besides the options: the rewriter's models and prompts, and the summarizer's."""
        summary = {"llm": self.summarizer.name, "prompt": self.prompt.hash} if self.summarizer else None
        return {"rewriter": getattr(self.rewriter, "recipe", None), "summary": summary}

    def unsegmented(self, summarized: bool) -> Self:
        """The same source searching with the question alone (Figure 2), with or without the summary."""
        if self.rewriter is None and (summarized or self.summarizer is None):
            return self
        summarizer = self.summarizer if summarized else None
        made: Self = with_arguments(self, rewriter=None, strategies=DECOMPOSITION, summarizer=summarizer)
        return made

    def contexts(self, questions: Sequence[Question]) -> list[SourceContext]:
        """The merged passages, or their summary, of every question.

        Notes as `harness.systems.dmqr.Dmqr`'s on the queries.

        A question whose searches failed, and of which no other search found anything, has lost the source.

        Costs: searches, those that failed, calls of the rewriter and their fallbacks, calls of the summarizer as
        `summary_calls`.

        Raises:
            UnavailableError: If the search, or a language model, cannot be reached.
            UserError: If the rewriter does not know a strategy, or no call of a language model can succeed.
        """
        questions = as_questions(questions)
        if not questions:
            return []
        started = time.perf_counter()
        batch = self._search.find(questions, self.passages or self.sub_questions * self.per_query)
        most, words = self.passages or READ_PASSAGES, self.max_words or READ_WORDS
        found = [of_source(within_words(hits.ranked[:most], words), WEB) for hits in batch.results]
        seconds = (time.perf_counter() - started) / len(questions)
        contexts = []
        for hits, ranked in zip(batch.results, found, strict=True):
            told = explanation(hits)
            notes: dict[str, object] = {name: told[name] for name in ("queries", "fallbacks", "reason") if name in told}
            costs = {**counts(hits, 0.0), "seconds/search": seconds}
            failed = next((each.failure for each in hits.searches if each.failure), "")
            missing = "" if ranked else failed or NOTHING_FOUND
            contexts.append(SourceContext(ranked, missing, lost=bool(failed and not ranked), costs=costs, notes=notes))
        return self._summarized(questions, batch.results, contexts) if self.summarizer else contexts

    def _summarized(
        self, questions: Sequence[Question], found: Sequence[MultiQueryHits], contexts: Sequence[SourceContext]
    ) -> list[SourceContext]:
        """The contexts with a summary in the place of their passages; as they are where a call fails."""
        assert self.summarizer is not None
        started = time.perf_counter()
        merged = {row: self._merged(found[row]) for row, context in enumerate(contexts) if context.passages}
        replies = self.summarizer.reply([self._chat(found[row], passages) for row, passages in merged.items()])
        seconds = (time.perf_counter() - started) / len(questions)
        summarized = list(contexts)
        for (row, passages), reply in zip(merged.items(), replies, strict=True):
            summarized[row] = self._with_summary(contexts[row], passages, reply)
        return [replace(each, costs={**each.costs, "seconds/summary": seconds}) for each in summarized]

    def _merged(self, found: MultiQueryHits) -> tuple[Ranked, ...]:
        """The passages that are summarized."""
        return tuple(found.ranked) if self.max_words is None else within_words(found.ranked, self.max_words)

    def _chat(self, found: MultiQueryHits, merged: Sequence[Ranked]) -> Chat:
        shown = [hit.passage for hit in merged]
        asked = "\n".join(f"- {search.query}" for search in found.searches)
        return self.prompt.chat(self.temperature, self.sample, shown, question=found.question, sub_questions=asked)

    def _with_summary(self, context: SourceContext, merged: Sequence[Ranked], reply: Reply) -> SourceContext:
        text = self.prompt.answer(reply.text).strip()
        costs = sum_costs(context.costs, named_calls(reply_costs((reply,)), "summary"))
        if reply.error or not text:
            why = reply.error or "it is empty"
            return replace(context, costs=costs, notes={**context.notes, "no summary": why})
        links = [link for hit in merged if (link := (hit.passage.metadata or {}).get("link"))]
        read = [{"id": hit.passage.id, "title": hit.passage.title} for hit in merged]
        summary = Passage.of("", text, WEB, metadata={"links": links} if links else None)
        notes = {**context.notes, "summary of": read}
        return replace(context, passages=(Ranked(summary, 1.0),), costs=costs, notes=notes)
