"""A language model that rewrites a few questions of `tests.helpers.tiny_lm`, by two strategies and by its own choice.

Where it chooses, it takes both strategies for the first place and keywords alone for the others. For one place it
replies in no form that can be used.
"""

from collections.abc import Sequence
from pathlib import Path

import yaml

from common.chat import Chat, Reply
from tests.helpers.tiny_lm import PLACES

STRATEGIES = ("kwr", "par")
KNOWN = PLACES[:4]  # the places that it is asked about
UNUSABLE = KNOWN[-1]  # the place for which it replies nonsense
POOL = {
    "strategies": [
        {"name": "kwr", "title": "Keywords", "description": "Its keywords.", "guideline": "for all."},
        {"name": "par", "title": "Answer", "description": "An answer.", "guideline": "for rivers."},
    ],
    "demonstrations": [
        {"question": "?", "rewrites": {"kwr": "river", "par": "The river"}, "reason": "river"},
    ],
}


def rewrites(place: str) -> dict[str, str]:
    """What it makes of a question."""
    return {"kwr": f"river, {place}", "par": f"The river of {place} is"}


def write_pool(folder: Path) -> None:
    """The pool of the strategies, `pool.yaml`."""
    (folder / "pool.yaml").write_text(yaml.safe_dump(POOL))


class RuleRewriterLm:
    """Replies to the prompts of the pool."""

    name = "lm"

    def reply(self, chats: Sequence[Chat]) -> list[Reply]:
        """One reply per chat."""
        return [Reply(_rewritten(chat.messages[-1].content), prompt_tokens=9, reply_tokens=9) for chat in chats]


def _rewritten(asked: str) -> str:
    place = next(place for place in KNOWN if f"of {place} ?" in asked)
    made = rewrites(place)
    lines = [f"Keywords: {made['kwr']}", f"Answer: {made['par']}"]
    if 'beginning with "reason: "' in asked:  # it chooses
        lines = [*(lines if place == KNOWN[0] else lines[:1]), "reason: river"]
    return "Sure" if place == UNUSABLE else "\n".join(lines)
