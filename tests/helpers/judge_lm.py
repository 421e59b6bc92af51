"""A judge that follows a rule: its verdict depends on the value that it is asked about; and two readers."""

import json
import re
from collections.abc import Sequence

from common.chat import Chat, Reply
from common.records import Answer, Question, Ranked
from tests.helpers.tiny_lm import VALUES

INVALID = "maybe"
GRADES = dict(zip(VALUES, ("correct", "incorrect", "partly correct", "correct", "") * 2, strict=False))  # "": invalid
RELEVANT = dict(zip(VALUES, (True, False, True, False, None) * 2, strict=False))  # None: invalid
JUDGED = (*GRADES,)[:8]


class RuleJudge:
    """Judges by `GRADES` and `RELEVANT`."""

    name = "rules"

    def reply(self, chats: Sequence[Chat]) -> list[Reply]:
        """One reply per chat."""
        return [Reply(_judged(chat.messages[-1].content), prompt_tokens=10, reply_tokens=5) for chat in chats]


def _judged(asked: str) -> str:
    if answer := re.search(r"<answer>(.*)</answer>", asked):
        grade = GRADES[answer[1]]
        return json.dumps({"reason": "so", "verdict": grade}) if grade else INVALID
    (value,) = re.findall(r"is (\w+) \.", asked)
    relevant = RELEVANT[value]
    return INVALID if relevant is None else json.dumps({"reason": "so", "relevant": relevant})


class FirstPassage:
    """A reader: the value in the first passage, its last word."""

    def read(self, questions: Sequence[Question], evidence: Sequence[Sequence[Ranked]]) -> list[Answer]:
        """One answer per question; empty without a passage."""
        texts = [hits[0].passage.text.rstrip(" .").split()[-1] if hits else "" for hits in evidence]
        return [Answer(each.id, text, (), -0.5) for each, text in zip(questions, texts, strict=True)]


class LastPassage(FirstPassage):
    """A reader: the value in the last passage."""

    def read(self, questions: Sequence[Question], evidence: Sequence[Sequence[Ranked]]) -> list[Answer]:
        """One answer per question; empty without a passage."""
        return super().read(questions, [hits[::-1] for hits in evidence])
