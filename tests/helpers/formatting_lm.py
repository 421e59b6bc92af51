"""A language model that formats documents as a test says: it reads the window out of the request."""

import re
from collections.abc import Callable, Sequence

from common.chat import Chat, Reply


class FormattingLm:
    """Replies to each window with what a function makes of it.

    Args:
        convert: Gets the window's text and the text before and after it.
    """

    name = "formatting"

    def __init__(self, convert: Callable[[str, str, str], str]) -> None:
        self.convert = convert
        self.asked: list[list[Chat]] = []  # by call

    def reply(self, chats: Sequence[Chat]) -> list[Reply]:
        """One reply per chat; the text "FAILS" is a failed call."""
        self.asked.append(list(chats))
        texts = [self.convert(*parts_of(chat.messages[-1].content)) for chat in chats]
        return [
            Reply("", error="HTTP 500", finish="") if text == "FAILS" else Reply(text, prompt_tokens=10)
            for text in texts
        ]


def parts_of(request: str) -> tuple[str, str, str]:
    """Window, text before and text after in a request."""
    found = re.fullmatch(
        r"<before>\n(.*)\n</before>\n<window>\n(.*)\n</window>\n<after>\n(.*)\n</after>", request, re.DOTALL
    )
    assert found is not None
    return found[2], found[1], found[3]
