"""The key of the tests' chat endpoint."""

import pytest

from tests.helpers.fake_server import KEY


@pytest.fixture
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the variable that its clients read."""
    monkeypatch.setenv("TEST_LLM_KEY", KEY)
