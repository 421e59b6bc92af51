"""Requests to what strangers run, in one thread each: `fetch` and `send`, and the transport that keeps them safe.

It limits addresses (checked where they are connected to), size after decompression, total time, redirects and content
types. No cookies, no credentials, and no proxies of the environment unless they are wanted.
"""

import socket
import ssl
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from email.message import Message
from functools import cache
from time import monotonic
from typing import Any
from urllib.request import getproxies, proxy_bypass

import httpcore2
import httpx2

from common.errors import UserError
from common.version import VERSION
from harness.web.addresses import Network, is_allowed

Resolve = Callable[[str, int], Sequence[str]]  # host and port to numeric addresses

_USER_AGENT = f"lightning-rag/{VERSION}"
_REDIRECTS = (301, 302, 303, 307, 308)
_LONGEST_LINK = 4096  # characters
_MOST_ADDRESSES = 3  # of a host that are tried


class FetchError(Exception):
    """Why there is no response, in one line."""


class NoConnectionError(FetchError):
    """No connection to the server came about."""


@dataclass(frozen=True, slots=True)
class Response:
    """What a server sent."""

    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes  # decompressed; empty where it was not read

    @property
    def kind(self) -> str:
        """The media type, such as text/html, without its parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def charset(self) -> str:
        """The character set that the media type names; empty if it names none."""
        message = Message()
        message["content-type"] = self.headers.get("content-type", "")
        return str(message.get_param("charset", ""))


def resolve(host: str, port: int) -> list[str]:
    """The numeric addresses of a host, by the system's resolver."""
    return list(dict.fromkeys(str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)))


@cache
def ssl_context() -> ssl.SSLContext:
    """One for all requests: reading the system's certificates takes 0.2 s."""
    return httpcore2.default_ssl_context()


class _Stream(httpcore2.NetworkStream):
    """A connection that ends at a time of `monotonic`, also where a server sends a byte now and then."""

    def __init__(self, stream: httpcore2.NetworkStream, ends: float) -> None:
        self._stream, self._ends = stream, ends
        self.close, self.get_extra_info = stream.close, stream.get_extra_info  # type: ignore[method-assign]

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, seconds_left(self._ends))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, seconds_left(self._ends))

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, seconds_left(self._ends)), self._ends)


def seconds_left(ends: float) -> float:
    """Until a time of `monotonic`; raises ReadTimeout when it has passed."""
    if (left := ends - monotonic()) <= 0:
        raise httpcore2.ReadTimeout
    return left


@dataclass
class _Backend(httpcore2.SyncBackend):
    """Resolves a host once, checks the addresses and connects to one that passed, so no later resolution counts."""

    ends: float
    allowed: Sequence[Network] | None  # None: every address
    resolve: Resolve

    def connect_tcp(self, host: str, port: int, timeout: float | None = None, *more: Any, **named: Any) -> _Stream:
        for address in (tried := self._passed(host, port)):
            try:
                return _Stream(super().connect_tcp(address, port, seconds_left(self.ends), *more, **named), self.ends)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                if address == tried[-1]:
                    raise
        raise AssertionError("one address is tried")

    def _passed(self, host: str, port: int) -> Sequence[str]:
        if self.allowed is None:
            return [host]
        try:
            found = self.resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise NoConnectionError(f"{host} has no address: {error}") from error
        passed = [address for address in found if is_allowed(address, self.allowed)][:_MOST_ADDRESSES]
        if not passed:
            where = found[0] if found else "no address"
            raise FetchError(f"{host} is at {where}, which is not public and not in allow_networks")
        return passed


class Transport(httpx2.BaseTransport):
    """Refuses links to where nobody may go, and connects to checked addresses only, until a deadline.

    Args:
        seconds: From now on.
        allowed: Networks that may be connected to although they are not public; None allows every address, for a
            service that the user has configured.
        environment_proxies: Whether the proxies of the environment (HTTPS_PROXY, NO_PROXY, ...) are used. A proxy
            resolves names and connects itself: addresses are then checked only where a link holds a number, and where
            no proxy is used.
        resolve: Finds the addresses of hosts.
    """

    def __init__(
        self, seconds: float, allowed: Sequence[Network] | None, environment_proxies: bool, resolve: Resolve
    ) -> None:
        self._ends, self._allowed = monotonic() + seconds, allowed
        given = getproxies() if environment_proxies else {}
        proxies = {
            scheme: environment_proxy(scheme, given[scheme]) for scheme in ("http", "https") if given.get(scheme)
        }
        self._by_proxy = {scheme: self._over(None, resolve, proxy) for scheme, proxy in proxies.items()}
        self._direct = self._over(allowed, resolve)

    def _over(
        self, allowed: Sequence[Network] | None, resolve: Resolve, proxy: httpcore2.Proxy | None = None
    ) -> httpx2.HTTPTransport:
        transport = httpx2.HTTPTransport(verify=ssl_context())
        backend = _Backend(self._ends, allowed, resolve)
        transport._pool = httpcore2.ConnectionPool(ssl_context=ssl_context(), proxy=proxy, network_backend=backend)
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
        direct = url.scheme not in self._by_proxy or proxy_bypass(url.host)
        return (self._direct if direct else self._by_proxy[url.scheme]).handle_request(request)

    def close(self) -> None:
        """Close the connections."""
        for transport in (self._direct, *self._by_proxy.values()):
            transport.close()


@dataclass(frozen=True)
class HttpClient:
    """Sends requests, each in the calling thread over connections of its own; options as `Transport`'s."""

    allowed: Sequence[Network] | None
    environment_proxies: bool = False
    resolve: Resolve = resolve

    def fetch(
        self, link: str, seconds: float, most_bytes: int, most_redirects: int, kinds: Collection[str]
    ) -> Response:
        """The document behind a link, which a stranger wrote.

        Args:
            link: An address of the web.
            seconds: Deadline for everything, redirects included: no server holds it up by sending a byte now and then.
            most_bytes: Of the body, as it is sent and decompressed.
            most_redirects: That are followed.
            kinds: Media types that are read.

        Raises:
            FetchError: If the link is no address of the web, its host is not allowed, or a limit is reached.
        """
        with closing(Transport(seconds, self.allowed, self.environment_proxies, self.resolve)) as transport:
            url = _joined(None, link)
            for _ in range(most_redirects + 1):
                request = httpx2.Request("GET", url, headers=_headers({"Accept": ",".join(kinds)}))
                response = _exchange(transport, request, seconds, most_bytes, kinds)
                if response.status not in _REDIRECTS or not response.headers.get("location"):
                    break
                url = _joined(url, response.headers["location"])
            else:
                raise FetchError(f"more than {most_redirects} redirects")
        if response.status != 200:
            raise FetchError(f"HTTP {response.status}")
        return response

    def send(
        self, method: str, link: str, headers: Mapping[str, str], content: bytes | None, seconds: float, most_bytes: int
    ) -> Response:
        """The response of a service, whatever its status; redirects are not followed, so that a key goes nowhere else.

        Raises:
            FetchError: If there is none within the deadline or the size.
        """
        request = httpx2.Request(method, link, headers=_headers(headers), content=content)
        with closing(Transport(seconds, self.allowed, self.environment_proxies, self.resolve)) as transport:
            return _exchange(transport, request, seconds, most_bytes, None)


def _headers(more: Mapping[str, str]) -> dict[str, str]:
    return {"User-Agent": _USER_AGENT, "Accept-Encoding": "gzip", **more}


def _joined(base: httpx2.URL | None, link: str) -> httpx2.URL:
    link = link[: _LONGEST_LINK + 1]
    try:
        return httpx2.URL(link) if base is None else base.join(link)
    except (httpx2.InvalidURL, ValueError) as error:  # of the encoding too
        raise FetchError("the link is malformed") from error


def _exchange(
    transport: Transport, request: httpx2.Request, seconds: float, most_bytes: int, kinds: Collection[str] | None
) -> Response:
    """One request and its response; with `kinds` the body is read only with status 200 and such a type."""
    try:
        with closing(transport.handle_request(request)) as response:
            answer = Response(response.status_code, dict(response.headers), b"")
            if kinds is not None and answer.status != 200:
                return answer
            if kinds is not None and answer.kind not in kinds:
                raise FetchError(f"content type {answer.kind[:50] or 'not given'}")
            encoding = answer.headers.get("content-encoding", "identity").strip().lower()
            return Response(answer.status, answer.headers, _body(response.iter_raw(), encoding, most_bytes))
    except httpx2.TimeoutException as error:
        raise FetchError(f"no complete response within {seconds:g} s") from error
    except httpx2.ConnectError as error:
        raise NoConnectionError(f"no connection: {error}") from error
    except (httpx2.TransportError, OSError) as error:
        raise FetchError(f"a broken connection: {str(error) or type(error).__name__}") from error


def environment_proxy(scheme: str, text: str) -> httpcore2.Proxy:
    """The proxy of an environment variable such as HTTPS_PROXY, with its user and password.

    Args:
        scheme: Of the links that it serves, http or https; for the error line.
        text: An address; without `://` it is one of http.

    Raises:
        UserError: If it is no address of an HTTP proxy.  The line does not repeat it: it may hold a password.
    """
    try:
        given = httpx2.Proxy(text if "://" in text else f"http://{text}")
        usable = given.url.scheme in ("http", "https") and given.url.host and (given.url.port or 1) < 2**16
    except (httpx2.InvalidURL, ValueError):
        usable = False
    if not usable:
        raise UserError(
            f"the environment variable {scheme.upper()}_PROXY must be the address of an HTTP proxy, such as "
            "http://proxy.example:3128; correct it, or set environment_proxies to false."
        )
    url = httpcore2.URL(scheme=given.url.raw_scheme, host=given.url.raw_host, port=given.url.port, target="/")
    return httpcore2.Proxy(url, given.raw_auth)


def _number(host: str) -> str:
    """The IPv4 address that a host means which is written as a number (127.1, 2130706433, 0x7f.1).

    Other hosts as they are.
    """
    try:
        return socket.inet_ntoa(socket.inet_aton(host.rstrip(".")))
    except (OSError, ValueError):
        return host


def _body(sent: Iterable[bytes], encoding: str, most_bytes: int) -> bytes:
    """The whole body, decompressed.  Nothing beyond the limit is decompressed."""
    if encoding not in ("identity", "gzip", "x-gzip"):
        raise FetchError(f"content encoding {encoding[:50]}, which was not asked for")
    inflate = None if encoding == "identity" else zlib.decompressobj(wbits=31)
    parts: list[bytes] = []
    received = size = 0
    for part in sent:
        received += len(part)
        try:
            parts.append(part if inflate is None else inflate.decompress(part, most_bytes + 1 - size))
        except zlib.error as error:
            raise FetchError("a body that is no valid gzip") from error
        size += len(parts[-1])
        if max(received, size) > most_bytes:
            raise FetchError(f"more than {most_bytes:,} bytes")
    if inflate is not None and not inflate.eof and received:
        raise FetchError("a body that was cut off")
    return b"".join(parts)
