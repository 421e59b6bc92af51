"""Requests to a service that fails: which errors end the work, what is asked again, where the key goes."""

import time
from pathlib import Path
from types import SimpleNamespace

import httpx2
import pytest

from common.errors import RefusedError, UnavailableError
from harness.web import transport
from harness.web.search_services import SearchService
from harness.web.service_failures import ServiceError
from tests.helpers.fake_server import answer, cut_off, drip, redirect, web_server

KEY = "abc-0123456789-xyz"
NOTHING = b'{"results": []}'


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", KEY)


def service(url: str, retries: int = 0, seconds: float = 5.0) -> SearchService:
    return SearchService("tavily", url, "A_KEY", {}, 5, seconds, retries, Path("cache"))


@pytest.mark.parametrize(
    ("route", "error", "line"),
    [
        (answer(b"", 500), UnavailableError, r"tavily at .*: HTTP 500\. Results so far are kept in cache\. Check"),
        (answer(b"no %b" % KEY.encode(), 400), ServiceError, r"^HTTP 400: no \[key\]$"),
        (answer(b"nok"), ServiceError, r"^a response that is no valid JSON$"),
        (drip, ServiceError, r"^no complete response within 0\.5 s$"),
        (cut_off, ServiceError, r"^a broken connection: "),
    ],
)
def test_what_ends_the_work_and_what_is_of_one_request(route: object, error: type[Exception], line: str) -> None:
    with web_server({"/search": route}) as server, pytest.raises(error, match=line) as raised:  # type: ignore[dict-item]
        service(server.url, seconds=0.5 if "0" in line and "within" in line else 5.0).search("x")
    assert KEY not in str(raised.value) + repr(raised.value.__context__)


def test_a_broken_response_is_asked_for_again_a_redirect_is_not_followed_and_no_connection_ends_the_work() -> None:
    routes = {"/search": answer(b"nok")}
    with web_server(routes) as server, web_server({"/": answer(NOTHING)}) as elsewhere:
        one = service(server.url, retries=1)
        with pytest.raises(ServiceError, match=r"^a response that is no valid JSON \(retries: 1\)$"):
            one.search("x")
        assert server.counts["/search"] == 2
        server.routes["/search"] = redirect(elsewhere.url)
        with pytest.raises(RefusedError, match="HTTP 302"):
            one.search("x")
        server.routes["/search"] = answer(NOTHING, Connection="close")
        assert one.search("x") == []
    assert (server.counts["/search"], elsewhere.asked) == (4, [])
    with pytest.raises(UnavailableError, match=r"no connection: .*\(retries: 1\)\. Results so far are kept in cache"):
        one.search("y")


@pytest.mark.parametrize(("retry_after", "requests", "min_seconds"), [("0.4", 2, 0.4), ("121", 1, 0.0)])
def test_retry_after_is_waited_for_up_to_two_minutes(retry_after: str, requests: int, min_seconds: float) -> None:
    began = time.monotonic()
    with web_server({"/search": answer(b"", 429, Retry_After=retry_after)}) as server, pytest.raises(UnavailableError):
        service(server.url, retries=1).search("x")
    assert server.counts["/search"] == requests
    assert min_seconds <= time.monotonic() - began < 30


def test_a_version_without_the_field_of_the_address_check_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(httpx2, "HTTPTransport", lambda **_: SimpleNamespace(_pool=object()))
    with pytest.raises(RuntimeError, match=r"httpx2 .* has no _pool\._network_backend"):
        transport.Transport(1.0, ())
