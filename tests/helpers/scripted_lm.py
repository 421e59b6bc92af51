"""Language models whose replies are written down, or follow a rule: what a program makes of any reply.

A trained model gives many of them only by chance.  Those without arguments can be named on a command line.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import yaml

from common.chat import Chat, Reply
from tests.helpers.tiny_lm import PLACES, VALUES

FAILS = "FAILS"  # a reply that is a failed call


class ScriptedLm:
    """Replies as it is told, and remembers what it was asked.

    Args:
        replies: A function of the chat; or by a text that the chat's first user message contains, its n-th reply in
            the n-th round, the last one from then on.
    """

    name = "scripted"

    def __init__(self, replies: Callable[[Chat], str] | Mapping[str, Sequence[str]]) -> None:
        self.replies = replies
        self.asked: list[list[Chat]] = []  # by call

    def reply(self, chats: Sequence[Chat]) -> list[Reply]:
        """One reply per chat."""
        self.asked.append(list(chats))
        texts = [self.replies(chat) if callable(self.replies) else self._written(chat) for chat in chats]
        failed = Reply("", error="HTTP 500", finish="", retries=2)
        return [failed if t == FAILS else Reply(t, prompt_tokens=10, reply_tokens=len(t.split())) for t in texts]

    def _written(self, chat: Chat) -> str:
        assert not callable(self.replies)
        asked = next(message.content for message in chat.messages if message.role == "user")
        (texts,) = [texts for question, texts in self.replies.items() if question in asked]
        return texts[min(sum(message.role == "assistant" for message in chat.messages), len(texts) - 1)]


class FormattingLm(ScriptedLm):
    """Replies to each window of a document with what a function makes of its text, and the text before and after it."""

    name = "formatting"

    def __init__(self, convert: Callable[[str, str, str], str]) -> None:
        parts = re.compile(r"<before>\n(.*)\n</before>\n<window>\n(.*)\n</window>\n<after>\n(.*)\n</after>", re.DOTALL)

        def formatted(chat: Chat) -> str:
            found = parts.fullmatch(chat.messages[-1].content)
            assert found is not None
            return convert(found[2], found[1], found[3])

        super().__init__(formatted)


JUDGED = VALUES[:8]  # what the judge is asked about
GRADES = ("correct", "incorrect", "partly correct", "correct", "")  # of the values by turns; the last: no valid JSON
JUDGE_PROMPTS = {
    "answer_prompt": {"user": "${question} Accepted: ${gold} Grade: ${answer} ."},
    "passage_prompt": {"user": "${question} Passage: ${documents}", "document": "${text}"},
}


class Judge(ScriptedLm):
    """Its verdict depends on the value that it is asked about; passages are relevant by turns."""

    def __init__(self) -> None:
        def verdict(chat: Chat) -> str:
            asked = chat.messages[-1].content
            value = re.findall(r"(\w+) \.", asked)[-1]
            grade = GRADES[VALUES.index(value) % len(GRADES)]
            if "Grade: " in asked:
                return json.dumps({"reason": "so", "verdict": grade}) if grade else "maybe"
            return json.dumps({"reason": "so", "relevant": VALUES.index(value) % 2 == 0})

        super().__init__(verdict)


def judge_options(folder: Path) -> list[str]:
    """The options of a command line that name the judge and its prompts, which are written to a folder."""
    folder.mkdir(exist_ok=True)
    options = ["--judge.llm", "tests.helpers.scripted_lm.Judge"]
    for option, prompt in JUDGE_PROMPTS.items():
        (folder / f"{option}.yaml").write_text(yaml.safe_dump({**prompt, "max_tokens": 120}))
        options += [f"--judge.{option}", str(folder / f"{option}.yaml")]
    return options


STRATEGIES = ("kwr", "par")
KNOWN = PLACES[:4]  # the places that the rewriter is asked about
UNUSABLE = KNOWN[-1]  # the place for which it replies nonsense
POOL = {
    "strategies": [
        {"name": "kwr", "title": "Keywords", "description": "Its keywords.", "guideline": "for all."},
        {"name": "par", "title": "Answer", "description": "An answer.", "guideline": "for rivers."},
    ],
    "demonstrations": [{"question": "?", "rewrites": {"kwr": "river", "par": "The river"}, "reason": "river"}],
}


def rewrites(place: str) -> dict[str, str]:
    """What the rewriter makes of a question."""
    return {"kwr": f"river, {place}", "par": f"The river of {place} is"}


class RewritingLm(ScriptedLm):
    """Rewrites the questions of `tests.helpers.tiny_lm` by the strategies of POOL.

    Where it chooses, it takes both for the first place and keywords alone for the others.
    """

    def __init__(self) -> None:
        def rewritten(chat: Chat) -> str:
            asked = chat.messages[0].content
            place = re.findall(r"of (\w+) \?", asked)[-1]
            lines = [f"Keywords: {rewrites(place)['kwr']}", f"Answer: {rewrites(place)['par']}"]
            if "reason: " in asked:
                lines = [*(lines if place == KNOWN[0] else lines[:1]), "reason: river"]
            return "Sure" if place == UNUSABLE else "\n".join(lines)

        super().__init__(rewritten)
