"""Rewriting baselines by one prompt each.

LLM Rewrite, HyDE, the similar queries of RAG-Fusion, or a prompt of your own.
"""

import re
from collections.abc import Sequence
from functools import cached_property

from common.ranges import NonNegativeFloat, NonNegativeInt, PositiveInt
from common.records import Question, as_questions, as_texts, clean
from common.rewrites import Rewrites
from harness.interfaces import LanguageModel
from harness.llm.prompts import Prompt, bare
from harness.llm.reply_text import decoded
from harness.llm.structured import ask_parsed
from harness.rewriters.fallbacks import tell_fallbacks, with_fallbacks
from harness.rewriters.strategy_checks import check_known
from harness.runtime.loading import load
from models.dmqr.rewrite_outputs import SEPARATOR, queries_of

_ITEM = re.compile(  # "1. ", "- ", "Query 2: ", "**Sub-question 3:** "
    r"^(?:(?:[(\uff08]?\d{1,3}[.):\uff0e\uff09：]\s+|[-*+•\uff0d\uff0a\uff0b]\s+|#+\s+)|"
    r"\W*(?:search quer(?:y|ies)|quer(?:y|ies)|(?:sub-?\s?)?questions?|q)\s*#?\d*\W*[:：][*_\s]*)+",
    re.IGNORECASE,
)


class PromptRewriter:
    """Rewrites questions with a language model by one prompt, whose name is the only strategy.

    Args:
        llm: The language model.
        prompt: `rewrite_query` (Rewrite-Retrieve-Read, zero-shot: one search query), `hyde` (a passage that answers the
            question, Gao et al. 2023), `similar_queries` (RAG-Fusion), or a .yaml file in their form with the place
            ${question}.
        queries: Number of queries, one a line of the reply (place ${count}); with 1 the whole reply is the query.
        repairs: Further calls for a reply that cannot be used, at most.
        max_tokens: Most tokens of a reply; the prompt's when omitted.
        temperature: 0 is greedy.
        sample: Number of the sample, with a temperature above 0: another number gives other queries.

    Raises:
        UserError: If the prompt has no place for the question, or another one.
        MissingInputError: If the prompt's file does not exist.
        DataError: If it is no prompt.
    """

    def __init__(
        self,
        llm: LanguageModel,
        prompt: str = "rewrite_query",
        queries: PositiveInt = 1,
        repairs: NonNegativeInt = 1,
        max_tokens: PositiveInt | None = None,
        temperature: NonNegativeFloat = 0.0,
        sample: NonNegativeInt = 0,
    ) -> None:
        self.llm, self._prompt, self.queries, self.repairs = llm, prompt, queries, repairs
        self._max_tokens, self.temperature, self.sample = max_tokens, temperature, sample

    def load(self) -> None:
        """Load the prompt and the language model."""
        _ = self.prompt
        load(self.llm)

    @cached_property
    def prompt(self) -> Prompt:
        """With a place for the question."""
        return Prompt.with_places(self._prompt, ["question", "count"], "question", self._max_tokens)

    @property
    def name(self) -> str:
        """For reports."""
        return f"{self.llm.name}, {self.prompt.name}"

    @property
    def strategies(self) -> tuple[str, ...]:
        """The prompt's name."""
        return (self.prompt.name,)

    @property
    def facts(self) -> list[str]:
        """The model and the prompt with its hash, for reports."""
        return [f"rewriter: {self.llm.name}", self.prompt.fact]

    @property
    def recipe(self) -> dict[str, object]:
        """What the rewrites depend on besides the options: the model, and the prompt's content and limit."""
        return {"llm": self.llm.name, "prompt": self.prompt.hash, "max_tokens": self.prompt.max_tokens}

    def rewrite(self, questions: Sequence[Question], strategies: Sequence[str]) -> list[Rewrites]:
        """The queries of every question.  Of fewer valid lines than `queries` after the repairs, those that there are.

        Raises:
            UserError: If the strategies are another than the prompt's name, or no call can succeed (from the model).
        """
        questions, strategies = as_questions(questions), as_texts(strategies)
        check_known(self, strategies)
        texts = [clean(question.text) for question in questions]
        count, found = str(self.queries), []
        chats = [self.prompt.chat(self.temperature, self.sample, question=text, count=count) for text in texts]
        outcomes = ask_parsed(self.llm, chats, self._queries, self.repairs)
        for text, asked in zip(texts, outcomes, strict=True):
            made = asked.value or max((self._lines(each.text) for each in asked.replies), key=len)
            found.append(with_fallbacks(text, strategies, {self.prompt.name: made}, asked.failure, "", asked.costs))
        return tell_fallbacks(self.name, found)

    def _queries(self, reply: str) -> tuple[str, ...]:
        """The queries in a reply; raises ValueError if there are too few."""
        found = self._lines(reply)
        if len(found) < self.queries:
            few = f"it holds {len(found)} different queries instead of {self.queries}, one a line"
            raise ValueError(few if self.queries > 1 else "it is empty")
        return found

    def _lines(self, reply: str) -> tuple[str, ...]:
        """The distinct queries in a reply, at most `queries`."""
        if self.queries == 1:
            return queries_of(self.prompt.answer(reply), several=False)
        lines = _listed(
            self.prompt.marked(decoded(reply)), self.queries, "question" in self.prompt.answer_after.lower()
        )
        return queries_of(SEPARATOR.join(line.replace(SEPARATOR.strip(), ",") for line in lines), several=True)[
            : self.queries
        ]


def _listed(text: str, count: int, questions_alone: bool) -> list[str]:
    """The queries in a reply, one a line, without labels, and without what a model says before or after its list.

    A line that ends in a colon announces others. If some lines have a list's mark or a label, the others are none. If
    some are questions, the others are none where questions are asked for, or if there are more than `count`.
    """
    lines = [line for line in map(clean, text.splitlines()) if not line.strip(" *_").endswith((":", "："))]
    listed = [line for line in lines if _ITEM.match(line)] or lines
    queries = [query for line in listed if (query := bare(_ITEM.sub("", line)))]
    questions = [query for query in queries if query.endswith(("?", "？"))]
    return questions if questions and (questions_alone or len(queries) > count <= len(questions)) else queries
