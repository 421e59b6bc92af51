"""Requests to a chat endpoint by the `openai` package, whose retries cover replies that are broken, too.

The package does not validate responses: a missing or wrong field would be an AttributeError later.
"""

import json
import math
import time
from collections.abc import Iterator, Mapping
from typing import Any

import httpx2
import openai

from common.chat import Reply
from harness.llm.thoughts import CUT, without_thoughts
from harness.runtime.services import one_line, server_words, valid_text

NO_KEY = "no key"  # of a client for an endpoint that needs none; the library insists on a text
_PROBES_SECONDS = (0.5, 1.0, 0.0)  # waits after attempts to reach an endpoint
_PROBE_SECONDS = 10.0
_LENGTH = ("length", "max_tokens", "max_output_tokens", "model_length")
_BROKEN = ("error", "network_error", "insufficient_system_resource", "abort", "aborted", "cancelled", "timeout")
_NO_TEXT = {
    "content_filter": "the endpoint's content filter stopped the reply",
    "sensitive": "the endpoint's content filter stopped the reply",
    "safety": "the endpoint's content filter stopped the reply",
    "tool_calls": "the model called a tool instead of replying",
    "function_call": "the model called a function instead of replying",
}


class BrokenReplyError(httpx2.RequestError):
    """A response that holds no reply; the client asks again."""


class ChatError(Exception):
    """Why a chat has no reply.

    Args:
        text: In one line, without the key.
        status: HTTP, of a refusal; 0 where there is none.
        code: Of OpenAI's errors, such as insufficient_quota.
        passing: Whether it may pass later: all retries have been made.
        retries: That were made.
    """

    def __init__(self, text: str, status: int = 0, code: str = "", passing: bool = False, retries: int = 0) -> None:
        super().__init__(text)
        self.text, self.status, self.code, self.passing, self.retries = text, status, code, passing, retries


class _Body(httpx2.SyncByteStream):
    """A response's body under a deadline: no server holds it up by sending a byte now and then."""

    def __init__(self, body: Any, seconds: float) -> None:
        self.body, self.seconds = body, seconds

    def __iter__(self) -> Iterator[bytes]:
        ends = time.monotonic() + self.seconds
        for part in self.body:
            if time.monotonic() > ends:
                raise httpx2.ReadTimeout("the body is not complete")
            yield part

    def close(self) -> None:
        self.body.close()


class ChatClient:
    """Sends chats to one endpoint; several threads may.

    Args:
        base_url: Address of the endpoint.
        key: Of the endpoint; requests carry none if it is empty.
        timeout_seconds: For each attempt to connect, to begin the response, and to end it.
        max_retries: Further attempts after 408, 409, 429, 5xx, no connection, no reply in time or a broken reply.
    """

    def __init__(self, base_url: str, key: str, timeout_seconds: float, max_retries: int) -> None:
        self.base_url, self.key, self.seconds = base_url, key, timeout_seconds
        self._http = openai.DefaultHttpxClient(event_hooks={"response": [self._check]})
        self._headers = {} if key else {"Authorization": openai.Omit()}
        self._client = openai.OpenAI(
            api_key=key or NO_KEY, base_url=base_url, max_retries=max_retries, timeout=timeout_seconds,
            http_client=self._http,
        )  # fmt: skip

    def unreachable(self) -> str:
        """Why nothing answers at the address, after three attempts; empty if something does.

        A wrong address would else be found only after all retries of a chat, which take most of a minute.
        """
        for wait_seconds in _PROBES_SECONDS:
            try:
                self._http.head(self.base_url, timeout=min(self.seconds, _PROBE_SECONDS))
            except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError) as error:
                why = f"no connection: {error or type(error).__name__}"
                time.sleep(wait_seconds)
            except httpx2.HTTPError:  # something is there
                return ""
            else:
                return ""
        return why

    def send(self, request: Mapping[str, Any]) -> Reply:
        """The reply to a request, without price and time.

        Raises:
            ChatError: If there is none.
        """
        try:
            response = self._client.post(
                "/chat/completions", cast_to=httpx2.Response, body=dict(request), options={"headers": self._headers}
            )
            return reply_of(response.content, _retries(response.request))
        except openai.APIStatusError as error:
            status, body = error.status_code, error.body
            said = f"{status}: {server_words(body) if isinstance(body, dict) else error.message}"
            passing, code = status in (408, 409, 429) or status >= 500, str(error.code or error.type)
            failure = ChatError(one_line(said, self.key), status, code, passing, _retries(error.request))
        except openai.APIConnectionError as error:
            late = isinstance(error, openai.APITimeoutError)
            said = f"no complete reply within {self.seconds:g} s" if late else _broken(error.__cause__)
            failure = ChatError(one_line(said, self.key), passing=True, retries=_retries(error.request))
        raise failure  # here, so that no error that repeats the key is its context

    def _check(self, response: httpx2.Response) -> None:
        """Read a response; raise BrokenReplyError, so that the client asks again, if it holds no reply."""
        if response.is_success and response.request.method == "POST":
            response.stream = _Body(response.stream, self.seconds)
            response.read()
            _choice(response.content)
        elif response.status_code == 429 and b"insufficient_quota" in response.read():
            response.headers["x-should-retry"] = "false"


def _retries(request: httpx2.Request) -> int:
    return int(request.headers.get("x-stainless-retry-count", 0))


def _broken(cause: BaseException | None) -> str:
    if isinstance(cause, BrokenReplyError):
        return str(cause)
    what = "no connection" if isinstance(cause, httpx2.ConnectError) else "a broken connection"
    return f"{what}: {cause or type(cause).__name__}"


def reply_of(content: bytes, retries: int = 0) -> Reply:
    """The reply in the body of a response.  Log-probabilities are summed over the tokens that the endpoint lists.

    Raises:
        BrokenReplyError: If it holds none.
        ChatError: If another attempt would not help: the model refuses, or its reply is empty.
    """
    body, choice = _choice(content)
    message, finish = choice["message"], str(choice["finish_reason"]).lower()
    text, refusal = _text(message.get("content")), message.get("refusal")
    if refusal:
        raise ChatError(f"the model refused to reply: {refusal}", retries=retries)
    if finish in _NO_TEXT:
        raise ChatError(_NO_TEXT[finish], retries=retries)
    said = without_thoughts(text)
    if said is None:
        raise ChatError(CUT, retries=retries)
    if not said.strip():
        why = "its limit of tokens was reached before it" if finish in _LENGTH else f"finish_reason {finish}"
        raise ChatError(f"the reply has no text: {why}", retries=retries)
    usage = body.get("usage")
    return Reply(
        said,
        finish="length" if finish in _LENGTH else "stop",
        logprob=_logprob(choice.get("logprobs")),
        prompt_tokens=_tokens(usage, "prompt_tokens"),
        reply_tokens=_tokens(usage, "completion_tokens"),
        retries=retries,
    )


def _choice(content: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """A chat completion and its first choice, which has a message, a finish reason and a text or none."""
    try:
        body = json.loads(content)
    except (ValueError, RecursionError) as error:  # of the encoding too; or nested thousands deep
        raise BrokenReplyError("a response that is no valid JSON") from error
    if not isinstance(body, dict):
        raise BrokenReplyError("a response that is no JSON object")
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    for each in (body, choice):
        if each.get("error"):
            raise BrokenReplyError(f"an error in place of a reply: {server_words(each)}")
    if not isinstance(choice.get("message"), dict):
        raise BrokenReplyError("a response without a choice that has a message")
    finish = choice.get("finish_reason")
    if not finish:
        raise BrokenReplyError("a reply that was cut off: it has no finish_reason")
    if str(finish).lower() in _BROKEN:
        raise BrokenReplyError(f"a reply that was broken off: its finish_reason is {finish}")
    _text(choice["message"].get("content"))
    _logprob(choice.get("logprobs"))
    return body, choice


def _text(content: object) -> str:
    """The text of a message's content: a text, or the parts of one, of which thoughts and images are none."""
    parts = content if isinstance(content, list) else [] if content is None else [content]
    texts: list[Any] = [
        part.get("text") if isinstance(part, dict) else part
        for part in parts
        if not isinstance(part, dict) or part.get("type", "text") in ("text", "output_text")
    ]
    if not all(isinstance(text, str) for text in texts):
        raise BrokenReplyError("a response whose content is no text")
    return valid_text("".join(texts))


def _logprob(found: object) -> float | None:
    """The sum of the tokens' log-probabilities, nats; None without any."""
    tokens = found.get("content") if isinstance(found, dict) else None
    if not isinstance(tokens, list):
        return None
    values: list[Any] = [token.get("logprob") if isinstance(token, dict) else None for token in tokens]
    if not all(isinstance(value, int | float) and math.isfinite(value) for value in values):
        raise BrokenReplyError("a response with a log-probability that is no number")
    return math.fsum(values)


def _tokens(usage: object, name: str) -> int:
    """Tokens read or generated; 0 where the endpoint does not say."""
    value = usage.get(name) if isinstance(usage, dict) else None
    return int(value) if isinstance(value, int | float) and math.isfinite(value) else 0
