"""Earlier turns before a question that no rewriter reads: the question stays whole, the oldest words are left out."""

from collections.abc import Sequence
from types import SimpleNamespace

from common.chat import Chat, Reply
from common.records import Question
from harness.readers.llm import LlmReader
from harness.runtime.long_questions import turn_notes, with_turns
from models.long_questions import HISTORY_NOTE, question_note


class Short:
    """A model that reads so many words."""

    def __init__(self, words: int) -> None:
        self.words = words

    def cut_note(self, question: str, history: Sequence[str] = ()) -> str:
        count = len(question.split())
        return "" if count <= self.words else question_note(self.words, count)


class Narrow(Short):
    """Another one."""


def Parts(*parts: object) -> SimpleNamespace:  # noqa: N802
    """A system of some parts."""
    return SimpleNamespace(parts=[*parts])


QUESTION = Question("q", "who is it ?", history=("one two three", "", "four five"))
WHOLE = "one two three four five who is it ?"


def test_the_oldest_words_of_turns_are_left_out_for_the_model_that_reads_least() -> None:
    for words in (9, 8, 6, 4, 3):  # the last: too long alone, the model cuts it
        text = " ".join(WHOLE.split()[-max(words, 4) :])
        for parts in ((Short(words),), (Short(99), Narrow(words)), (Short(words), Short(99))):
            asked = with_turns(QUESTION, Parts(*parts))
            assert (asked.text, asked.history) == (text, ())
    assert with_turns(QUESTION).text == WHOLE
    assert with_turns(Question("q", "who ?"), Parts(Short(1))).text == "who ?"
    assert turn_notes(Parts(Short(99), Narrow(8)), QUESTION) == {"Narrow": HISTORY_NOTE}
    assert turn_notes(Parts(Short(9)), QUESTION) == turn_notes(Parts(Short(1)), Question("q", "who is ?")) == {}


class Small:
    """A language model whose context has 200 words."""

    name = "small"

    def reply(self, chats: Sequence[Chat]) -> list[Reply]:
        return [Reply("x")] * len(chats)

    def room(self, chat: Chat) -> int:
        return 200 - sum(len(message.content.split()) for message in chat.messages)


def test_turns_leave_half_of_a_context_to_the_passages() -> None:
    reader = LlmReader(Small())
    long = Question("q", "who is it ?", history=("word " * 500,))
    asked = with_turns(long, Parts(reader))
    assert asked.text.endswith("word who is it ?")
    assert reader.leaves_room(asked.text)
    assert not reader.leaves_room(f"word {asked.text}")
    assert turn_notes(Parts(reader), long) == {"LlmReader": HISTORY_NOTE}
