"""Bodies of responses: what is a reply, what is a failure, what is asked again; and how a reply is read."""

import json
import math
import time
from typing import Any

import pytest

from common.chat import Reply, without_chat_marks
from harness.llm.chat_replies import reply_of
from harness.llm.reply_text import as_read, boxed, decoded, without_thoughts


def body(content: Any = "Paris", finish: Any = "stop", usage: Any = None, **message: Any) -> dict[str, Any]:
    choice = {"message": {"content": content, **message}, "finish_reason": finish}
    return {"choices": [choice], "usage": usage or {"prompt_tokens": 5, "completion_tokens": 3}}


def read(found: Any) -> Any:
    return as_read(reply_of(found if isinstance(found, bytes) else json.dumps(found).encode()))


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
    assert without_thoughts("Sure.<think>a<think>b</think> Par") == "Sure. Par"
    assert without_thoughts("<think>a</think> no </think>Par") == "Par"
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


ENDS = (
    "<|im_end|>", "</s>", "<|eot_id|>", "<\uff5cend\u2581of\u2581sentence\uff5c>", "<end_of_turn>", "<turn|>", "<eos>",
    "[/INST]", "<|END_OF_TURN_TOKEN|>", "[|endofturn|]", "<|endoftext|><|user|>", " </s>\n</s>\n",
    "<|im_end|>\n<|im_start|>user\nAnd now?", "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nLyon",
    "<|endoftext|>\nHuman: And now?", "</s>\n\nQuestion: Who?",
)  # fmt: skip


@pytest.mark.parametrize("end", ENDS)
def test_what_ends_a_reply_is_taken_off(end: str) -> None:
    read_once = as_read(Reply(f" Paris{end}"))
    assert (read_once.text, as_read(read_once)) == ("Paris", read_once)
    meant = json.dumps({"a": f"x{end}"[:30]})
    assert as_read(Reply(meant + end)).text == meant
    assert without_chat_marks(end) != end  # one list: what ends a turn can begin none within a message


@pytest.mark.parametrize(
    "text",
    ["The token <|im_end|> ends it.", "`<|im_end|>`", "[MASK]", "<tool_call>{}</tool_call>", "Bearer <your_token>",
     "[|1; 2|]", "xs |> f", "AT&amp;T", "a\u2028b\nc", "\\boxed{42} it is"],
)  # fmt: skip
def test_marks_that_are_meant_stay(text: str) -> None:
    assert as_read(Reply(text)).text == text


@pytest.mark.parametrize(
    "text", ["", "<|im_end|>", "\u200b", "&nbsp;", "\\boxed{}", "$\\boxed{ }$.", "<think>a</think></s>"]
)
def test_a_reply_that_says_nothing_is_a_failure(text: str) -> None:
    found = as_read(Reply(text, finish="length", logprob=-1.0, prompt_tokens=5, reply_tokens=1))
    assert found == Reply("", "the reply has no text: finish_reason length", "", None, 5, 1)


@pytest.mark.parametrize("text", ["Paris\nQuestion: Is it?\nAnswer: no", "\n Paris\r\n\r\nPassages:", "Paris</s>\nQ"])
def test_a_reply_of_one_line_ends_at_its_first_line_break(text: str) -> None:
    assert as_read(Reply(text), one_line=True).text == "Paris"
    assert as_read(Reply(text)).text == text.strip()


def test_long_replies_are_read_in_little_time() -> None:
    began = time.process_time()
    for text in (
        "word " * 40_000,
        "<think " * 30_000,
        "</s> " * 40_000,
        "\\boxed{" * 30_000,
        "<|a|>" + " " * 200_000 + "x",
    ):
        as_read(Reply(text))
        boxed(decoded(text))
    assert time.process_time() - began < 20


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        ("none", (0, 0)), ([7, 3], (0, 0)), ({"prompt_tokens": {"text": 7}, "completion_tokens": 3}, (0, 3)),
        ({"prompt_tokens": "7", "completion_tokens": None}, (7, 0)), ({"prompt_tokens": -5}, (0, 0)),
        ({"prompt_tokens": 10**400, "completion_tokens": math.inf}, (0, 0)),
    ],
)  # fmt: skip
def test_a_malformed_usage_costs_no_reply(usage: Any, counts: tuple[int, int]) -> None:
    found = read(body(usage=usage))
    assert (found.text, found.prompt_tokens, found.reply_tokens) == ("Paris", *counts)
