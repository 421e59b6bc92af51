"""Structured outputs: what is read from replies and what is refused, the bound on repairs, batching, costs."""

import json
import re
from typing import Annotated, Literal
from unittest import mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import Field

from common.chat import Chat, Message, Reply
from harness.llm.structured import ReplyFields, ReplyText, Word, ask_parsed, json_object
from tests.helpers.scripted_lm import FAILS, ScriptedLm


class Fields(ReplyFields):
    reason: ReplyText
    verdict: Word[Literal["correct", "incorrect"]]
    score: Annotated[int, Field(ge=0, le=5)]
    sure: bool = True


GOOD = '{"reason": "same person", "verdict": "correct", "score": 4}'


def ask(*contents: str, repairs: int = 1) -> tuple[list, ScriptedLm]:
    """Ask a model that replies with the parts of a message, one a round."""

    def part(chat: Chat) -> str:
        parts = chat.messages[0].content.split(" / ")
        return parts[min((len(chat.messages) - 1) // 2, len(parts) - 1)]

    model = ScriptedLm(part)
    chats = [Chat.of(content, max_tokens=99) for content in contents]
    return ask_parsed(model, chats, Fields.of, repairs), model


def test_only_what_did_not_parse_is_asked_again_and_all_rounds_are_charged() -> None:
    results, model = ask(GOOD, f"what? / {GOOD}", f"no / never / {GOOD}", FAILS)
    assert [each.value and each.value.verdict for each in results] == ["correct", "correct", None, None]
    assert [len(each) for each in model.asked] == [4, 2]
    assert results[2].failure == "the reply holds no complete JSON object; one is needed"
    assert results[3].failure == "HTTP 500"
    assert [each.costs["model_calls"] for each in results] == [1, 2, 2, 1]
    assert results[1].costs["tokens"] == 20


def test_the_model_sees_its_reply_and_the_reason() -> None:
    _, model = ask('{"reason": "?", "verdict": "maybe", "score": 1} / x', " / x", "x" * 50_000)
    repair, of_empty, of_long = model.asked[1]
    assert repair.messages[1] == Message("assistant", '{"reason": "?", "verdict": "maybe", "score": 1}')
    assert "'verdict': Input should be 'correct' or 'incorrect'" in repair.messages[2].content
    assert (repair.max_tokens, of_empty.messages[1].content) == (99, "(empty)")
    assert len(of_long.messages[1].content) < 2100
    cut = Reply('{"reason": "long', finish="length")
    (result,) = ask_parsed(mock.Mock(reply=lambda chats: [cut]), [Chat.of("x", 7)], json_object, 0)
    assert result.failure == "the reply holds no complete JSON object; one is needed; the reply was cut after 7 tokens"


@pytest.mark.parametrize(("repairs", "rounds"), [(0, 1), (1, 2), (3, 4)])
def test_the_bound(repairs: int, rounds: int) -> None:
    assert ask(repairs=repairs)[1].asked == []
    (result,), model = ask("never", repairs=repairs)
    assert (len(model.asked), len(result.replies), result.value) == (rounds, rounds, None)
    assert result.failure


@pytest.mark.parametrize(
    "reply",
    [GOOD, f"```json\n{GOOD}\n```", f"Here you are:\n{GOOD}\nBest wishes {{name}}", f"{GOOD}\n\n{GOOD}",
        GOOD.replace(", ", ",\n\n"), GOOD.replace("correct", " CORRECT ")],
)  # fmt: skip
def test_what_surrounds_the_object_and_the_case_of_words_are_ignored(reply: str) -> None:
    assert Fields.of(reply) == Fields(reason="same person", verdict="correct", score=4)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        *((reply, "no complete JSON object") for reply in ("", '["correct"]', GOOD[:-1])),
        (GOOD + GOOD.replace("4", "5"), "2 different JSON objects"),
        ('{"verdict": "correct", "score": 4}', "'reason': Field required"),
        (GOOD.replace("}", ', "other": 1}'), "'other': Extra inputs"),
        (GOOD.replace("}", ', "score": 5}'), "repeats a key"),
        (GOOD.replace("4", "NaN"), "NaN is no JSON value"),
        (GOOD.replace("4", "1" * 5000), "4300 digits"),
        (GOOD.replace("4", "6"), "'score': Input should be less than or equal to 5"),
        *((GOOD.replace("4", value), "'score': Input should be a valid integer")
          for value in ("1e999", '"4"', "true", "4.5")),
        (GOOD.replace('"correct"', "true"), "'verdict': Input should be"),
        (GOOD.replace("same person", " "), "'reason': String should have at least 1 character"),
        (GOOD.replace("same person", "x" * 2001), "'reason': String should have at most 2000 characters"),
        *((GOOD.replace("}", f', "sure": {value}}}'), "'sure': Input should be a valid boolean")
          for value in ("1", '"true"', "null")),
        ('{"a":' * 100_000, "nested too deeply"),
    ],
)  # fmt: skip
def test_what_is_refused(reply: str, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)):
        Fields.of(reply)


MARKS = ["{", "}", '"', "\\", ":", ",", "[", "]", "```json", GOOD, '"score"', "4", "\\ud800", "\ud800"]


@given(st.lists(st.text() | st.sampled_from(MARKS), max_size=12).map("".join))
@example('{"reason": "\\ud800", "verdict": "correct", "score": 4}')
@example('{"\\ud800": 1}')
def test_any_reply_gives_checked_fields_or_a_failure_that_can_be_saved(reply: str) -> None:
    (result,), _ = ask(reply.replace(" / ", ""))
    if result.value is None:
        assert result.failure == result.failure.replace("\n", "") != ""
    else:
        assert (result.value.verdict in ("correct", "incorrect"), 0 <= result.value.score <= 5) == (True, True)
    json.dumps([result.value and result.value.model_dump(), result.failure], ensure_ascii=False).encode()


@given(st.text().filter(lambda each: "{" not in each), st.text().filter(lambda each: "{" not in each))
def test_an_object_is_found_between_any_texts(before: str, after: str) -> None:
    assert json_object(f"{before}{GOOD}{after}") == json.loads(GOOD)


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.booleans() | st.lists(st.none()), max_size=3))
def test_every_object_reads_back(found: dict) -> None:
    assert json_object(f"```\n{json.dumps(found)}\n```") == found
