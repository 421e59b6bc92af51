"""The seed of a sampled reply: equal chats are sampled alike, in any batch.  Standard library only."""

import hashlib
import json
from dataclasses import astuple

from common.chat import Chat


def seed_of(chat: Chat) -> int:
    """A seed that depends on the messages and the number of the sample."""
    content = json.dumps([[astuple(message) for message in chat.messages], chat.sample])
    return int.from_bytes(hashlib.sha256(content.encode()).digest()[:7], "big")
