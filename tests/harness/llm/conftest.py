"""What a tiny causal LM replies to a thousand questions, for the servers of the client's tests."""

from pathlib import Path
from typing import Any

import pytest

from tests.helpers.llm_servers import FOREIGN, KEY, LONG, exact_replies
from tests.helpers.tiny_lm import cases

QUESTIONS = 1000


@pytest.fixture(scope="session")
def replies(chat_lm: Path) -> dict[str, dict[str, Any]]:
    """Exact replies to QUESTIONS short questions, some in other languages, and to LONG of two thousand tokens."""
    questions = list(dict(cases(3 * QUESTIONS, seed=5, documents=3)))[: QUESTIONS - len(FOREIGN)]
    made = exact_replies(chat_lm, questions, {**FOREIGN, LONG: "amber " * 2_000})
    assert len(made) == QUESTIONS + 1
    return made


@pytest.fixture
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault server's key in the variable that its clients read."""
    monkeypatch.setenv("TEST_LLM_KEY", KEY)
