"""A web server in this process that answers by functions, fails in every way, and writes down what it was asked.

Also a search service and a chat endpoint made of them.
"""

import gzip
import json
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.message import Message
from email.utils import formatdate
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from harness.llm.endpoint import ChatEndpoint

HANGS_SECONDS = 6.0  # a server that hangs; the tests' deadlines are shorter
ANY, ALWAYS = "*", "always"  # all that is not listed; the fault before it lasts
KEY = "test-key-4f9a1c77e2d04b6b"  # of the chat endpoint; must be found nowhere on disk
JSON = "application/json"


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: "WebServer"

    def setup(self) -> None:
        """Remember the connection."""
        super().setup()
        self.server.connections.append(self.connection)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """By the route of the path."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        asked = Asked(self.command, urlsplit(self.path).path, parse_qs(urlsplit(self.path).query), self.headers, body)
        server = self.server
        with server.lock:
            server.asked.append(asked)
            server.now += 1
            server.most = max(server.most, server.now)
        try:
            (server.routes.get(asked.path) or answer(b'{"detail": "Not Found"}', 404))(self, asked)
        finally:
            with server.lock:
                server.now -= 1

    do_POST = do_GET


@dataclass(frozen=True)
class Asked:
    """One request."""

    method: str
    path: str
    fields: dict[str, list[str]]  # of the query
    headers: Message
    body: bytes


Route = Callable[[Handler, Asked], None]


class WebServer(ThreadingHTTPServer):
    """Knows its routes and what it was asked."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, routes: Mapping[str, Route], address: str, port: int) -> None:
        self.routes, self.asked, self.lock = dict(routes), list[Asked](), threading.Lock()
        self.connections: list[socket.socket] = []
        self.now = self.most = 0  # requests at once
        super().__init__((address, port), Handler)
        self.url = f"http://{address}:{self.server_port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is what these tests are about."""

    @property
    def counts(self) -> Counter[str]:
        """Requests by path."""
        return Counter(each.path for each in self.asked)

    def die(self) -> None:
        """End as a process that is killed: open connections break, and nothing listens."""
        self.shutdown()
        self.server_close()
        for each in self.connections:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


@contextmanager
def web_server(routes: Mapping[str, Route], address="127.0.0.1", port=0, certificate=None) -> Iterator[WebServer]:
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
        handler.send_response(status)
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **given}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)

    return route


def redirect(location: str, **headers: str) -> Route:
    """A redirect, after which the connection is closed."""
    return answer(b"", 302, Location=location, Connection="close", **headers)


def page(title: str, *paragraphs: str) -> Route:
    """A page of HTML with a menu around its text."""
    text = "".join(f"<p>{each}</p>" for each in paragraphs)
    menu = "<nav><ul><li><a href='/a'>Home</a></li><li><a href='/b'>Imprint</a></li></ul></nav>"
    article = f"<article><h1>{title}</h1>{text}</article>"
    return answer(f"<html><head><title>{title}</title></head><body>{menu}{article}</body></html>".encode())


@cache
def bomb(mebibytes: int) -> Route:
    """A small body that decompresses to a large one."""
    return answer(gzip.compress(bytes(mebibytes * 2**20)), Content_Encoding="gzip")


def raw(first: str, part: bytes = b"", times: int = 1, pause: float = 0.0) -> Route:
    """Bytes, then so many more after pauses; then the connection is closed."""

    def route(handler: Handler, _: Asked) -> None:
        handler.close_connection = True
        handler.wfile.write(first.encode())
        for _ in range(times):
            time.sleep(pause)
            handler.wfile.write(part)

    return route


BEGIN, DRIPS = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n", int(HANGS_SECONDS / 0.05)
PIECE = b"<p>more and more</p>" * 3000
endless = raw(f"{BEGIN}Transfer-Encoding: chunked\r\n\r\n", b"%x\r\n%b\r\n" % (len(PIECE), PIECE), 10**9)
stall = raw("", b"", 1, HANGS_SECONDS)  # longer than a client should wait, as what follows
drip = raw(f"{BEGIN}Content-Length: 1000000\r\n\r\n", b" ", DRIPS, 0.05)
drip_headers = raw(f"{BEGIN}X-Slow: ", b"x", DRIPS, 0.05)
huge_header = raw(f"{BEGIN}X-Long: ", b"x" * 100_000, 1000)
no_response = raw("")
cut_off = raw(f"{BEGIN}Content-Length: 1000\r\n\r\n<html>")  # half of a body


@dataclass(kw_only=True)
class Service:
    """A route whose answers come after faults.

    Args:
        faults: By what is asked, or ANY: routes that come before the answer, each once; ALWAYS behind one: it lasts.
        requests: Of each, so far.
        answered: The same.
    """

    faults: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    requests: Counter[str] = field(default_factory=Counter)
    answered: Counter[str] = field(default_factory=Counter)

    def __call__(self, handler: Handler, asked: Asked) -> None:
        """A fault, or the answer."""
        text = self.text(asked)
        with handler.server.lock:
            number = self.requests[text]
            self.requests[text] += 1
        faults = [*self.faults.get(text, self.faults.get(ANY, ()))]
        if faults and faults[-1] == ALWAYS:
            faults = faults[:-1] + faults[-2:-1] * number
        if number < len(faults):
            return self.fault(faults[number], asked)(handler, asked)
        answer(self.body(text, asked), kind=JSON)(handler, asked)
        with handler.server.lock:
            self.answered[text] += 1

    def fault(self, route: Route, asked: Asked) -> Route:
        """A fault as a route."""
        return route


@dataclass
class Searches(Service):
    """The route of a search service in one of the three shapes.

    Args:
        results: By query, (title, link, snippet) of each result.
        shape: searxng, brave or tavily.
    """

    results: Mapping[str, Sequence[tuple[str, str, str]]] = field(default_factory=dict)
    shape: str = "searxng"

    def text(self, asked: Asked) -> str:
        """The query."""
        return json.loads(asked.body)["query"] if asked.method == "POST" else asked.fields["q"][0]

    def body(self, text: str, asked: Asked) -> bytes:
        """The results."""
        snippet = "description" if self.shape == "brave" else "content"
        listed = [{"title": title, "url": link, snippet: part} for title, link, part in self.results.get(text, ())]
        return json.dumps({"web": {"results": listed}} if self.shape == "brave" else {"results": listed}).encode()


SLOW = {"stall": stall, "drip": drip}  # beyond the deadline of an attempt
PASSING = ("429", "429 date", "500", "503 html", "408", "409", "cut", "no response", "invalid", "half")  # costs a retry
LASTING = ("400", "refusal")  # which no further attempt would change
REFUSAL = {"content": None, "refusal": "I cannot help with that."}


def _error(status: int, message: str, code: str | None = None, **headers: str) -> Route:
    """In the form of OpenAI."""
    return answer(json.dumps({"error": {"message": message, "code": code}}).encode(), status, JSON, **headers)


ROUTES = {
    **SLOW,
    "cut": cut_off,
    "no response": no_response,
    "503 html": answer(b"<html>\n<h1>Service Unavailable</h1></html>", 503),
    "quota": _error(429, "You exceeded your current quota", "insufficient_quota"),
    "invalid": answer(b"{nonsense", kind=JSON),
}


@dataclass
class Chats(Service):
    """The route of a chat endpoint, whose faults have names.

    Args:
        replies: By the last message, or ANY: `text`, and optionally `finish`, `prompt_tokens`, and `logprobs`, those of
            the tokens (nats).
        key: That requests must carry; none if empty.
        delay_seconds: Before each response.
        gives_logprobs: Whether it lists the tokens.
    """

    replies: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    key: str = KEY
    delay_seconds: float = 0.0
    gives_logprobs: bool = True

    def text(self, asked: Asked) -> str:
        """The last message."""
        return json.loads(asked.body)["messages"][-1]["content"]

    def __call__(self, handler: Handler, asked: Asked) -> None:
        """A refusal, a fault, or the reply."""
        given, model = asked.headers.get("Authorization", ""), json.loads(asked.body)["model"]
        if self.key and given != f"Bearer {self.key}":
            words = f"Incorrect API key provided: {given}. You can find your API key at /account."
            self.requests[self.text(asked)] += 1
            return _error(401, words, "invalid_api_key")(handler, asked)
        if model != "tiny":
            return _error(404, f"The model {model!r} does not exist")(handler, asked)
        time.sleep(self.delay_seconds)
        super().__call__(handler, asked)

    def body(self, text: str, asked: Asked, **changes: Any) -> bytes:
        """The reply, with changes of its choice."""
        given = self.replies.get(text) or self.replies[ANY]
        reply = {"finish": "stop", "prompt_tokens": 9, "logprobs": [0.0], **given}
        listed = {"content": [{"token": "", "logprob": value} for value in reply["logprobs"]]}
        choice = {
            "index": 0, "message": {"role": "assistant", "content": reply["text"]}, "finish_reason": reply["finish"],
            "logprobs": listed if self.gives_logprobs and json.loads(asked.body).get("logprobs") else None, **changes,
        }  # fmt: skip
        usage = {"prompt_tokens": reply["prompt_tokens"], "completion_tokens": len(reply["logprobs"])}
        whole = {"object": "chat.completion", "choices": [choice], "usage": usage}
        return json.dumps(whole, ensure_ascii=False).encode()

    def fault(self, route: str, asked: Asked) -> Route:
        """One of the ways in which endpoints fail."""
        if route in ROUTES:
            return ROUTES[route]
        if route in ("refusal", "half"):
            whole = self.body(self.text(asked), asked, **({"message": REFUSAL} if route == "refusal" else {}))
            return answer(whole[:-40] if route == "half" else whole, kind=JSON)
        after = {"429": "0.05", "429 date": formatdate(time.time() + 1, usegmt=True)}.get(route)
        words = f"no luck\nwith {asked.headers.get('Authorization')}"
        return _error(int(route[:3]), words, **({"Retry_After": after} if after else {}))


@dataclass(frozen=True)
class ChatServer:
    """A running chat endpoint."""

    server: WebServer
    chats: Chats

    @property
    def base_url(self) -> str:
        """Its address."""
        return f"{self.server.url}/v1"

    def counts(self) -> dict[str, Any]:
        """Requests and answers by last message so far, and the largest number of requests at once."""
        requests, answered = Counter(self.chats.requests), Counter(self.chats.answered)
        return {"requests": requests, "answered": answered, "max_at_once": self.server.most}

    def client(self, folder: Path | None, **options: Any) -> ChatEndpoint:
        """A client whose key is in TEST_LLM_KEY."""
        given = {"base_url": self.base_url, "key_variable": "TEST_LLM_KEY", "cache": folder}
        return ChatEndpoint("tiny", **{**given, **options})


@contextmanager
def chat_server(replies: Mapping[str, Mapping[str, Any]], **options: Any) -> Iterator[ChatServer]:
    """Run a chat endpoint while the `with` block runs; arguments are those of `Chats`."""
    chats = Chats(replies=replies, **options)
    with web_server({"/v1/chat/completions": chats}) as server:
        yield ChatServer(server, chats)


def files_with(text: str, folder: Path) -> list[Path]:
    """The files below a folder, whatever their kind, that hold a text."""
    return [file for file in folder.rglob("*") if file.is_file() and text.encode() in file.read_bytes()]
