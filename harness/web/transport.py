"""The transport of all HTTP requests: checked addresses, a deadline for each request, proxies only where wanted."""

import socket
import ssl
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from math import inf
from time import monotonic
from typing import Any
from urllib.request import getproxies, proxy_bypass

import httpcore2
import httpx2
from httpcore2 import NetworkBackend

from common.errors import UserError
from harness.web.addresses import Network, is_allowed

ENDS = "ends"  # extension of a request: a time of `monotonic` at which it and its redirects end
_LONGEST_LINK = 4096  # characters
_MAX_ADDRESSES = 3  # of a host that are tried


class FetchError(Exception):
    """Why there is no response, in one line."""


def resolve(host: str, port: int) -> list[str]:
    """The numeric addresses of a host, by the system's resolver."""
    return list(dict.fromkeys(str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)))


@cache
def ssl_context() -> ssl.SSLContext:
    """One for all requests: reading the system's certificates takes 0.2 s."""
    return httpcore2.default_ssl_context()


class _Deadline(threading.local):
    """When the request of this thread ends; its connection and its body are read in the same thread."""

    ends = inf

    def left(self) -> float:
        """Seconds until then; raises ReadTimeout when it has passed."""
        if (left := self.ends - monotonic()) <= 0:
            raise httpcore2.ReadTimeout
        return left


class _Stream(httpcore2.NetworkStream):
    """A connection that ends at the deadline, also where a server sends a byte now and then."""

    def __init__(self, stream: httpcore2.NetworkStream, deadline: _Deadline) -> None:
        self._stream, self._deadline = stream, deadline
        self.close, self.get_extra_info = stream.close, stream.get_extra_info  # type: ignore[method-assign]

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._deadline.left())

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._deadline.left())

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, self._deadline.left()), self._deadline)


class _Backend(httpcore2.SyncBackend):
    """Resolves a host once, checks the addresses and connects to one that passed, so no later resolution counts."""

    def __init__(self, deadline: _Deadline, allowed: Sequence[Network] | None) -> None:
        self._deadline, self._allowed = deadline, allowed

    def connect_tcp(self, host: str, port: int, timeout: float | None = None, *more: Any, **named: Any) -> _Stream:
        for address in (tried := self._passed(host, port)):
            try:
                stream = super().connect_tcp(address, port, self._deadline.left(), *more, **named)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                if address == tried[-1]:
                    raise
            else:
                return _Stream(stream, self._deadline)
        raise AssertionError("one address is tried")

    def _passed(self, host: str, port: int) -> Sequence[str]:
        if self._allowed is None:
            return [host]
        try:
            found = resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise FetchError(f"{host} has no address: {error}") from error
        passed = [address for address in found if is_allowed(address, self._allowed)][:_MAX_ADDRESSES]
        if not passed:
            where = found[0] if found else "no address"
            raise FetchError(f"{host} is at {where}, which is not public and not in allow_networks")
        return passed


class Transport(httpx2.BaseTransport):
    """Refuses links to where nobody may go, and connects to checked addresses only.  Several threads may use it.

    Args:
        seconds: That a request may take, to the end of its body.
        allowed: Networks that may be connected to although they are not public; None allows every address, for a
            service that the user has configured.
        environment_proxies: Whether the proxies of the environment (HTTPS_PROXY, NO_PROXY, ...) are used. A proxy
            resolves names and connects itself: addresses are then checked only where a link holds a number, and where
            no proxy is used.

    Raises:
        UserError: If a proxy of the environment is none of HTTP.
    """

    def __init__(self, seconds: float, allowed: Sequence[Network] | None, environment_proxies: bool = False) -> None:
        self._seconds, self._allowed, self._deadline = seconds, allowed, _Deadline()
        self._direct, self._by_proxy = self._over(allowed), dict[str, httpx2.HTTPTransport]()
        given = getproxies() if environment_proxies else {}
        for scheme in ("http", "https"):
            if address := given.get(scheme) or given.get("all"):
                self._by_proxy[scheme] = self._over(None, _environment_proxy(scheme, address))

    def _over(self, allowed: Sequence[Network] | None, proxy: httpx2.Proxy | None = None) -> httpx2.HTTPTransport:
        unlimited = httpx2.Limits(max_connections=None)
        transport = httpx2.HTTPTransport(verify=ssl_context(), proxy=proxy, limits=unlimited)
        # The checks stand on a private field: no public option gives a connection pool its network.
        if not isinstance(getattr(getattr(transport, "_pool", None), "_network_backend", None), NetworkBackend):
            raise RuntimeError(f"httpx2 {httpx2.__version__} has no _pool._network_backend: no address can be checked")
        transport._pool._network_backend = _Backend(self._deadline, allowed)
        return transport

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """The response to a request; raises FetchError if its link is none that may be followed."""
        url = request.url
        if url.scheme not in ("http", "https") or not url.host:
            raise FetchError("the link is no address of the web")
        if url.host.startswith(".") or (url.port is not None and not 0 < url.port < 2**16):
            raise FetchError("the link is malformed")
        if url.userinfo or len(str(url)) > _LONGEST_LINK:
            raise FetchError("the link holds a user or password" if url.userinfo else "the link is too long")
        try:
            passes = self._allowed is None or is_allowed(_number(url.host), self._allowed)
        except ValueError:  # a name
            passes = True
        if not passes:
            raise FetchError(f"{url.host} is not public and not in allow_networks")
        self._deadline.ends = request.extensions.get(ENDS, monotonic() + self._seconds)
        direct = url.scheme not in self._by_proxy or proxy_bypass(url.host)
        return (self._direct if direct else self._by_proxy[url.scheme]).handle_request(request)

    def close(self) -> None:
        """Close the connections."""
        for transport in (self._direct, *self._by_proxy.values()):
            transport.close()

    def __del__(self) -> None:
        """Connections that wait for a further request end with their transport."""
        with suppress(AttributeError):  # of one that was refused while it was made
            self.close()


def _environment_proxy(scheme: str, text: str) -> httpx2.Proxy:
    """The proxy of an environment variable such as HTTPS_PROXY, with its user and password.

    Args:
        scheme: Of the links that it serves, http or https; for the error line.
        text: An address; without `://` it is one of http.

    Raises:
        UserError: If it is no address of an HTTP proxy.  The line does not repeat it: it may hold a password.
    """
    with suppress(httpx2.InvalidURL, ValueError):
        proxy = httpx2.Proxy(text if "://" in text else f"http://{text}")
        if proxy.url.scheme in ("http", "https") and proxy.url.host and (proxy.url.port or 1) < 2**16:
            return proxy
    raise UserError(
        f"the environment variable {scheme.upper()}_PROXY must be the address of an HTTP proxy, such as "
        "http://proxy.example:3128: correct it, or unset it. A web search can set environment_proxies to false."
    )


def _number(host: str) -> str:
    """The IPv4 address that a host means which is written as a number (127.1, 2130706433, 0x7f.1).

    Other hosts as they are.
    """
    try:
        return socket.inet_ntoa(socket.inet_aton(host.rstrip(".")))
    except (OSError, ValueError):
        return host
