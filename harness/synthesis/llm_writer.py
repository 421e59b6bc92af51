"""Questions written by a large language model."""

import json
from collections.abc import Sequence

from common.chat import Chat, reply_costs
from common.records import clean
from harness.interfaces import LanguageModel
from harness.llm.prompts import Prompt
from harness.synthesis.drafts import Draft, Task

CHECK = "check_question"  # the prompt by which the language model answers the questions again
ANY = "any"  # for a passage without a candidate


class LlmWriter:
    """A writer of questions: one prompt for one passage, another for two.

    Args:
        llm: Writes the questions.
        seed: Number of the sample that is asked for; another one asks the model again.
        temperature: Of the replies; 0 is greedy.
    """

    chooses_answers = True  # also of passages without a candidate

    def __init__(self, llm: LanguageModel, seed: int = 0, temperature: float = 0.0) -> None:
        self.llm, self.seed, self.temperature = llm, seed, temperature
        self.prompts = {1: Prompt.load("write_question"), 2: Prompt.load("write_linked_question")}
        self.fact = f"{llm.name}; {self.prompts[1].fact}; {self.prompts[2].fact}"
        self.costs: dict[str, float] = {}

    def write(self, tasks: Sequence[Task]) -> list[Draft]:
        """One draft per task; a reply that is not the JSON object asked for is a failure, and so is a request that fails."""
        chats = [
            Chat(
                prompt.messages(task.passages, answer=task.answer or ANY),
                prompt.max_tokens,
                self.temperature,
                self.seed,
            )
            for task in tasks
            for prompt in [self.prompts[len(task.passages)]]
        ]
        replies = self.llm.reply(chats)
        self.costs = reply_costs(replies)
        return [Draft("", "", "failed") if reply.error else parsed(reply.text) for reply in replies]


def parsed(reply: str) -> Draft:
    """The draft in a reply: a JSON object with the texts `question` and `answer`, alone or in a fenced block."""
    text = reply.strip()
    if text.startswith("```") and text.endswith("```"):
        text = text.strip("`").removeprefix("json")
    try:
        found = json.loads(text)
    except ValueError:
        return Draft("", "", "unparsable")
    if not isinstance(found, dict) or set(found) != {"question", "answer"}:
        return Draft("", "", "unparsable")
    question, answer = found["question"], found["answer"]
    if not isinstance(question, str) or not isinstance(answer, str):
        return Draft("", "", "unparsable")
    return Draft(clean(question), clean(answer))
