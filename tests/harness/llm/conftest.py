"""What a server replies to a thousand questions, for the tests of the client."""

import random
from typing import Any

import pytest

from tests.helpers.fake_server import KEY

QUESTIONS = 1000
FOREIGN = {  # chats in other languages, and what is replied
    "日本の首都はどこですか。": "東京は日本の首都です。",
    "ما عاصمة مصر؟": "القاهرة",
    "Где жил Пушкин? 🪶": "Он жил в Москве 🏙 и в Петербурге",
    "भारत की राजधानी?": "नई दिल्ली",
    "Separators?": "a\u2028b\u2029c\x85d\x1ce\nf\r\n\ng",  # at which lines end in Python, not in server-sent events
}
LONG = "Say amber two thousand times."


@pytest.fixture(scope="session")
def replies() -> dict[str, dict[str, Any]]:
    """Replies to QUESTIONS short questions, some in other languages, and to LONG of two thousand tokens."""
    chance = random.Random(5)

    def reply(text: str) -> dict[str, Any]:
        tokens = [-chance.expovariate(1) for _ in text.split()]
        return {"text": text, "finish": chance.choice(["stop", "length"]), "prompt_tokens": 7, "logprobs": tokens}

    texts = {f"Question {n}?": " ".join(["amber"] * chance.randint(1, 8)) for n in range(QUESTIONS - len(FOREIGN))}
    return {chat: reply(text) for chat, text in {**texts, **FOREIGN, LONG: "amber " * 2_001}.items()}


@pytest.fixture
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server's key in the variable that its clients read."""
    monkeypatch.setenv("TEST_LLM_KEY", KEY)
