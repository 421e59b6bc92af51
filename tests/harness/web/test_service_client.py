"""The client of services against a real server: when it gives up, where its key goes, what it says of errors."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from common.errors import UnavailableError, UserError
from harness.web.service_client import ServiceClient, ServiceError
from tests.helpers.web_server import Asked, Handler, WebServer, answer, redirect, web_server

KEY = "abc-0123456789-xyz"


def check(body: bytes) -> None:
    if body != b"ok":
        raise ValueError("a broken response")


def sender(server: WebServer, concurrency: int = 2, retries: int = 0) -> Callable[[], bytes]:
    """Sends one request to a server, of which 401 means that no request can succeed."""
    client = ServiceClient(
        "m at host", "chats", server.url, KEY, {"X-Key": KEY}, 5.0, retries, concurrency, Path("cache"), check,
        lambda error: "export a key." if error.status == 401 else "", environment_proxies=False,
    )  # fmt: skip
    return lambda: client.send(f"{server.url}/", None, lambda body, _: body)


@pytest.mark.parametrize(
    ("statuses", "concurrency", "ends"),
    [
        ([500] * 10, 2, r"^m at host: 10 chats in a row failed, the last with: HTTP 500 \(retries: 0\)\. .* cache"),
        ([500] * 9 + [200] + [500] * 9, 2, ""),  # a success begins the row anew
        ([500] * 9 + [400] + [500] * 9, 2, ""),  # and so does a refusal
        ([500] * 11, 12, ""),  # those under way when a server dies are no row
        ([500] * 12, 12, "12 chats in a row failed"),
        ([400] * 10, 2, "m at host refused the first 10 chats, the last with: HTTP 400"),
        ([400] * 9 + [500, 400], 2, "refused the first 10 chats"),
        ([200] + [400] * 12, 2, ""),
        ([200, 200, 401], 2, r"m at host refuses all chats \(HTTP 401\): export a key\."),
    ],
)  # fmt: skip
def test_when_a_service_counts_as_down(statuses: list[int], concurrency: int, ends: str) -> None:
    left = list(statuses)

    def route(handler: Handler, asked: Asked) -> None:
        status = left.pop(0)
        answer(b"ok" if status == 200 else b"", status)(handler, asked)

    with web_server({"/": route}) as server:
        send = sender(server, concurrency)
        for number, status in enumerate(statuses, start=1):
            error = (UnavailableError, UserError) if ends and number == len(statuses) else ServiceError
            if status == 200:
                assert send() == b"ok"
                continue
            with pytest.raises(error, match=ends if error is not ServiceError else f"HTTP {status}"):
                send()


def test_a_broken_response_is_asked_for_again_and_a_redirect_is_not_followed() -> None:
    said = answer(f'{{"error": {{"message": "no {KEY}"}}}}'.encode(), 400, "application/json")
    with web_server({"/": answer(b"nok")}) as server, web_server({"/": answer(b"ok")}) as elsewhere:
        with pytest.raises(ServiceError, match=r"^a broken response \(retries: 1\)$"):
            sender(server, retries=1)()
        assert server.counts == {"/": 2}
        server.routes["/"] = redirect(elsewhere.url)
        with pytest.raises(ServiceError, match=r"^HTTP 302$"):
            sender(server, retries=1)()
        server.routes["/"] = said
        with pytest.raises(ServiceError, match=r"^HTTP 400: no \[key\]$"):
            sender(server, retries=1)()
    assert not elsewhere.asked
    assert server.counts == {"/": 4}
    headers = {name.lower(): value for name, value in server.asked[0].headers.items()}
    assert (headers["x-key"], headers.get("authorization")) == (KEY, None)


@pytest.mark.parametrize(("retry_after", "requests", "min_seconds"), [("0.4", 2, 0.4), ("121", 1, 0.0)])
def test_retry_after_is_waited_for_up_to_two_minutes(retry_after: str, requests: int, min_seconds: float) -> None:
    began = time.monotonic()
    with web_server({"/": answer(b"", 429, Retry_After=retry_after)}) as server, pytest.raises(ServiceError):
        sender(server, retries=1)()
    assert len(server.asked) == requests
    assert min_seconds <= time.monotonic() - began < 30
