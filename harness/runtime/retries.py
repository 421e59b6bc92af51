"""Retries: how long to wait before the next attempt, and after how many failures the service counts as down."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from random import Random

from common.errors import UnavailableError, UserError

LONGEST_WAIT_SECONDS = 120.0  # that a server can ask for
_FIRST_SECONDS, _LONGEST_BACKOFF_SECONDS = 0.5, 30.0
_IN_A_ROW = 10  # failed requests, at least
_RANDOM = Random()  # not the global generator, whose seed belongs to the experiment


def retry_after_seconds(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """What a response's header `retry-after` asks to wait, in seconds or as an HTTP date (RFC 9110, 10.2.3).

    Args:
        headers: With names in lower case, or a mapping that ignores case.
        now: For tests; the current time when None.

    Returns:
        Seconds from 0 to `LONGEST_WAIT_SECONDS`; None without a header that can be read.
    """
    text = headers.get("retry-after", "").strip()
    try:
        seconds = float(text)
    except ValueError:
        try:
            when = parsedate_to_datetime(text)
        except ValueError:
            return None
        when = when if when.tzinfo else when.replace(tzinfo=UTC)
        seconds = (when - (now or datetime.now(UTC))).total_seconds()
    return None if math.isnan(seconds) else min(max(seconds, 0.0), LONGEST_WAIT_SECONDS)


def backoff_seconds(attempt: int, asked_seconds: float | None = None, random: Random = _RANDOM) -> float:
    """How long to wait after a failed attempt.

    Exponential with jitter, or up to a tenth longer than the server asks for.

    The jitter keeps requests that failed together from coming back together.

    Args:
        attempt: Number of the failed attempt, from 0.
        asked_seconds: What the server asks for; 0, such as for a date in the past, counts as nothing.
        random: Source of the jitter.
    """
    if asked_seconds:
        return asked_seconds * random.uniform(1.0, 1.1)
    return min(_FIRST_SECONDS * 2.0 ** min(attempt, 30), _LONGEST_BACKOFF_SECONDS) * random.uniform(0.5, 1.0)


class Health:
    """Counts failed requests in a row, over all calls to one service.

    Args:
        name: Of the service, for the error lines.
        concurrency: Requests at a time: those under way when a server dies are not yet a row.
        kept: Says where the results so far are.
        requests: What the requests are called in error lines.
    """

    def __init__(self, name: str, concurrency: int, kept: str, requests: str = "chats") -> None:
        self.name, self.kept, self.requests = name, kept, requests
        self.limit = max(_IN_A_ROW, concurrency)
        self._succeeded = False
        self._row = self._refused = 0

    def succeeded(self) -> None:
        """A request got its result."""
        self._succeeded = True
        self._row = self._refused = 0

    def refused(self, why: str) -> None:
        """The service answered that it does not accept one request.

        Raises:
            UserError: If it has refused the first requests, all of them.
        """
        self._row = 0
        self._refused += 1
        if not self._succeeded and self._refused >= self.limit:
            raise UserError(f"{self.name} refused the first {self._refused} {self.requests}, the last with: {why}")

    def failed(self, why: str) -> None:
        """The service did not answer one request, after all retries.

        Raises:
            UnavailableError: If too many requests have failed in a row.
        """
        self._row += 1
        if self._row >= self.limit:
            raise UnavailableError(
                f"{self.name}: {self._row} {self.requests} in a row failed, the last with: {why}. {self.kept} Check "
                "the server, then run the same command again."
            )
