"""Several turns: a question that refers to earlier ones becomes a question that can be searched for alone."""

import time
from dataclasses import dataclass, field
from typing import Literal

from common.chat import Chat, reply_costs
from common.progress import say
from harness.interfaces import LanguageModel
from harness.llm.prompts import Prompt
from harness.runtime.turns import joined

History = Literal["none", "prepend", "rewrite"]
PROMPT = "rewrite_turn"


@dataclass
class Conversation:
    """The turns so far, and how they enter the next question.

    Args:
        mode: none: each question stands alone. prepend: the earlier questions and answers are put before it. rewrite: a
            language model rewrites it.
        llm: For `rewrite`.
        turns: Only this many of the last turns are used.
    """

    mode: History
    llm: LanguageModel | None = None
    turns: int = 3
    _turns: list[tuple[str, str]] = field(default_factory=list)

    @property
    def history(self) -> tuple[str, ...]:
        """The last turns for `Question.history`: questions and answers by turns, oldest first."""
        return tuple(part for turn in self._turns[-self.turns :] for part in turn if part)

    def standalone(self, question: str) -> tuple[str, dict[str, float]]:
        """The question with what it needs of the earlier turns, as it is if there are none, or if the rewriting fails.

        Also the costs of the rewriting, for `Answer.costs`.
        """
        turns = self._turns[-self.turns :]
        if self.mode == "none" or not turns:
            return question, {}
        if self.mode == "prepend":
            return joined(self.history, question), {}
        assert self.llm is not None  # checked by the command
        prompt = Prompt.load(PROMPT)
        history = "\n".join(f"Question: {asked}\nAnswer: {answer or '(none)'}" for asked, answer in turns)
        chat = Chat(prompt.messages(history=history, question=question), prompt.max_tokens)
        started = time.perf_counter()
        (reply,) = self.llm.reply([chat])
        costs = {**reply_costs([reply]), "seconds/rewriting": time.perf_counter() - started}
        text = prompt.answer(reply.text)
        if reply.error or not text:
            say(f"The question was not rewritten ({reply.error or 'the reply is empty'}): it is asked as it stands.")
            return question, costs
        return text, costs

    def add(self, question: str, answer: str) -> None:
        """Remember a turn: the question as it was answered, and the answer."""
        self._turns.append((question, answer))
