"""What a failed request to a service means: it is down for all of them, or this one request has failed.

Down: no connection, no address of its name, 401, 403, 429 and 5xx, once the client has made its retries; and what the
service's own advice is for. Everything else, such as a refused prompt or one late response, is of that request alone.
Error messages of a service are kept in one line, without the key.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx2

from common.errors import RefusedError, UnavailableError
from harness.runtime.services import json_body, one_line, server_words
from harness.web.transport import ENDS

_PROBE_SECONDS = 10.0
_WRONG_ADDRESS = (301, 302, 303, 307, 308, 404, 405)


def usual_cures(key: str, credit: str, address: str) -> dict[int | str, str]:
    """What to do about a missing or wrong key, an account that is used up, and a wrong address."""
    return {401: key, 403: key, 402: credit, "insufficient_quota": credit, **dict.fromkeys(_WRONG_ADDRESS, address)}


class ServiceError(Exception):
    """Why one request has no result, in one line without the key.

    Args:
        text: The line.
        retries: That were made.
    """

    def __init__(self, text: str, retries: int = 0) -> None:
        super().__init__(text)
        self.retries = retries


class BrokenReplyError(httpx2.RequestError):
    """A response that holds no result: it is asked for again, as after a broken connection."""


@dataclass(frozen=True)
class Service:
    """A service that is asked, in error lines.

    Args:
        name: Of the service.
        requests: What requests are called: chats or searches.
        base_url: Its address.
        key: Removed from what the service says; empty for none.
        seconds: Deadline of each attempt.
        cache: Folder of the results so far.
        cures: What to do about errors after which no request can succeed, by HTTP status or by the service's code.
    """

    name: str
    requests: str
    base_url: str
    key: str
    seconds: float
    cache: Path | None
    cures: Mapping[int | str, str]

    def reach(self, client: httpx2.Client) -> None:
        """Raise UnavailableError if nothing answers at the address.

        A wrong address would else be found only after all retries of a request, which take most of a minute.
        """
        try:
            client.head(self.base_url, extensions={ENDS: time.monotonic() + min(self.seconds, _PROBE_SECONDS)})
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError) as error:
            why = one_line(f"no connection: {error or type(error).__name__}")
            raise UnavailableError(
                f"{self.name} cannot be reached ({why}): start the server, or correct base_url."
            ) from error
        except httpx2.HTTPError:  # something is there
            pass

    def refusal(self, response: httpx2.Response, retries: int) -> Exception:
        """The error of a response that is no success."""
        status, said, code = response.status_code, response.text.strip(), ""
        try:
            body = json_body(response.content)
        except ValueError:
            pass
        else:
            said, error = server_words(body), body.get("error", body)
            code = str(error.get("code") or error.get("type")) if isinstance(error, dict) else ""
        told = f"HTTP {status}: {said}" if said else f"HTTP {status}"
        if cure := self.cures.get(code) or self.cures.get(status):
            return RefusedError(f"{self.name} refuses all {self.requests} ({one_line(told, self.key)}): {cure}")
        return self._failure(told, retries, down=status == 429 or status >= 500)

    def loss(self, error: BaseException | None, retries: int) -> Exception:
        """The error of a request without a whole response."""
        if isinstance(error, httpx2.TimeoutException):
            return self._failure(f"no complete response within {self.seconds:g} s", retries)
        if isinstance(error, BrokenReplyError):
            return self._failure(str(error), retries)
        down = isinstance(error, httpx2.ConnectError | httpx2.ProxyError)
        what = "no connection" if down else "a broken connection"
        return self._failure(f"{what}: {error or type(error).__name__}", retries, down)

    def _failure(self, text: str, retries: int, down: bool = False) -> Exception:
        text = one_line(text, self.key) + (f" (retries: {retries})" if retries else "")
        if not down:
            return ServiceError(text, retries)
        kept = f"Results so far are kept in {self.cache}." if self.cache else "No results are kept: cache is null."
        return UnavailableError(f"{self.name}: {text}. {kept} Check the server, then run the same command again.")
