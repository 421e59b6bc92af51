"""Runs the application in one process until a signal comes, and finishes the requests that it has accepted."""

import asyncio
import ipaddress
import socket
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from common.errors import ArtifactError
from common.progress import say
from harness.serving.app import create_app
from harness.serving.guards import LOOPBACK
from harness.serving.parts import Served
from harness.serving.worker import ServingLimits

_HEAD_SECONDS = 10.0  # in which a request's head must come


class _WatchedProtocol(H11Protocol):
    """Closes a connection on which no request begins: uvicorn waits for a head for ever."""

    watch: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._look(())

    def _look(self, before: object) -> None:
        idle = self.cycle is None or self.cycle.response_complete
        if idle and before is self.cycle:
            self.transport.close()
        else:
            self.watch = self.loop.call_later(_HEAD_SECONDS, self._look, self.cycle if idle else ())

    def connection_lost(self, exc: Exception | None) -> None:
        if self.watch is not None:
            self.watch.cancel()
        super().connection_lost(exc)


class _Server(uvicorn.Server):
    """Says where it listens, and tells the application when it stops."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            address = self.servers[0].sockets[0].getsockname()
            host = f"[{address[0]}]" if ":" in address[0] else address[0]
            say(f"Listening on http://{host}:{address[1]}")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.config.app.state.backend.stopping = True  # type: ignore[union-attr]
        say("Stopping: finishing the requests that were accepted.")
        await super().shutdown(sockets)


def bound(host: str, port: int) -> socket.socket:
    """A socket at an address.

    Raises:
        ArtifactError: If the address cannot be listened on.
    """
    try:
        bound_to = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
        bound_to.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound_to.bind((host.strip("[]"), port))
    except OSError as error:
        raise ArtifactError(f"--host {host} --port {port} cannot be listened on: {error}.") from error
    return bound_to


def run(served: Served, limits: ServingLimits, listening: socket.socket, host: str, key: str) -> None:
    """Serve until Ctrl-C or SIGTERM.

    Args:
        served: What there is, loaded.
        limits: See `ServingLimits`.
        listening: See `bound`. One of this machine alone takes only requests to the machine's own names.
        host: As it was typed.
        key: That requests must bring along; empty for none.
    """
    local = ipaddress.ip_address(listening.getsockname()[0]).is_loopback
    if not local and not key:
        say(f"Anybody who reaches {host} may ask: set LIGHTNING_RAG_KEY to require a key.")
    app = create_app(served, limits, key, (*LOOPBACK, host.lower()) if local else ())
    grace = int(2 * limits.seconds) + 1  # a body may take as long as its answer
    config = uvicorn.Config(
        app, http=_WatchedProtocol, log_level="warning", access_log=False, timeout_graceful_shutdown=grace,
        lifespan="on", server_header=False,
    )  # fmt: skip
    try:
        _Server(config).run([listening])
    except KeyboardInterrupt:  # uvicorn raises the signal again once it has stopped
        say("Stopped.")
