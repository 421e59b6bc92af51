"""Rewriting baselines by one prompt each.

LLM Rewrite, HyDE, the similar queries of RAG-Fusion, or a prompt of your own.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from common.chat import Chat
from common.checks import check_at_least
from common.errors import UserError
from common.records import Question, clean
from common.rewrites import Rewrites
from harness.interfaces import LanguageModel
from harness.llm.prompts import Prompt
from harness.llm.structured import ask_parsed
from harness.rewriters.fallbacks import tell_fallbacks, with_fallbacks
from models.dmqr.rewrite_outputs import SEPARATOR, queries_of, without_bullet


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
        UserError: If a value is not allowed, or the prompt has no place for the question.
        MissingInputError: If the prompt's file does not exist.
        DataError: If it is no prompt.
    """

    def __init__(
        self,
        llm: LanguageModel,
        prompt: str = "rewrite_query",
        queries: int = 1,
        repairs: int = 1,
        max_tokens: int | None = None,
        temperature: float = 0.0,
        sample: int = 0,
    ) -> None:
        self.check_options(prompt, queries, repairs, max_tokens, temperature, sample)
        self.llm, self.prompt, self.queries, self.repairs = llm, Prompt.load(prompt), queries, repairs
        self.max_tokens, self.temperature = max_tokens or self.prompt.max_tokens, temperature
        self.sample = sample
        self.name = f"{llm.name}, {self.prompt.name}"

    @staticmethod
    def check_options(
        prompt: str, queries: int, repairs: int, max_tokens: int | None, temperature: float, sample: int = 0
    ) -> None:
        """Check values and the prompt's file.  Raises UserError or a subclass."""
        check_at_least(1, queries=queries, max_tokens=max_tokens)
        check_at_least(0, repairs=repairs, temperature=temperature, sample=sample)
        loaded = Prompt.load(prompt)
        loaded.messages(question="", count="")  # refuses other places
        if "${question}" not in loaded.user + loaded.system:
            raise UserError(f"prompt {loaded.name} needs a place ${{question}} for the question.")

    @staticmethod
    def check_strategies(strategies: Sequence[str], prompt: str) -> None:
        """Raise UserError if the strategies are another than the prompt's name; called before anything is loaded."""
        name = Path(prompt).stem
        if list(strategies) != [name]:
            raise UserError(
                f"strategies is {list(strategies)}; the prompt {name} is one strategy: set strategies to [{name}]."
            )

    @property
    def facts(self) -> list[str]:
        """The model and the prompt with its hash, for reports."""
        return [f"rewriter: {self.llm.name}", self.prompt.fact]

    @property
    def recipe(self) -> dict[str, object]:
        """What the rewrites depend on besides the options: the model, and the prompt's content and limit."""
        return {"llm": self.llm.name, "prompt": self.prompt.hash, "max_tokens": self.max_tokens}

    def rewrite(self, questions: Sequence[Question], strategies: Sequence[str]) -> list[Rewrites]:
        """The queries of every question.  Of fewer valid lines than `queries` after the repairs, those that there are.

        Raises:
            UserError: If the strategies are another than the prompt's name, or no call can succeed (from the model).
        """
        self.check_strategies(strategies, self.prompt.name)
        texts = [clean(question.text) for question in questions]
        chats = [
            Chat(messages, self.max_tokens, self.temperature, self.sample)
            for messages in (self.prompt.messages(question=text, count=str(self.queries)) for text in texts)
        ]
        found = []
        outcomes = (
            ask_parsed(self.llm, chats, partial(self._queries, least=self.queries), self.repairs) if chats else []
        )
        for text, asked in zip(texts, outcomes, strict=True):
            made = asked.value or max((self._lines(each.text) for each in asked.replies), key=len)
            found.append(with_fallbacks(text, strategies, {self.prompt.name: made}, asked.failure, "", asked.costs))
        tell_fallbacks(self.name, found)
        return found

    def _queries(self, reply: str, least: int) -> tuple[str, ...]:
        """The queries in a reply; raises ValueError if there are fewer than `least`."""
        found = self._lines(reply)
        if len(found) < least:
            raise ValueError(
                f"it holds {len(found)} different queries instead of {least}, one a line"
                if least > 1
                else "it is empty"
            )
        return found

    def _lines(self, reply: str) -> tuple[str, ...]:
        """The distinct queries in a reply, at most `queries`."""
        if self.queries == 1:
            return queries_of(self.prompt.answer(reply), several=False)
        lines = (self.prompt.answer(without_bullet(line)) for line in reply.splitlines())
        return queries_of(SEPARATOR.join(line.replace(SEPARATOR.strip(), ",") for line in lines), several=True)[
            : self.queries
        ]
