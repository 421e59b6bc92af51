"""A language model whose replies are written down.

What a program makes of replies that a trained model gives only by chance.
"""

from collections.abc import Mapping, Sequence

from common.chat import Chat, Reply

FAILS = "FAILS"  # a reply that is a failed call


class ScriptedLm:
    """Replies by the question in the first message: its n-th reply in the n-th round; the last one from then on.

    Args:
        replies: By a text that the chat's first user message contains.
    """

    name = "scripted"

    def __init__(self, replies: Mapping[str, Sequence[str]]) -> None:
        self.replies = replies
        self.asked: list[list[Chat]] = []  # by call

    def reply(self, chats: Sequence[Chat]) -> list[Reply]:
        """One reply per chat."""
        self.asked.append(list(chats))
        return [self._reply(chat) for chat in chats]

    def _reply(self, chat: Chat) -> Reply:
        asked = next(message.content for message in chat.messages if message.role == "user")
        (texts,) = [texts for question, texts in self.replies.items() if question in asked]
        text = texts[min(sum(message.role == "assistant" for message in chat.messages), len(texts) - 1)]
        if text == FAILS:
            return Reply("", error="HTTP 500", finish="", retries=2)
        return Reply(text, prompt_tokens=10, reply_tokens=len(text.split()))
