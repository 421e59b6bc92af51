"""Runs the application in one process until a signal comes, and finishes the requests that it has accepted."""

import socket

import uvicorn

from common.errors import ArtifactError
from common.progress import say
from harness.serving.app import create_app
from harness.serving.guards import LOOPBACK
from harness.serving.parts import Served
from harness.serving.worker import ServingLimits


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


def run(served: Served, limits: ServingLimits, host: str, port: int, key: str) -> None:
    """Serve until Ctrl-C or SIGTERM.

    Args:
        served: What there is, loaded.
        limits: See `ServingLimits`.
        host: Address to listen on. One of this machine alone takes only requests to its own names.
        port: 0 for any that is free.
        key: That requests must bring along; empty for none.

    Raises:
        ArtifactError: If the address cannot be listened on.
    """
    app = create_app(served, limits, key, LOOPBACK if host in LOOPBACK else ())
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host.strip("[]"), port))
    except (OSError, OverflowError) as error:
        raise ArtifactError(f"--host {host} --port {port} cannot be listened on: {error}.") from error
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, timeout_graceful_shutdown=int(limits.seconds) + 1, lifespan="on",
        limit_concurrency=None, server_header=False,
    )  # fmt: skip
    try:
        _Server(config).run([listening])
    except KeyboardInterrupt:  # uvicorn raises the signal again once it has stopped
        say("Stopped.")
