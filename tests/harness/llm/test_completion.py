"""Responses of endpoints: what is a reply, what is none, in any cut of a stream."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.llm.completion import BadResponseError, Completion, events
from tests.helpers.layout_rows import JSON


def whole(body: Any) -> Completion:
    completion = Completion()
    completion.add(body if isinstance(body, bytes) else json.dumps(body).encode(), "message")
    return completion


def choice(**fields: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"content": "hi"}, "finish_reason": "stop", **fields}]}


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "no valid JSON"),
        (b'{"choices": [', "no valid JSON"),
        (b"\xff\xfe{", "no valid JSON"),
        (b"[" * 100_000, "no valid JSON"),  # Python's parser gives up with a RecursionError
        ([], "no JSON object"),
        ({}, "without choices"),
        ({"choices": []}, "without choices"),
        ({"choices": [3]}, "no message"),
        (choice(message=None), "no message"),
        (choice(message={"content": 3}), "content is no text"),
        ({"error": {"message": "overloaded"}}, "an error in place of a reply: overloaded"),
        ({"error": "overloaded"}, "an error in place of a reply: overloaded"),
        ({"error": {"code": 5}}, 'an error in place of a reply: {"code": 5}'),
        (choice(logprobs={"content": [{"logprob": "-1"}]}), "log-probability that is no number"),
        (choice(logprobs={"content": [{"logprob": float("nan")}]}), "log-probability that is no number"),
        (choice(logprobs={"content": [None]}), "log-probability that is no number"),
    ],
)
def test_what_is_no_reply(body: Any, why: str) -> None:
    with pytest.raises(BadResponseError, match=why):
        whole(body)


@pytest.mark.parametrize(
    ("fields", "logprobs"),
    [({}, None), ({"logprobs": None}, None), ({"logprobs": {"content": None}}, None),
        ({"logprobs": {"content": []}}, []),
        ({"logprobs": {"content": [{"logprob": -1}, {"logprob": -0.5}]}}, [-1.0, -0.5]), ({"logprobs": [1]}, None)],
)  # fmt: skip
def test_log_probabilities(fields: dict[str, Any], logprobs: list[float] | None) -> None:
    assert whole(choice(**fields)).logprobs == logprobs


def test_texts() -> None:
    assert whole(choice(message={"content": None})).text == ""  # a model that used all tokens for thinking
    assert whole(b'{"choices": [{"message": {"content": "\\ud83d x \\ud83d\\ude00"}}]}').text == "\ufffd x 😀"
    assert whole(choice()).tokens("prompt_tokens") == 0


@given(JSON, st.sampled_from(["message", "delta"]))
def test_any_json_is_a_reply_or_an_error(body: Any, name: Any) -> None:
    """Never another exception."""
    for text in (body, {"choices": [{name: body, "logprobs": body, "finish_reason": body}]}):
        with suppress(BadResponseError):
            Completion().add(json.dumps(text).encode(), name)


@given(st.lists(st.text()), st.integers(1, 50), st.sampled_from([b"\n", b"\r\n"]))
def test_events_cut_anywhere(texts: list[str], size: int, newline: bytes) -> None:
    datas = [json.dumps({"text": text}, ensure_ascii=False).encode("utf-8", "surrogatepass") for text in texts]
    lines = [b": a comment", b"event: x", *(line for data in datas for line in (b"data: " + data, b"")),
             b"data: [DONE]", b"", b"data: after the end", b""]  # fmt: skip
    body = newline.join([*lines, b""])

    async def parts() -> AsyncIterator[bytes]:
        for start in range(0, len(body), size):
            yield body[start : start + size]

    async def gathered() -> list[bytes]:
        return [data async for data in events(parts())]

    assert asyncio.run(gathered()) == datas
