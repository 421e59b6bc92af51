"""How long the client waits, and when it gives up."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from random import Random

import pytest

from common.errors import UnavailableError, UserError
from harness.runtime.retries import LONGEST_WAIT_SECONDS, Health, backoff_seconds, retry_after_seconds

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": " 0.5 "}, 0.5),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "86400"}, LONGEST_WAIT_SECONDS),
        ({"retry-after": "inf"}, LONGEST_WAIT_SECONDS),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "Sun, 01 Mar 2026 12:00:30 GMT"}, 30.0),
        ({"retry-after": "Sunday, 01-Mar-26 12:00:30 GMT"}, 30.0),
        ({"retry-after": "Sun, 01 Mar 2026 13:00:30 +0100"}, 30.0),
        ({"retry-after": "Sun, 01 Mar 2026 12:00:30 -0000"}, 30.0),
        ({"retry-after": format_datetime(NOW - timedelta(hours=1), usegmt=True)}, 0.0),
        ({"retry-after": format_datetime(NOW + timedelta(hours=1), usegmt=True)}, LONGEST_WAIT_SECONDS),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
        ({}, None),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_seconds(headers, NOW) == seconds


def test_a_date_is_compared_with_the_present() -> None:
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    found = retry_after_seconds({"retry-after": soon})
    assert found is not None
    assert 55 < found <= 60


def test_backoff_doubles_within_bounds_and_differs_between_requests() -> None:
    random = Random(0)
    for attempt, bound in [(0, 0.5), (1, 1), (2, 2), (5, 16), (6, 30), (7, 30), (5000, 30)]:
        waits = [backoff_seconds(attempt, None, random) for _ in range(200)]
        assert bound / 2 <= min(waits) < 0.6 * bound
        assert 0.9 * bound < max(waits) <= bound
    for asked in (0.05, 7.0, LONGEST_WAIT_SECONDS):
        waits = [backoff_seconds(0, asked, random) for _ in range(200)]
        assert asked <= min(waits) < max(waits) <= 1.1 * asked
    assert backoff_seconds(0, 0.0, random) >= 0.25  # a date in the past asks for nothing


def test_failures_in_a_row_end_the_run_and_a_success_or_a_refusal_starts_the_row_anew() -> None:
    health = Health("m at host", 12, "Kept.")
    for between in (health.succeeded, lambda: health.refused("400")):
        for _ in range(11):
            health.failed("500")
        between()
    for _ in range(11):
        health.failed("500")
    with pytest.raises(
        UnavailableError, match=r"^m at host: 12 chats in a row failed, the last with: 500\. Kept\. Check"
    ):
        health.failed("500")


def test_refusals_end_the_run_only_before_the_first_success() -> None:
    health = Health("m at host", 2, "Kept.")
    for _ in range(9):
        health.refused("400: no such field")
    with pytest.raises(UserError, match="m at host refused the first 10 chats, the last with: 400: no such field"):
        health.refused("400: no such field")
    health.succeeded()
    for _ in range(50):
        health.refused("400: too long")
