"""A web server in this process that answers by functions and writes down what it was asked.

Also a search service made of them.
"""

import gzip
import json
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

HANGS_SECONDS = 6.0  # a server that hangs; the tests' deadlines are shorter


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: "WebServer"

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """By the route of the path."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        asked = Asked(
            self.command, urlsplit(self.path).path, parse_qs(urlsplit(self.path).query), dict(self.headers), body
        )
        with self.server.lock:
            self.server.asked.append(asked)
        (self.server.routes.get(asked.path) or answer(b"", 404))(self, asked)

    do_POST = do_GET

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Status line and headers."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def chunk(self, data: bytes) -> None:
        """A part of a body with `Transfer-Encoding: chunked`."""
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")


@dataclass(frozen=True)
class Asked:
    """One request."""

    method: str
    path: str
    fields: dict[str, list[str]]  # of the query
    headers: dict[str, str]
    body: bytes


Route = Callable[[Handler, Asked], None]


class WebServer(ThreadingHTTPServer):
    """Knows its routes and what it was asked."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, routes: Mapping[str, Route], address: str, port: int) -> None:
        self.routes, self.asked, self.lock = dict(routes), list[Asked](), threading.Lock()
        super().__init__((address, port), Handler)
        self.url = f"http://{address}:{self.server_port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is what these tests are about."""

    @property
    def counts(self) -> Counter[str]:
        """Requests by path."""
        return Counter(each.path for each in self.asked)


@contextmanager
def web_server(
    routes: Mapping[str, Route], address: str = "127.0.0.1", port: int = 0, certificate: Path | None = None
) -> Iterator[WebServer]:
    """Run a server while the `with` block runs.

    Args:
        routes: By path.
        address: Where it listens.
        port: A free one when 0.
        certificate: PEM file with a key and a certificate, for HTTPS.
    """
    with WebServer(routes, address, port) as server:
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()


def answer(body: bytes, status: int = 200, kind: str = "text/html; charset=utf-8", **headers: str) -> Route:
    """A whole response; of headers, `_` is written `-`."""

    def route(handler: Handler, _: Asked) -> None:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        handler.begin(status, {"Content-Type": kind, "Content-Length": str(len(body)), **given})
        handler.wfile.write(body)

    return route


def redirect(location: str, **headers: str) -> Route:
    """A redirect, after which the connection is closed."""
    return answer(b"", 302, Location=location, Connection="close", **headers)


def page(title: str, *paragraphs: str) -> Route:
    """A page of HTML with a menu around its text."""
    text = "".join(f"<p>{each}</p>" for each in paragraphs)
    menu = "<nav><ul><li><a href='/a'>Home</a></li><li><a href='/b'>Imprint</a></li></ul></nav>"
    html = (
        f"<html><head><title>{title}</title></head><body>{menu}<article><h1>{title}</h1>{text}</article></body></html>"
    )
    return answer(html.encode())


@cache
def bomb(mebibytes: int) -> Route:
    """A small body that decompresses to a large one."""
    return answer(gzip.compress(bytes(mebibytes * 2**20)), Content_Encoding="gzip")


def endless(handler: Handler, _: Asked) -> None:
    """A body without end, as fast as it is read."""
    handler.begin(200, {"Content-Type": "text/html", "Transfer-Encoding": "chunked"})
    while True:
        handler.chunk(b"<p>more and more</p>" * 3000)


def drip(handler: Handler, _: Asked) -> None:
    """A byte now and then, for longer than a client should wait."""
    handler.begin(200, {"Content-Type": "text/html", "Content-Length": "1000000"})
    for _ in range(int(HANGS_SECONDS / 0.05)):
        handler.wfile.write(b" ")
        time.sleep(0.05)


def drip_headers(handler: Handler, _: Asked) -> None:
    """Headers that come a byte at a time."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    for _ in range(int(HANGS_SECONDS / 0.05)):
        handler.wfile.write(b"x")
        time.sleep(0.05)


def huge_header(handler: Handler, _: Asked) -> None:
    """A header of many megabytes."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
    for _ in range(1000):
        handler.wfile.write(b"x" * 100_000)


def no_response(handler: Handler, _: Asked) -> None:
    """The connection is closed at once."""
    handler.close_connection = True


def cut_off(handler: Handler, _: Asked) -> None:
    """Half of a body."""
    handler.begin(200, {"Content-Type": "text/html", "Content-Length": "1000"})
    handler.wfile.write(b"<html>")
    handler.close_connection = True


@dataclass
class Searches:
    """The route of a search service in one of the three shapes, with faults before its answers.

    Args:
        results: By query, (title, link, snippet) of each result.
        shape: searxng, brave or tavily.
        faults: By query or `*`, routes that come before the answer, each once; the last stays if it is given twice.
    """

    results: Mapping[str, Sequence[tuple[str, str, str]]]
    shape: str = "searxng"
    faults: Mapping[str, Sequence[Route]] = field(default_factory=dict)
    answered: Counter[str] = field(default_factory=Counter)
    _requests: Counter[str] = field(default_factory=Counter)

    def __call__(self, handler: Handler, asked: Asked) -> None:
        """Answer a search."""
        query = json.loads(asked.body)["query"] if asked.method == "POST" else asked.fields["q"][0]
        number = self._requests[query]
        self._requests[query] += 1
        faults = self.faults.get(query, self.faults.get("*", ()))
        if len(faults) > 1 and faults[-1] is faults[-2]:
            number = min(number, len(faults) - 1)
        if number < len(faults):
            return faults[number](handler, asked)
        self.answered[query] += 1
        found = self.results.get(query, ())
        text = "description" if self.shape == "brave" else "content"
        listed = [{"title": title, "url": link, text: snippet} for title, link, snippet in found]
        body: dict[str, Any] = {"web": {"results": listed}} if self.shape == "brave" else {"results": listed}
        return answer(json.dumps(body).encode(), kind="application/json")(handler, asked)
