"""Bodies of responses: what is a reply, what is a failure, and what is asked again."""

import json
import math
from typing import Any

import pytest

from harness.llm.chat_replies import reply_of
from harness.llm.thoughts import without_thoughts


def body(content: Any = "Paris", finish: Any = "stop", usage: Any = None, **message: Any) -> dict[str, Any]:
    choice = {"message": {"content": content, **message}, "finish_reason": finish}
    return {"choices": [choice], "usage": usage or {"prompt_tokens": 5, "completion_tokens": 3}}


def read(found: Any) -> Any:
    return reply_of(found if isinstance(found, bytes) else json.dumps(found).encode())


@pytest.mark.parametrize(
    "found",
    [
        body(),
        body(finish="eos_token"),
        body([{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "Paris"}]),
        body([{"type": "text", "text": "Par"}, {"type": "output_text", "text": "is"}]),
        body("<think>\nLyon? No.\n</think>\n\nParis"),
        body("Lyon? No.\n</think>\n\nParis"),  # the chat template has opened it
        *map(body, ("<think>a</think><think>b</think> Paris", "[THINK]a[/THINK]Paris", "<Thinking>a</Thinking> Paris")),
        body(usage={"prompt_tokens": 5.0, "completion_tokens": 3}),
        b"\xef\xbb\xbf" + json.dumps(body()).encode(),
    ],
)
def test_replies_in_the_forms_of_endpoints(found: Any) -> None:
    reply = read(found)
    assert (reply.text, reply.finish, reply.error) == ("Paris", "stop", "")
    assert (reply.prompt_tokens, reply.reply_tokens) == (5, 3)


def test_what_is_cut_thought_or_no_text_is_told_by_it() -> None:
    assert {read(body("Par", finish)).finish for finish in ("length", "max_tokens", "MAX_TOKENS")} == {"length"}
    assert without_thoughts(" a <b> thinks </b>\n") == " a <b> thinks </b>\n"
    assert read(body("a\ud83d")).text == "a\ufffd"  # half of a surrogate pair


@pytest.mark.parametrize(
    ("found", "why"),
    [
        *((each, "the reply has no text: finish_reason stop") for each in (
            body(""), body(None, reasoning_content="Paris"), body(" \n"), body([]),
            body([{"type": "image_url", "image_url": {"url": "x"}}]), body("<think>Paris</think>"))),
        (body(None, "length", reasoning="Par"), "finish_reason length"),
        *((body(*each), "ends within the model's thoughts")
          for each in (("<think>Is it Lyon", "length"), ("Sure.\n<think>Is it Lyon",))),
        (body("Par", "content_filter"), "content_filter"),
        (body(None, "tool_calls"), "tool_calls"),
        (body(None, refusal="I cannot."), "I cannot."),
    ],
)  # fmt: skip
def test_failures_that_another_attempt_would_not_change(found: Any, why: str) -> None:
    reply = read(found)
    assert (reply.text, reply.finish) == ("", "")
    assert why in reply.error


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (body("Par", ""), "broken off: finish_reason ,"),
        *((body("Par", finish), f"finish_reason {finish}") for finish in ("error", "network_error")),
        ({"error": {"message": "overloaded", "code": 503}}, "in place of a reply: overloaded"),
        ({"choices": [{"error": {"message": "overloaded"}, "message": {"content": "Par"}, "finish_reason": "stop"}]},
            "broken off"),
        *((each, "without a whole reply") for each in (
            {"choices": []}, {"choices": None}, {"choices": [{"text": "Paris", "finish_reason": "stop"}]},
            body("Paris", None), body({"text": 5}), body([{"type": "text", "text": None}]), body(["Paris"]))),
        (b"<html><body>Bad gateway</body></html>", "no valid JSON"),
        (b"[" * 100_000, "no valid JSON"),
        (b"[]", "no JSON object"),
    ],
)  # fmt: skip
def test_broken_replies_are_asked_again(found: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read(found)


def test_log_probabilities_are_summed_and_must_be_numbers() -> None:
    def logprob(*values: Any) -> Any:
        found = body()
        found["choices"][0]["logprobs"] = {"content": [{"logprob": value} for value in values]}
        return read(found).logprob

    assert (read(body()).logprob, logprob(-1, -0.5)) == (None, -1.5)
    for wrong in (None, "x", math.nan, math.inf):
        with pytest.raises(ValueError, match="reply"):
            logprob(wrong)
