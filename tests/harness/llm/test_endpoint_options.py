"""Bodies of requests, the key, what is taken out of error texts, and what identifies saved results."""

from dataclasses import replace

import pytest

from common.chat import Chat, Message
from common.errors import UserError
from harness.llm.endpoint import OPENAI, ChatEndpoint
from harness.runtime.provenance import configuration, construct
from harness.runtime.services import one_line, without_key

KEY = "abc-0123456789-xyz"
LOCAL = "http://localhost:8000/v1"


def endpoint(**options) -> ChatEndpoint:
    return ChatEndpoint(**{"model": "m", "base_url": LOCAL, "key_variable": "SOME_KEY", "cache": None, **options})


def test_the_body_of_a_request() -> None:
    chat = Chat((Message("system", "s"), Message("user", "\ud83d<|im_end|>")), 5, logprobs=True)
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "\ufffd< |im_end|>"}]
    limits = {"max_tokens": 5, "temperature": 0.0, "logprobs": True}
    assert endpoint().request(chat) == {"model": "m", "messages": messages, **limits}
    options = {"temperature": None, "seed": None, "reasoning_effort": "low"}
    own = endpoint(token_limit_field="max_completion_tokens", reasoning_tokens=100, options=options)
    asked = {"model": "m", "messages": [{"role": "user", "content": "u"}], "max_completion_tokens": 105}
    assert own.request(Chat.of("u", 5, 0.7, 3)) == {**asked, "reasoning_effort": "low"}
    assert endpoint().request(Chat.of("u", temperature=0.7, sample=3))["seed"] == 3
    assert endpoint().request(replace(Chat.of("u"), one_line=True))["stop"] == ["\n"]


def test_the_address_and_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setenv("SOME_KEY", f" {KEY}\n")
    assert (endpoint(base_url=None).base_url, endpoint().key(), endpoint(key_variable=None).key()) == (OPENAI, KEY, "")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://10.0.0.1:8000/v1/")
    assert endpoint(base_url=None).base_url == "http://10.0.0.1:8000/v1"
    assert endpoint(base_url="https://example.org/v1/").base_url == "https://example.org/v1"
    assert endpoint(base_url=None).name == "m at 10.0.0.1:8000"
    for options in ({"model": f"m-{KEY}"}, {"options": {"user": KEY}}, {"base_url": f"http://localhost/{KEY}/v1"}):
        with pytest.raises(UserError, match="hold the key of SOME_KEY: remove it there") as raised:
            endpoint(**options).key()
        assert KEY not in str(raised.value)
    monkeypatch.delenv("SOME_KEY")
    assert endpoint().key() == ""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"wrong key {KEY}!", "wrong key [key]!"),
        ("two\n  lines\tand\r\nmore", "two lines and more"),
        ("Incorrect API key provided: sk-proj-AbCd0123456789efgh.", "Incorrect API key provided: [key]."),
        ("token hf_AbCdEfGhIjKlMnOpQrSt is invalid", "token [key] is invalid"),
        ("the key is missing; risk-averse models ask first", "the key is missing; risk-averse models ask first"),
        ("x" * 400, "x" * 300 + "..."),
        (("x" * 290) + KEY, ("x" * 290) + "[key]"),
    ],
)
def test_error_texts_hold_no_key(text: str, shown: str) -> None:
    assert one_line(text, KEY) == shown
    assert without_key(text, "EMPTY") == without_key(text, "") == text  # as vLLM's and llama.cpp's users set it


def test_saved_results_are_identified_by_what_determines_replies(tmp_path, monkeypatch) -> None:
    def saved(**options):
        return configuration(construct(ChatEndpoint, **{"model": "m", "base_url": LOCAL, "cache": tmp_path, **options}))

    first = saved()
    (tmp_path / "replies.sqlite").write_text("the cache has grown")
    assert saved() == saved(timeout_seconds=5.0, max_retries=1, concurrency=2, cache=None) == first
    for each in (
        {"model": "n"}, {"base_url": "http://other/v1"}, {"options": {"top_p": 0.5}}, {"reasoning_tokens": 5},
        {"token_limit_field": "max_completion_tokens"}, {"usd_per_million_prompt_tokens": 1.0},
    ):  # fmt: skip
        assert saved(**each) != first, each
    monkeypatch.setenv("OPENAI_BASE_URL", LOCAL)
    assert saved(base_url=None) == first
