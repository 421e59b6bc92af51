"""Information-GPT (MSRAG, Section II and Figure 3): a language model's knowledge on a question, as a passage."""

import re
import time
from collections.abc import Sequence
from functools import cached_property
from typing import Annotated, Any

from pydantic import Field

from common.answer_metrics import squad
from common.chat import named_calls
from common.context_sources import GENERATED, SourceContext
from common.ranges import NonNegativeFloat, NonNegativeInt
from common.records import Passage, Question, Ranked, as_questions
from harness.interfaces import LanguageModel
from harness.llm.prompts import Prompt
from harness.llm.structured import VALID, ParsedReply, ReplyFields, ask_parsed, json_object
from harness.runtime.loading import load
from harness.runtime.long_questions import with_turns

NOT_RETRIEVED = "The relevant information could not be retrieved."  # Figure 3's words of a model that knows nothing
NOTHING_KNOWN = "the model has no information on it"
_SHORTEST_TEXT = 30  # words; a longer text says something besides the sentence

_KEY = re.compile(r"""(?:^|[\s{,"'“])content["'”]?\s*[:：]""")
_CONTENT = re.compile(  # in quotes up to the last one: a text that was cut off has none
    r"""(?:^|[\s{,"'“])content["'”]?\s*[:：]\s*(?:["“](.*)["”]|([^\s"“}][^}]*?)\s*\}|)[\s},;`"-]*$""", re.DOTALL
)


class _Written(ReplyFields):
    question: Any = None
    content: Annotated[str, Field(min_length=1, max_length=20_000), VALID]


class GeneratedContext:
    """Asks a language model for its knowledge (Figure 3's prompt), and parses the reply strictly.

    The reply is a JSON object with the text `content`; one that is not, or whose content is shorter than the floor, is
    shown to the model again with the reason. A text that stays short is used, counted as `short_contexts` and noted. A
    model that says that the information could not be retrieved gives no context (`not_retrieved`); a failed call loses
    the source for that question.

    Args:
        llm: The language model.
        prompt: Name of a prompt, or a .yaml file, with the place question, whose reply has that form.
        min_words: The floor; the paper's is 70.
        repairs: Further calls for a reply that cannot be used, at most.
        temperature: 0 is greedy.
        sample: Number of the sample, with a temperature above 0: another number gives other texts.

    Raises:
        UserError: If the prompt has another place.
        MissingInputError: If the prompt's file does not exist.
        DataError: If it is no prompt.
    """

    def __init__(
        self,
        llm: LanguageModel,
        prompt: str = "generate_context",
        min_words: NonNegativeInt = 70,
        repairs: NonNegativeInt = 1,
        temperature: NonNegativeFloat = 0.0,
        sample: NonNegativeInt = 0,
    ) -> None:
        self.llm, self._prompt, self.min_words, self.repairs = llm, prompt, min_words, repairs
        self.temperature, self.sample = temperature, sample

    def load(self) -> None:
        """Load the prompt and the language model."""
        _ = self.prompt
        load(self.llm)

    @cached_property
    def prompt(self) -> Prompt:
        """With a place for the question."""
        return Prompt.with_places(self._prompt, ["question"])

    @property
    def facts(self) -> list[str]:
        """The model and the prompt with its hash, for reports."""
        return [f"generated context: {self.llm.name}", self.prompt.fact]

    @property
    def recipe(self) -> dict[str, object]:
        """What the contexts depend on besides the options: the model, and the prompt's content and limit."""
        return {"llm": self.llm.name, "prompt": self.prompt.hash, "max_tokens": self.prompt.max_tokens}

    def contexts(self, questions: Sequence[Question]) -> list[SourceContext]:
        """The model's text on every question as one passage; calls are counted as `context_calls`.

        Raises:
            UnavailableError: If the language model cannot be reached.
            UserError: If no call can succeed.
        """
        questions = as_questions(questions)
        if not questions:
            return []
        started = time.perf_counter()
        texts = [with_turns(question, self).text for question in questions]
        chats = [self.prompt.chat(self.temperature, self.sample, question=text) for text in texts]
        asked = ask_parsed(self.llm, chats, self._content, self.repairs)
        seconds = (time.perf_counter() - started) / len(questions)
        return [self._context(each, seconds) for each in asked]

    def _content(self, reply: str) -> str:
        """The content of a reply; raises ValueError if there is none or it is too short."""
        if says_nothing(reply):  # in no JSON object
            return NOT_RETRIEVED
        content = content_of(reply)
        words = len(content.split())
        if words < self.min_words and not says_nothing(content):
            raise ValueError(
                f"its content has {words} words, and must have at least {self.min_words}, or be {NOT_RETRIEVED!r}"
            )
        return content

    def _context(self, asked: ParsedReply[str], seconds: float) -> SourceContext:
        costs = {**named_calls(asked.costs, "context"), "seconds/context": seconds}
        content = asked.value or max((_content_or_nothing(each.text) for each in asked.replies), key=len, default="")
        notes: dict[str, object] = {}
        if not content:
            return SourceContext((), asked.failure, lost=True, costs=costs)
        if says_nothing(content):
            return SourceContext((), NOTHING_KNOWN, costs={**costs, "not_retrieved": 1.0})
        if asked.value is None:
            costs["short_contexts"], notes["short context"] = 1.0, asked.failure
        return SourceContext((Ranked(Passage.of("", content, GENERATED), 1.0),), costs=costs, notes=notes)


def content_of(reply: str) -> str:
    """The text `content` of the JSON object in a reply; the question may stand beside it.

    An object in the very form of Figure 3 is no JSON: it has quotes within the text, no comma, keys without quotes.

    Raises:
        ValueError: If there is no object, it has no such text, or it has a further key.
    """
    try:
        found = json_object(reply)
    except ValueError:
        written = _CONTENT.search(reply)
        if not written or len(_KEY.findall(reply)) > 1:
            raise
        said = (written[1] or written[2]).replace('\\"', '"').replace("\\n", "\n")
        found = {"content": said}
    return _Written.checked(found).content


def says_nothing(content: str) -> bool:
    """Whether a text is Figure 3's sentence in any case, perhaps with a few words around it."""
    return squad(NOT_RETRIEVED) in squad(content) and len(content.split()) < _SHORTEST_TEXT


def _content_or_nothing(reply: str) -> str:
    try:
        return content_of(reply)
    except ValueError:
        return ""
