"""Asks chat endpoints by the `openai` package's client, with its retries, and parses what they send.

That is a reply, a failure, or nothing, so that the client asks again.
"""

import math
from dataclasses import replace
from typing import Any

import httpx2
import openai

from common.chat import Reply
from harness.llm.thoughts import CUT, without_thoughts
from harness.runtime.services import json_body, one_line, server_words, valid_text, without_key
from harness.web.service_failures import BrokenReplyError, Service, ServiceError
from harness.web.transport import Transport

_LENGTH = ("length", "max_tokens", "max_output_tokens", "model_length")
_BROKEN = ("error", "network_error", "insufficient_system_resource", "abort", "aborted", "cancelled", "timeout")
_FILTERED = ("content_filter", "sensitive", "safety")
_CALLED = ("tool_calls", "function_call")


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
            retries = _retries(response.request)
            reply = reply_of(response.content)
            return replace(reply, text=without_key(reply.text, self.service.key), retries=retries)
        except ServiceError as error:
            failure: Exception = ServiceError(str(error), retries)
        except openai.APIStatusError as error:
            failure = self.service.refusal(error.response, _retries(error.request))
        except openai.APIConnectionError as error:
            failure = self.service.loss(error.__cause__, _retries(error.request))
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
            choice_of(response.read())
        except ValueError as error:
            raise BrokenReplyError(str(error)) from error
    elif response.status_code == 429 and b"insufficient_quota" in response.read():
        response.headers["x-should-retry"] = "false"


def reply_of(content: bytes) -> Reply:
    """The reply in the body of a response.  Log-probabilities are summed over the tokens that the endpoint lists.

    Raises:
        ValueError: If it holds none; another attempt may.
        ServiceError: If another attempt would not help: the model refuses, or its reply is empty.
    """
    body, choice = choice_of(content)
    message, finish = choice["message"], str(choice["finish_reason"]).lower()
    text, refusal = _text(message.get("content")), message.get("refusal")
    if refusal:
        raise ServiceError(f"the model refused to reply: {refusal}")
    if finish in _FILTERED:
        raise ServiceError("the endpoint's content filter stopped the reply")
    if finish in _CALLED:
        raise ServiceError("the model called a tool instead of replying")
    said = without_thoughts(text)
    if said is None:
        raise ServiceError(CUT)
    if not said.strip():
        why = "its limit of tokens was reached before it" if finish in _LENGTH else f"finish_reason {finish}"
        raise ServiceError(f"the reply has no text: {why}")
    usage = body.get("usage")
    return Reply(
        said,
        finish="length" if finish in _LENGTH else "stop",
        logprob=_logprob(choice.get("logprobs")),
        prompt_tokens=_tokens(usage, "prompt_tokens"),
        reply_tokens=_tokens(usage, "completion_tokens"),
    )


def choice_of(content: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """A chat completion and its first choice, which has a message, a finish reason and a text or none.

    Raises:
        ValueError: If there is none.
    """
    body = json_body(content)
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    for each in (body, choice):
        if each.get("error"):
            raise ValueError(f"an error in place of a reply: {server_words(each)}")
    if not isinstance(choice.get("message"), dict):
        raise ValueError("a response without a choice that has a message")
    finish = choice.get("finish_reason")
    if not finish:
        raise ValueError("a reply that was cut off: it has no finish_reason")
    if str(finish).lower() in _BROKEN:
        raise ValueError(f"a reply that was broken off: its finish_reason is {finish}")
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
        raise ValueError("a response whose content is no text")
    return valid_text("".join(texts))


def _logprob(found: object) -> float | None:
    """The sum of the tokens' log-probabilities, nats; None without any."""
    tokens = found.get("content") if isinstance(found, dict) else None
    if not isinstance(tokens, list):
        return None
    values: list[Any] = [token.get("logprob") if isinstance(token, dict) else None for token in tokens]
    if not all(isinstance(value, int | float) and math.isfinite(value) for value in values):
        raise ValueError("a response with a log-probability that is no number")
    return math.fsum(values)


def _tokens(usage: object, name: str) -> int:
    """Tokens read or generated; 0 where the endpoint does not say."""
    value = usage.get(name) if isinstance(usage, dict) else None
    return int(value) if isinstance(value, int | float) and math.isfinite(value) else 0
