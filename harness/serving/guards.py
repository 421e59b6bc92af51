"""Checks of every request before its route: host name, key, size and time; and the metrics of the server."""

import asyncio
import hmac
import time
from collections.abc import Callable, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from harness.serving.worker import ServingLimits

OPEN_PATHS = ("/", "/health", "/ready")  # without a key
LOOPBACK = ("localhost", "127.0.0.1", "[::1]", "::1")


class ServerMetrics:
    """The metrics for Prometheus.

    Args:
        waiting: Number of requests that wait or are being worked on.
    """

    def __init__(self, waiting: Callable[[], int]) -> None:
        self.registry = registry = CollectorRegistry()
        self.requests = Counter("rag_requests", "Requests", ["route", "status"], registry=registry)
        times = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300)
        self.seconds = Histogram(
            "rag_request_seconds", "Seconds of a request", ["route"], buckets=times, registry=registry
        )
        sizes = (1, 2, 4, 8, 16, 32, 64, 128, 256)
        self.batch = Histogram("rag_batch_requests", "Requests in a batch", ["work"], buckets=sizes, registry=registry)
        self.batch_seconds = Histogram("rag_batch_seconds", "Seconds of a batch", ["work"], registry=registry)
        self.stages = Counter("rag_stage_seconds", "Seconds of the stages of answers", ["stage"], registry=registry)
        self.costs = Counter(
            "rag_costs", "Model calls, retriever calls, tokens of answers", ["kind"], registry=registry
        )
        Gauge("rag_queue", "Requests that wait or are worked on", registry=registry).set_function(waiting)

    def batched(self, work: str, count: int, seconds: float) -> None:
        """Count a batch."""
        self.batch.labels(work).observe(count)
        self.batch_seconds.labels(work).observe(seconds)

    def spent(self, costs: dict[str, float]) -> None:
        """Count the costs of an answer."""
        for name, value in costs.items():
            kind, _, stage = name.partition("/")
            counter = self.stages.labels(stage) if kind == "seconds" and stage else self.costs.labels(name)
            counter.inc(max(0.0, value))


class _SlowClientError(Exception):
    """A client does not read its response."""


class HeadAsGet:
    """ASGI middleware: HEAD is GET without a body.

    Args:
        app: What follows.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            return await self.app(scope, receive, send)

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                await send(message)
                await send({"type": "http.response.body"})  # now: a stream of events has no end

        return await self.app({**scope, "method": "GET"}, receive, sent)


class Guard:
    """ASGI middleware.  It reads a request's whole body before the route sees it.

    Args:
        app: What follows.
        limits: See `ServingLimits`.
        metrics: Counts.
        key: Of the header `Authorization: Bearer KEY`; empty for none.
        hosts: Names by which the server may be called; empty for any. They keep a page of another site, whose name
            was pointed to this machine, from reading answers.
    """

    def __init__(
        self, app: ASGIApp, limits: ServingLimits, metrics: ServerMetrics, key: str, hosts: tuple[str, ...]
    ) -> None:
        self.app, self.limits, self.metrics, self.key, self.hosts = app, limits, metrics, key, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.perf_counter(), 499  # the client has left

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            try:
                async with asyncio.timeout(self.limits.seconds):
                    await send(message)
            except TimeoutError as error:
                raise _SlowClientError from error

        try:
            read = self._refusal(scope) or await self._body(receive)
            if isinstance(read, tuple):
                await error_response(*read)(scope, receive, sent)
            elif read is not None:
                await self.app(scope, _replayed(read, receive), sent)
        except _SlowClientError:
            status = 499  # the connection is closed
        except Exception:
            status = 500
            raise
        finally:
            route = getattr(scope.get("route"), "path", "other")
            self.metrics.requests.labels(route, str(status)).inc()
            self.metrics.seconds.labels(route).observe(time.perf_counter() - began)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get(b"host", "")
        names = {host.lower(), host.lower().rpartition(":")[0]}
        if self.hosts and names.isdisjoint(self.hosts):
            return 421, "this server answers by the names of this machine alone: 127.0.0.1 or localhost"
        if self.key and scope["path"] not in OPEN_PATHS:
            scheme, _, given = headers.get(b"authorization", "").partition(" ")
            if scheme.lower() != "bearer" or not hmac.compare_digest(given.encode("latin-1"), self.key.encode()):
                return 401, "give the server's key in the header Authorization: Bearer KEY"
        return None

    async def _body(self, receive: Receive) -> bytes | tuple[int, str] | None:
        """The body, or why it is refused: it is too late or too large; None if the client leaves."""
        body, more = bytearray(), True
        try:
            async with asyncio.timeout(self.limits.seconds):
                while more and len(body) <= self.limits.body_kib * 1024:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    body += message.get("body", b"")
                    more = message.get("more_body", False)
        except TimeoutError:
            return 408, f"the body did not arrive within {self.limits.seconds:g} s"
        if len(body) > self.limits.body_kib * 1024:
            return 413, f"the body is larger than {self.limits.body_kib} KiB"
        return bytes(body)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """`receive` that first gives a body that has been read."""
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def error_response(status: int, message: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """An error in the form of all errors of the server, with its kind as OpenAI's clients know them."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    kind = {401: "authentication_error", 429: "rate_limit_error"}.get(status, kind)
    return JSONResponse({"error": {"message": message, "type": kind}}, status, headers)
