"""Asks chat endpoints by the `openai` package's client, with its retries, and parses what they send.

That is a reply, a failure, or nothing, so that the client asks again.  The package's own types are not used: endpoints
leave out fields that these need.
"""

import math
from dataclasses import replace
from typing import Any

import httpx2
import openai

from common.chat import Reply
from harness.runtime.services import json_body, one_line, server_words, valid_text, without_key
from harness.web.service_failures import BrokenReplyError, Service, ServiceError
from harness.web.transport import Transport

_LENGTH = ("length", "max_tokens", "max_output_tokens", "model_length")
_BROKEN = ("error", "network_error", "insufficient_system_resource", "abort", "aborted", "cancelled", "timeout")
_WITHOUT_REPLY = ("content_filter", "sensitive", "safety", "tool_calls", "function_call")
_NO_FIELD = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)  # where one is missing or wrong


class ChatClient:
    """Asks one endpoint; several threads may.

    Args:
        service: The endpoint.
        max_retries: Of the client, also after a reply that is broken off.

    Raises:
        UnavailableError: If nothing answers at the address.
    """

    def __init__(self, service: Service, max_retries: int) -> None:
        self.service = service
        http = openai.DefaultHttpxClient(
            transport=Transport(service.seconds, None, environment_proxies=True),
            event_hooks={"response": [_check]},
            follow_redirects=False,  # a key goes nowhere else
        )
        service.reach(http)
        self._client = openai.OpenAI(
            api_key=service.key or "none", base_url=service.base_url, max_retries=max_retries, http_client=http
        )
        self._options: Any = {} if service.key else {"headers": {"Authorization": openai.Omit()}}

    def ask(self, body: dict[str, Any]) -> Reply:
        """The reply to a request, or why there is none.

        Raises:
            RefusedError: If no request can succeed.
            UnavailableError: If the endpoint is down after all retries.
        """
        try:
            response = self._client.post("/chat/completions", cast_to=httpx2.Response, body=body, options=self._options)
        except openai.APIStatusError as error:
            failure = self.service.refusal(error.response, _retries(error.request))
        except openai.APIConnectionError as error:
            failure = self.service.loss(error.__cause__, _retries(error.request))
        else:
            reply, key = reply_of(response.content), self.service.key
            said, why = without_key(reply.text, key), one_line(reply.error, key)
            return replace(reply, text=said, error=why, retries=_retries(response.request))
        if not isinstance(failure, ServiceError):
            raise failure  # here, so that no error that repeats the key is its context
        return Reply("", one_line(str(failure), self.service.key), finish="", retries=failure.retries)


def _retries(request: httpx2.Request) -> int:
    return int(request.headers.get("x-stainless-retry-count", 0))


def _check(response: httpx2.Response) -> None:
    """Read a response, as a hook of the client: it asks again after an error of the connection.

    Raises:
        BrokenReplyError: If it holds no reply.
    """
    if response.is_success and response.request.method != "HEAD":
        try:
            reply_of(response.read())
        except ValueError as error:
            raise BrokenReplyError(str(error)) from error
    elif response.status_code == 429 and b"insufficient_quota" in response.read():
        response.headers["x-should-retry"] = "false"


def reply_of(content: bytes) -> Reply:
    """The reply in the body of a response as it came, or why there is none and another attempt would not help.

    Log-probabilities are summed over the tokens that the endpoint lists.

    Raises:
        ValueError: If it holds none, or is broken off; another attempt may.
    """
    body = json_body(content)
    if body.get("error"):
        raise ValueError(f"an error in place of a reply: {server_words(body)}")
    try:
        choice = body["choices"][0]
        text, refusal = _text(choice["message"].get("content")), choice["message"].get("refusal")
        finish, tokens = choice["finish_reason"].lower(), (choice.get("logprobs") or {}).get("content")
        logprob = None if tokens is None else math.fsum(token["logprob"] for token in tokens)
    except _NO_FIELD as error:
        raise ValueError("a response without a whole reply: a field is missing or malformed") from error
    if not finish or finish in _BROKEN or choice.get("error") or not math.isfinite(logprob or 0.0):
        raise ValueError(f"a reply that was broken off: finish_reason {finish}, log-probability {logprob}")
    if refusal:
        why = f"the model refused to reply: {refusal}"
    elif finish in _WITHOUT_REPLY:
        why = f"there is no reply: its finish_reason is {finish}"
    else:
        asked, said = (_count(body.get("usage"), name) for name in ("prompt_tokens", "completion_tokens"))
        return Reply(text, "", "length" if finish in _LENGTH else "stop", logprob, asked, said)
    return Reply("", why, finish="")


def _count(usage: Any, name: str) -> int:
    """A number of tokens; 0 where the endpoint's cannot be read."""
    try:
        count = int(usage[name])
    except _NO_FIELD:
        return 0
    return count if 0 <= count < 2**53 else 0


def _text(content: Any) -> str:
    """The text of a message's content: a text, or the parts of one, of which thoughts and images are none."""
    if isinstance(content, str):
        return valid_text(content)
    parts = [part for part in content or () if part.get("type", "text") in ("text", "output_text")]
    return valid_text("".join(part["text"] for part in parts))
