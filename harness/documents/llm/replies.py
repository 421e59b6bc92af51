"""Replies of a language model kept in a journal, so that a stopped run goes on where it was."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from common.chat import Chat, Reply
from harness.interfaces import LanguageModel
from harness.llm.prompts import Prompt
from harness.runtime.journal import Journal
from harness.runtime.provenance import configuration

_FORMAT = 1  # of the journal's lines


@contextmanager
def kept_replies(llm: LanguageModel, prompt: Prompt, file: Path | None) -> Iterator["KeptReplies"]:
    """Open a journal while the `with` block runs; None keeps nothing.

    Raises:
        UserError: If another process has it open.
        ArtifactError: If it is corrupt or cannot be written.
    """
    if file is None:
        yield KeptReplies(llm, None)
        return
    journal = Journal(file, {"model": configuration(llm) or llm.name, "prompt": prompt.hash, "format": _FORMAT})
    with journal.locked():
        yield KeptReplies(llm, journal)


class KeptReplies:
    """A language model that is asked only what it has not replied to before.

    Args:
        llm: Is asked.
        journal: Locked; None keeps nothing.
    """

    def __init__(self, llm: LanguageModel, journal: Journal | None) -> None:
        self._llm, self._journal = llm, journal
        self._texts: dict[str, str] = dict(journal.read(_parse)) if journal is not None else {}
        self.new: list[Reply] = []  # that were asked for, failed ones included

    def reply(self, chats: Sequence[Chat]) -> list[Reply]:
        """One reply per chat, in order.  A failed one is not kept."""
        names = [_name(chat) for chat in chats]
        missing = {name: chat for name, chat in zip(names, chats, strict=True) if name not in self._texts}
        replies = dict(zip(missing, self._llm.reply([*missing.values()]) if missing else [], strict=True))
        self.new += replies.values()
        for name, reply in replies.items():
            if not reply.error:
                self._texts[name] = reply.text
                if self._journal is not None:
                    self._journal.append({"chat": name, "text": reply.text})
        return [replies.get(name) or Reply(self._texts[name], cached=True) for name in names]


def _parse(_: int, line: dict[str, Any]) -> tuple[str, str]:
    return str(line["chat"]), str(line["text"])


def _name(chat: Chat) -> str:
    """The name of a request."""
    messages = [[message.role, message.content] for message in chat.messages]
    return hashlib.sha256(json.dumps([messages, chat.max_tokens]).encode()).hexdigest()[:16]
