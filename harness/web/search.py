"""Searches by a search service, with retries: each ends in results, or in one line on why there are none."""

import json
from collections import Counter
from threading import Lock
from time import monotonic, sleep

from common.errors import UnavailableError, UserError
from harness.runtime.retries import Health, backoff_seconds, retry_after_seconds
from harness.runtime.services import one_line, server_words
from harness.web.client import FetchError, HttpClient, NoConnectionError, Response
from harness.web.search_services import BadResultsError, Result, SearchService

_MOST_BYTES = 8 * 2**20  # of a response
_AGAIN = (408, 409, 425, 429)  # and 5xx
_FIRST_CONNECTIONS = 3  # attempts to reach a service that has not answered yet


class SearchError(Exception):
    """Why a search has no results, in one line; other searches may have."""


class SearchClient:
    """Searches, and knows how the service is doing over all calls.

    Args:
        service: That is asked.
        timeout_seconds: Deadline of each attempt.
        max_retries: Further attempts.
        concurrency: Searches at the same time.
        kept: Says where the results so far are.
        totals: `searches`, `retries` and `bytes` are counted here.
    """

    def __init__(
        self,
        service: SearchService,
        timeout_seconds: float,
        max_retries: int,
        concurrency: int,
        kept: str,
        totals: Counter[str],
    ) -> None:
        self.service, self.timeout_seconds, self.max_retries, self.totals = (
            service,
            timeout_seconds,
            max_retries,
            totals,
        )
        self._lock = Lock()
        self._health = Health(service.title, concurrency, kept, "searches")
        self._answered = False
        self._not_before = 0.0  # of `monotonic`; a rate limit concerns all searches

    def search(self, http: HttpClient, query: str) -> list[Result]:
        """The results of a query, best first; none if nothing was found.  Several threads may search.

        Raises:
            SearchError: If this search fails after all retries, or is refused.
            UserError: If no search can succeed: wrong key, wrong address, no credit, a SearXNG that gives no JSON.
            UnavailableError: If the service cannot be reached, or too many searches in a row have failed.
        """
        key = self.service.key()
        self.count("searches")
        least = min(_FIRST_CONNECTIONS, self.max_retries + 1) - 1
        for number in range(self.max_retries + 1):
            sleep(max(self._not_before - monotonic(), 0))
            wait_seconds = None
            try:
                method, link, headers, content = self.service.request(query, key)
                response = http.send(method, link, headers, content, self.timeout_seconds, _MOST_BYTES)
                self._answered = True
                self.count("bytes", len(response.body))
                if response.status == 200:
                    results = self.service.results(response.body)
                    with self._lock:
                        self._health.succeeded()
                    return results
                why = one_line(f"HTTP {response.status}{_words(response)}", key)
                if cure := self.service.cure(response.status, response.body):
                    raise UserError(f"{self.service.title} refuses all searches ({why}): {cure}")
                if response.status not in _AGAIN and response.status < 500:
                    with self._lock:
                        self._health.refused(why)
                    raise SearchError(why)
                wait_seconds = retry_after_seconds(response.headers)
            except (FetchError, BadResultsError) as error:
                why = one_line(str(error), key)
                if isinstance(error, NoConnectionError) and not self._answered and number >= least:
                    raise UnavailableError(
                        f"{self.service.title} cannot be reached ({why}): start the server, or correct base_url."
                    ) from error
            if number == self.max_retries:
                break
            self.count("retries")
            if wait_seconds:
                self._not_before = max(self._not_before, monotonic() + wait_seconds)
            sleep(backoff_seconds(number, wait_seconds))
        with self._lock:
            self._health.failed(why)
        raise SearchError(f"{why} (retries: {self.max_retries})")

    def count(self, what: str, number: int = 1) -> None:
        """Add to `totals`, from any thread."""
        with self._lock:
            self.totals[what] += number


def _words(response: Response) -> str:
    """What the service says of an error, if that is JSON."""
    try:
        body = json.loads(response.body)
    except (ValueError, RecursionError):
        return ""
    return f": {server_words(body)}" if isinstance(body, dict) else ""
