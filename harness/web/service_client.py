"""Requests to one service, a chat endpoint or a web search, by the `openai` package's client.

Its retries, and its rule for `Retry-After`, are those of all services: also of replies that hold no result. Error
messages of a service are kept in one line, without the key.
"""

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import openai

from common.errors import RefusedError, UnavailableError
from common.version import VERSION
from harness.runtime.services import one_line, server_words
from harness.web.transport import ENDS, Transport

_Result = TypeVar("_Result")
_PROBES_SECONDS = (0.5, 1.0, 0.0)  # waits after attempts to reach a service
_PROBE_SECONDS = 10.0
_IN_A_ROW = 10  # failed requests, at least, after which a service counts as down


class ServiceError(Exception):
    """Why a request has no result.

    Args:
        text: In one line, without the key.
        status: HTTP, of a refusal; 0 where there is none.
        code: Of the service's error, such as insufficient_quota.
        passing: Whether it may pass later: all retries have been made.
        retries: That were made.
    """

    def __init__(self, text: str, status: int = 0, code: str = "", passing: bool = False, retries: int = 0) -> None:
        super().__init__(text)
        self.text, self.status, self.code, self.passing, self.retries = text, status, code, passing, retries

    def __str__(self) -> str:
        return self.text


class _BrokenReplyError(httpx2.RequestError):
    """A response that holds no result; the client asks again."""


class ServiceClient:
    """Sends requests to one service, and knows how it is doing over all of them; several threads may send.

    Args:
        name: Of the service, for error lines.
        requests: What requests are called in error lines: chats or searches.
        base_url: Address of the service.
        key: Removed from what the service says.
        headers: Of every request, such as one that holds the key.
        timeout_seconds: Deadline of each attempt, to the end of the response.
        max_retries: Further attempts after 408, 409, 429, 5xx, no connection, no response in time or a broken one.
        concurrency: Requests at a time: those under way when a server dies are not yet a row of failures.
        cache: Folder of the results so far, for error lines.
        check: Raises ValueError if the body of a successful response is broken.
        cure: What to do about an error after which no request can succeed; empty where another one may.
        environment_proxies: Whether the proxies of the environment are used.
    """

    def __init__(
        self,
        name: str,
        requests: str,
        base_url: str,
        key: str,
        headers: Mapping[str, str],
        timeout_seconds: float,
        max_retries: int,
        concurrency: int,
        cache: Path | None,
        check: Callable[[bytes], object],
        cure: Callable[[ServiceError], str],
        environment_proxies: bool,
    ) -> None:
        self.name, self.requests, self.base_url, self.key, self.seconds = name, requests, base_url, key, timeout_seconds
        self.cache, self.check, self.cure = cache, check, cure
        self._http = openai.DefaultHttpxClient(
            transport=Transport(timeout_seconds, None, environment_proxies),
            event_hooks={"response": [self._check]},
            follow_redirects=False,  # a key goes nowhere else
        )
        self._client = openai.OpenAI(api_key="none", base_url=base_url, max_retries=max_retries, http_client=self._http)
        own = {"User-Agent": f"lightning-rag/{VERSION}", "Authorization": openai.Omit()}
        self._options: Any = {"headers": {**own, **headers}}
        self._limit, self._counting = max(_IN_A_ROW, concurrency), threading.Lock()
        self._reached = self._succeeded = False
        self._failed = self._refused = 0  # in a row

    def reach(self) -> None:
        """Raise UnavailableError if nothing answers at the address after three attempts, and nothing ever has.

        A wrong address would else be found only after all retries of a request, which take most of a minute.
        """
        if self._reached:
            return
        for wait_seconds in _PROBES_SECONDS:
            try:
                self._http.head(self.base_url, extensions={ENDS: time.monotonic() + min(self.seconds, _PROBE_SECONDS)})
            except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError) as error:
                why = f"no connection: {error or type(error).__name__}"
                time.sleep(wait_seconds)
                continue
            except httpx2.HTTPError:  # something is there
                pass
            self._reached = True
            return
        raise UnavailableError(
            f"{self.name} cannot be reached ({one_line(why)}): start the server, or correct base_url."
        )

    def send(self, link: str, body: Mapping[str, Any] | None, parse: Callable[[bytes, int], _Result]) -> _Result:
        """The value that `parse` reads from the body of the response, and the number of retries.

        Args:
            link: Where to, from the address of the service.
            body: Of a POST, JSON types only; None for a GET.
            parse: Raises ServiceError if another attempt would not help.

        Raises:
            ServiceError: If there is no result.
            RefusedError: If no request can succeed, or the service has refused the first ones, all of them.
            UnavailableError: If too many requests in a row have failed.
        """
        try:
            if body is None:
                response = self._client.get(link, cast_to=httpx2.Response, options=self._options)
            else:
                response = self._client.post(link, cast_to=httpx2.Response, body=dict(body), options=self._options)
            result = parse(response.content, _retries(response.request))
        except ServiceError as error:
            failure = error
            failure.text = one_line(error.text, self.key)
        except openai.APIStatusError as error:
            status, said = error.status_code, error.body or ""
            words = server_words(said) if isinstance(said, dict) else str(said)
            told = one_line(f"HTTP {status}: {words}" if words else f"HTTP {status}", self.key)
            passing = status in (408, 409, 429) or status >= 500
            failure = ServiceError(told, status, str(error.code or error.type), passing, _retries(error.request))
        except openai.APIConnectionError as error:
            late = isinstance(error, openai.APITimeoutError)
            why = f"no complete response within {self.seconds:g} s" if late else _broken(error.__cause__)
            failure = ServiceError(one_line(why, self.key), passing=True, retries=_retries(error.request))
        else:
            with self._counting:
                self._succeeded, self._failed, self._refused = True, 0, 0
            return result
        if cure := self.cure(failure):
            raise RefusedError(f"{self.name} refuses all {self.requests} ({failure.text}): {cure}")
        with self._counting:
            self._count(failure)
        raise failure  # here, so that no error that repeats the key is its context

    def _count(self, failure: ServiceError) -> None:
        """Count a failure; raise RefusedError or UnavailableError if there are too many in a row."""
        if failure.passing:
            failure.text += f" (retries: {failure.retries})"
            self._failed += 1
        else:
            self._failed, self._refused = 0, self._refused + 1
        if self._failed >= self._limit:
            kept = f"Results so far are kept in {self.cache}." if self.cache else "No results are kept: cache is null."
            raise UnavailableError(
                f"{self.name}: {self._failed} {self.requests} in a row failed, the last with: {failure.text}. {kept} "
                "Check the server, then run the same command again."
            )
        if self._refused >= self._limit and not self._succeeded:
            raise RefusedError(
                f"{self.name} refused the first {self._refused} {self.requests}, the last with: {failure.text}"
            )

    def _check(self, response: httpx2.Response) -> None:
        """Read a response; raise _BrokenReplyError, so that the client asks again, if it holds no result."""
        if response.is_success and response.request.method != "HEAD":
            response.read()
            try:
                self.check(response.content)
            except ValueError as error:
                raise _BrokenReplyError(str(error)) from error
        elif response.status_code == 429 and b"insufficient_quota" in response.read():
            response.headers["x-should-retry"] = "false"


def _retries(request: httpx2.Request) -> int:
    return int(request.headers.get("x-stainless-retry-count", 0))


def _broken(cause: BaseException | None) -> str:
    if isinstance(cause, _BrokenReplyError):
        return str(cause)
    what = "no connection" if isinstance(cause, httpx2.ConnectError) else "a broken connection"
    return f"{what}: {cause or type(cause).__name__}"
