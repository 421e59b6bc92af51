"""Parses the responses of chat endpoints: a reply, a failure, or nothing, so that the request is repeated."""

import math
from typing import Any

from common.chat import Reply
from harness.llm.thoughts import CUT, without_thoughts
from harness.runtime.services import json_body, server_words, valid_text
from harness.web.service_client import ServiceError

_LENGTH = ("length", "max_tokens", "max_output_tokens", "model_length")
_BROKEN = ("error", "network_error", "insufficient_system_resource", "abort", "aborted", "cancelled", "timeout")
_NO_TEXT = {
    "content_filter": "the endpoint's content filter stopped the reply",
    "sensitive": "the endpoint's content filter stopped the reply",
    "safety": "the endpoint's content filter stopped the reply",
    "tool_calls": "the model called a tool instead of replying",
    "function_call": "the model called a function instead of replying",
}


def reply_of(content: bytes, retries: int = 0) -> Reply:
    """The reply in the body of a response.  Log-probabilities are summed over the tokens that the endpoint lists.

    Raises:
        ValueError: If it holds none; another attempt may.
        ServiceError: If another attempt would not help: the model refuses, or its reply is empty.
    """
    body, choice = choice_of(content)
    message, finish = choice["message"], str(choice["finish_reason"]).lower()
    text, refusal = _text(message.get("content")), message.get("refusal")
    if refusal:
        raise ServiceError(f"the model refused to reply: {refusal}", retries=retries)
    if finish in _NO_TEXT:
        raise ServiceError(_NO_TEXT[finish], retries=retries)
    said = without_thoughts(text)
    if said is None:
        raise ServiceError(CUT, retries=retries)
    if not said.strip():
        why = "its limit of tokens was reached before it" if finish in _LENGTH else f"finish_reason {finish}"
        raise ServiceError(f"the reply has no text: {why}", retries=retries)
    usage = body.get("usage")
    return Reply(
        said,
        finish="length" if finish in _LENGTH else "stop",
        logprob=_logprob(choice.get("logprobs")),
        prompt_tokens=_tokens(usage, "prompt_tokens"),
        reply_tokens=_tokens(usage, "completion_tokens"),
        retries=retries,
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
