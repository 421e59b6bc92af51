"""A chat completion as it is on the wire, one JSON object or server-sent events, parsed strictly.

The `openai` package does not validate responses: a missing or wrong field would be an AttributeError later.
"""

import json
import math
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from harness.runtime.services import server_words, valid_text


class BadResponseError(ValueError):
    """A response that is no chat completion; the message says why."""


@dataclass
class Completion:
    """The first choice of a response, put together from one JSON object or from the chunks of a stream."""

    texts: list[str] = field(default_factory=list)
    logprobs: list[float] | None = None  # nats, of the tokens that the endpoint lists
    finish: str = ""  # the endpoint's reason; empty if the response was cut off
    refusal: str = ""
    usage: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The text; it can be encoded as UTF-8."""
        return valid_text("".join(self.texts))

    def tokens(self, name: Literal["prompt_tokens", "completion_tokens"]) -> int:
        """Tokens read or generated; 0 where the endpoint does not say."""
        value = self.usage.get(name)
        return value if isinstance(value, int) else 0

    def add(self, text: bytes, name: Literal["message", "delta"]) -> None:
        """Take over a JSON object: the whole response, or a chunk of a stream.

        Raises:
            BadResponseError: If it is not JSON, has another form, or holds an error.
        """
        try:
            body = json.loads(text)
        except (ValueError, RecursionError) as error:  # of the encoding too; or nested thousands deep
            raise BadResponseError("a response that is no valid JSON") from error
        if not isinstance(body, dict):
            raise BadResponseError("a response that is no JSON object")
        if body.get("error"):
            raise BadResponseError(f"an error in place of a reply: {server_words(body)}")
        if isinstance(body.get("usage"), dict):
            self.usage = body["usage"]
        choices = body.get("choices")
        if not isinstance(choices, list) or not (choices or name == "delta"):
            raise BadResponseError("a response without choices")
        for choice in choices[:1]:
            message = choice.get(name) if isinstance(choice, dict) else None
            if not isinstance(message, dict):
                raise BadResponseError(f"a response whose choice has no {name}")
            content = message.get("content")
            if not isinstance(content, str | None):
                raise BadResponseError("a response whose content is no text")
            self.texts.append(content or "")
            self.refusal += str(message.get("refusal") or "")
            self.finish = str(choice.get("finish_reason") or self.finish)
            found = choice.get("logprobs")
            tokens = found.get("content") if isinstance(found, dict) else None
            if isinstance(tokens, list):
                self.logprobs = (self.logprobs or []) if name == "delta" else []
                self.logprobs.extend(map(_logprob, tokens))


async def events(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The data of server-sent events, up to `[DONE]`, from parts of a response cut anywhere.

    Lines end at a line feed only: JSON may hold other separators, such as U+2028, at which `str.splitlines` would cut
    it.
    """
    rest, data = b"", b""
    async for part in parts:
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            line = line.rstrip(b"\r")
            if line.startswith(b"data:"):
                data += line[5:].strip()
            elif not line and data == b"[DONE]":
                return
            elif not line and data:
                yield data
                data = b""


def _logprob(token: Any) -> float:
    value = token.get("logprob") if isinstance(token, dict) else None
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise BadResponseError("a response with a log-probability that is no number")
    return float(value)
