"""One attempt at a chat completion: the request, the strictly parsed response, or in one line what went wrong.

A response is taken as it is on the wire, JSON or server-sent events, because the `openai` package does not validate it: a
missing or wrong field must be a failure here, no AttributeError later.
"""

import asyncio
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from common.chat import Reply
from harness.llm.connection import valid_text
from harness.llm.retries import retry_after_seconds

if TYPE_CHECKING:
    from openai import AsyncOpenAI

Kind = Literal["retry", "connect", "chat", "setup", "no logprobs"]
NO_KEY = "no key"  # of a client for an endpoint that needs none; the library insists on a text
_AGAIN = (408, 409, 429)  # and 5xx
_SETUP = (401, 402, 403, 404, 405)  # no chat can succeed
_NO_TEXT = {
    "content_filter": "the endpoint's content filter stopped the reply",
    "tool_calls": "the model called a tool instead of replying",
    "function_call": "the model called a function instead of replying",
}


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt brought no reply.

    `kind` is `retry` (may pass), `connect` (no connection; may pass), `chat` (this chat cannot succeed), `setup` (no chat can
    succeed), or `no logprobs` (a reply without the log-probabilities that were requested).
    """

    kind: Kind
    text: str
    status: int = 0  # HTTP
    wait_seconds: float | None = None  # asked for by the server


class _BadResponseError(ValueError):
    """A response that is no chat completion; the message says why."""


@dataclass
class _Parts:
    """A chat completion, put together from one JSON object or from the chunks of a stream."""

    texts: list[str] = field(default_factory=list)
    logprobs: list[float] | None = None
    finish: str = ""
    refusal: str = ""
    usage: Mapping[str, Any] = field(default_factory=dict)

    def add(self, body: Any, name: Literal["message", "delta"]) -> None:
        """Take over the first choice and the usage of a body.

        Raises:
            _BadResponseError: If it has another form, or holds an error.
        """
        if not isinstance(body, dict):
            raise _BadResponseError("a response that is no JSON object")
        if body.get("error"):
            raise _BadResponseError(f"an error in place of a reply: {_words(body)}")
        if isinstance(body.get("usage"), dict):
            self.usage = body["usage"]
        choices = body.get("choices")
        if not isinstance(choices, list) or not (choices or name == "delta"):
            raise _BadResponseError("a response without choices")
        for choice in choices[:1]:
            message = choice.get(name) if isinstance(choice, dict) else None
            if not isinstance(message, dict):
                raise _BadResponseError(f"a response whose choice has no {name}")
            content = message.get("content")
            if not isinstance(content, str | None):
                raise _BadResponseError("a response whose content is no text")
            self.texts.append(content or "")
            self.refusal += str(message.get("refusal") or "")
            self.finish = str(choice.get("finish_reason") or self.finish)
            found = choice.get("logprobs")
            tokens = found.get("content") if isinstance(found, dict) else None
            if isinstance(tokens, list):
                self.logprobs = (self.logprobs or []) + [_logprob(token) for token in tokens]

    def outcome(self, wants_logprobs: bool) -> Reply | Failure:
        """The reply, without price and time."""
        text = valid_text("".join(self.texts))
        if not self.finish:
            return Failure("retry", "a reply that was cut off: it has no finish_reason")
        if self.refusal or self.finish in _NO_TEXT:
            why = f"the model refused to reply: {self.refusal}" if self.refusal else _NO_TEXT[self.finish]
            return Failure("chat", why)
        if wants_logprobs and self.logprobs is None:
            return Failure("no logprobs", "a reply without log-probabilities")
        return Reply(
            text,
            finish="length" if self.finish == "length" else "stop",
            logprob=math.fsum(self.logprobs or ()) if wants_logprobs else None,
            prompt_tokens=_count(self.usage, "prompt_tokens"),
            reply_tokens=_count(self.usage, "completion_tokens"),
        )


async def attempt(client: "AsyncOpenAI", request: Mapping[str, Any], stream: bool, seconds: float) -> Reply | Failure:
    """Send a request once.

    Args:
        client: Of the endpoint, without retries and timeouts of its own.
        request: Body of the request, without the fields of streaming.
        stream: Whether the reply is streamed.
        seconds: Deadline for the whole response: no server holds it up by sending a byte now and then.
    """
    import openai

    try:
        async with asyncio.timeout(seconds):
            parts = await (_streamed if stream else _whole)(client, request)
        return parts.outcome(bool(request.get("logprobs")))
    except TimeoutError:
        return Failure("retry", f"no complete reply within {seconds:g} s")
    except _BadResponseError as error:
        return Failure("retry", str(error))
    except (json.JSONDecodeError, UnicodeDecodeError):
        return Failure("retry", "a response that is no valid JSON")
    except openai.APIStatusError as error:
        return _refused(error)
    except openai.APIConnectionError as error:
        cause = error.__cause__ or error
        connects = type(cause).__name__ in ("ConnectError", "ConnectTimeout", "UnsupportedProtocol")
        text = f"{'no connection' if connects else 'a broken connection'}: {str(cause) or type(cause).__name__}"
        return Failure("connect" if connects else "retry", text)
    except openai.APIError as error:  # an error event within a stream
        return Failure("retry", f"an error in place of a reply: {error.message}")


def _headers(client: "AsyncOpenAI") -> dict[str, Any]:
    """Headers of a request: the library's own, or without a key."""
    from openai import Omit

    return {"Authorization": Omit()} if client.api_key == NO_KEY else {}


async def _whole(client: "AsyncOpenAI", request: Mapping[str, Any]) -> _Parts:
    body = {name: value for name, value in request.items() if name not in ("model", "messages", "stream_options")}
    response = await client.chat.completions.with_raw_response.create(
        model=request["model"], messages=request["messages"], extra_body=body, extra_headers=_headers(client)
    )
    parts = _Parts()
    parts.add(json.loads(response.http_response.content), "message")
    return parts


async def _streamed(client: "AsyncOpenAI", request: Mapping[str, Any]) -> _Parts:
    body = {name: value for name, value in request.items() if name not in ("model", "messages")}
    parts = _Parts()
    async with await client.chat.completions.create(
        model=request["model"],
        messages=request["messages"],
        stream=True,
        extra_body=body,
        extra_headers=_headers(client),
    ) as chunks:
        async for chunk in chunks:
            parts.add(chunk.to_dict() if hasattr(chunk, "to_dict") else chunk, "delta")
    return parts


def _refused(error: Any) -> Failure:
    """A response with a status of 400 or more."""
    status, body = error.status_code, error.body
    words = _words(body) if isinstance(body, dict) else str(error.message)
    text = f"{status}: {words}"
    if status in _SETUP or (status == 429 and "insufficient_quota" in (error.code, error.type)):
        return Failure("setup", text, status)
    if status in _AGAIN or status >= 500:
        return Failure("retry", text, status, retry_after_seconds(error.response.headers))
    return Failure("chat", text, status)


def _words(body: Mapping[str, Any]) -> str:
    """What a server says of an error, in the forms of OpenAI, vLLM and FastAPI."""
    found = body.get("error", body)
    for name in ("message", "detail", "error"):
        if isinstance(found, dict) and found.get(name):
            found = found[name]
    return found if isinstance(found, str) else json.dumps(found)


def _logprob(token: Any) -> float:
    value = token.get("logprob") if isinstance(token, dict) else None
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise _BadResponseError("a response with a log-probability that is no number")
    return float(value)


def _count(usage: Mapping[str, Any], name: str) -> int:
    """Tokens; 0 where the endpoint does not say."""
    value = usage.get(name)
    return value if isinstance(value, int) else 0
