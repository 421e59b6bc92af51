"""Questions written by a large language model."""

from collections.abc import Sequence

from common.chat import Chat, reply_costs
from common.records import clean
from harness.interfaces import LanguageModel
from harness.llm.prompts import Prompt
from harness.llm.structured import ask_parsed, json_fields, text
from harness.synthesis.drafts import Draft, DraftTask

CHECK = "check_question"  # the prompt by which the language model answers the questions again
FIELDS = {"question": text(), "answer": text()}
ANY = "any"  # for a passage without a candidate


class LlmWriter:
    """A writer of questions: one prompt for one passage, another for two.

    Args:
        llm: Writes the questions.
        temperature: Of the replies; 0 is greedy.
    """

    def __init__(self, llm: LanguageModel, temperature: float = 0.0) -> None:
        self.llm, self.temperature = llm, temperature
        self.prompts = {1: Prompt.load("write_question"), 2: Prompt.load("write_linked_question")}
        self.fact = f"{llm.name}; {self.prompts[1].fact}; {self.prompts[2].fact}"
        self.costs: dict[str, float] = {}

    def write(self, tasks: Sequence[DraftTask]) -> list[Draft]:
        """One draft per task, in order, perhaps with another answer than its candidate.

        A reply that is not the JSON object asked for is shown to the model again once.
        """
        chats = [
            Chat(prompt.messages(task.passages, answer=task.answer or ANY), prompt.max_tokens, self.temperature)
            for task in tasks
            for prompt in [self.prompts[len(task.passages)]]
        ]
        results = ask_parsed(self.llm, chats, parsed)
        self.costs = reply_costs([reply for result in results for reply in result.replies])
        return [
            result.value or Draft("", "", "failed" if (why := result.replies[-1].error) else "unparsable", why)
            for result in results
        ]


def parsed(reply: str) -> Draft:
    """The draft in a reply.  Raises ValueError if it does not hold the JSON object that the prompts ask for."""
    return Draft(**{key: clean(value) for key, value in json_fields(reply, FIELDS).items()})
