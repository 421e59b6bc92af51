"""One attempt at a chat: a request under a deadline, and its reply or in one line what went wrong."""

import asyncio
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from common.chat import Reply
from harness.llm.completion import BadResponseError, Completion, events
from harness.runtime.retries import retry_after_seconds
from harness.runtime.services import server_words

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

    `kind` is `retry` (may pass), `connect` (no connection; may pass), `chat` (this chat cannot succeed), `setup` (no
    chat can succeed), or `no logprobs` (a reply without the log-probabilities that were requested).
    """

    kind: Kind
    text: str
    status: int = 0  # HTTP
    wait_seconds: float | None = None  # asked for by the server


async def attempt(client: "AsyncOpenAI", request: Mapping[str, Any], seconds: float) -> Reply | Failure:
    """Send a request once.

    Args:
        client: Of the endpoint, without retries and timeouts.
        request: Body of the request.
        seconds: Deadline for the whole response: no server holds it up by sending a byte now and then.
    """
    import httpx2
    import openai

    try:
        async with asyncio.timeout(seconds):
            completion = await _send(client, request)
        return _outcome(completion, bool(request.get("logprobs")))
    except TimeoutError:
        return Failure("retry", f"no complete reply within {seconds:g} s")
    except BadResponseError as error:
        return Failure("retry", str(error))
    except openai.APIStatusError as error:
        return _refused(error)
    except (
        openai.APIConnectionError,
        httpx2.RequestError,
        OSError,
        EOFError,
    ) as error:  # the last ones within the body
        cause = error.__cause__ or error
        connects = isinstance(cause, httpx2.ConnectError | httpx2.UnsupportedProtocol)
        text = f"{'no connection' if connects else 'a broken connection'}: {str(cause) or type(cause).__name__}"
        return Failure("connect" if connects else "retry", text)


async def _send(client: "AsyncOpenAI", request: Mapping[str, Any]) -> Completion:
    from openai import Omit

    completion = Completion()
    async with client.chat.completions.with_streaming_response.create(
        model=request["model"],
        messages=request["messages"],
        stream=bool(request.get("stream")),
        extra_body={name: value for name, value in request.items() if name not in ("model", "messages", "stream")},
        extra_headers={"Authorization": Omit()} if client.api_key == NO_KEY else None,
    ) as response:
        if response.headers.get("content-type", "").startswith("text/event-stream"):
            async for data in events(response.iter_bytes()):
                completion.add(data, "delta")
        else:
            completion.add(await response.read(), "message")
    return completion


def _outcome(completion: Completion, wants_logprobs: bool) -> Reply | Failure:
    """The reply, without price and time."""
    if not completion.finish:
        return Failure("retry", "a reply that was cut off: it has no finish_reason")
    if completion.refusal:
        return Failure("chat", f"the model refused to reply: {completion.refusal}")
    if completion.finish in _NO_TEXT:
        return Failure("chat", _NO_TEXT[completion.finish])
    if wants_logprobs and completion.logprobs is None:
        return Failure("no logprobs", "a reply without log-probabilities")
    return Reply(
        completion.text,
        finish="length" if completion.finish == "length" else "stop",
        logprob=math.fsum(completion.logprobs or ()) if wants_logprobs else None,
        prompt_tokens=completion.tokens("prompt_tokens"),
        reply_tokens=completion.tokens("completion_tokens"),
    )


def _refused(error: Any) -> Failure:
    """A response with a status of 400 or more."""
    status, body = error.status_code, error.body
    text = f"{status}: {server_words(body) if isinstance(body, dict) else error.message}"
    if status in _SETUP or (status == 429 and "insufficient_quota" in (error.code, error.type)):
        return Failure("setup", text, status)
    if status in _AGAIN or status >= 500:
        return Failure("retry", text, status, retry_after_seconds(error.response.headers))
    return Failure("chat", text, status)
