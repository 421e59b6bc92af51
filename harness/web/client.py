"""HTTP client for what strangers send.

It limits addresses (checked where they are connected to), size after decompression, total time, redirects and content
types. No cookies, no credentials, and no proxies of the environment unless they are wanted.
"""

import asyncio
import socket
import ssl
import zlib
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore2
from httpx2 import URL, InvalidURL

from common.errors import UserError
from common.version import VERSION
from harness.web.addresses import Network, is_allowed

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]  # host and port to numeric addresses

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


async def resolve(host: str, port: int) -> list[str]:
    """The numeric addresses of a host, by the system's resolver."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


@cache
def ssl_context() -> ssl.SSLContext:
    """One for all clients: reading the system's certificates takes 0.2 s."""
    return httpcore2.default_ssl_context()


class CheckedBackend(httpcore2.AnyIOBackend):
    """Resolves a host once, checks the addresses and connects to one that passed, so no later resolution counts.

    The request's Host header and TLS's server name stay the host's.
    """

    def __init__(self, allowed: Sequence[Network], resolve: Resolve) -> None:
        self._allowed, self._resolve = allowed, resolve

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """A connection to an allowed address of the host; raises FetchError if there is none."""
        try:
            found = await self._resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise NoConnectionError(f"{host} has no address: {error}") from error
        passed = [address for address in found if is_allowed(address, self._allowed)][:_MOST_ADDRESSES]
        if not passed:
            raise FetchError(
                f"{host} is at {found[0] if found else 'no address'}, which is not public and not in allow_networks"
            )
        for number, address in enumerate(passed, 1):
            try:
                return await super().connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                if number == len(passed):
                    raise
        raise AssertionError("one address is tried")


class HttpClient:
    """Sends requests; an asynchronous context manager, for one event loop.

    Args:
        concurrency: Connections at the same time.
        allowed: Networks that may be connected to although they are not public; None allows every address, for a
            service that the user has configured.
        environment_proxies: Whether the proxies of the environment (HTTPS_PROXY, NO_PROXY, ...) are used. A proxy
            resolves names and connects itself: addresses are then checked only where a link holds a number, and where
            no proxy is used.
        resolve: Finds the addresses of hosts.
    """

    def __init__(
        self,
        concurrency: int,
        allowed: Sequence[Network] | None,
        environment_proxies: bool = False,
        resolve: Resolve = resolve,
    ) -> None:
        self._allowed = allowed
        backend = None if allowed is None else CheckedBackend(allowed, resolve)
        options: dict[str, Any] = {"max_connections": concurrency, "ssl_context": ssl_context()}
        self._direct = httpcore2.AsyncConnectionPool(network_backend=backend, **options)
        given = getproxies() if environment_proxies else {}
        self._proxies = {
            scheme: httpcore2.AsyncConnectionPool(proxy=environment_proxy(scheme, given[scheme]), **options)
            for scheme in ("http", "https")
            if given.get(scheme)
        }

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for pool in (self._direct, *self._proxies.values()):
            await pool.aclose()

    async def fetch(
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
        try:
            async with asyncio.timeout(seconds):
                url = self._checked(link)
                for _ in range(most_redirects + 1):
                    response = await self._exchange("GET", url, {"Accept": ",".join(kinds)}, None, most_bytes, kinds)
                    if response.status not in _REDIRECTS or not response.headers.get("location"):
                        break
                    url = self._checked(response.headers["location"], url)
                else:
                    raise FetchError(f"more than {most_redirects} redirects")
        except TimeoutError as error:
            raise FetchError(f"no complete response within {seconds:g} s") from error
        if response.status != 200:
            raise FetchError(f"HTTP {response.status}")
        return response

    async def send(
        self, method: str, link: str, headers: Mapping[str, str], content: bytes | None, seconds: float, most_bytes: int
    ) -> Response:
        """The response of a service, whatever its status; redirects are not followed, so that a key goes nowhere else.

        Raises:
            FetchError: If there is none within the deadline or the size.
        """
        try:
            async with asyncio.timeout(seconds):
                return await self._exchange(method, URL(link), headers, content, most_bytes, None)
        except TimeoutError as error:
            raise FetchError(f"no complete response within {seconds:g} s") from error

    def _checked(self, link: str, base: URL | None = None) -> URL:
        """A link as an address, joined to the one that redirects to it."""
        try:
            url = URL(link[: _LONGEST_LINK + 1]) if base is None else base.join(link[: _LONGEST_LINK + 1])
        except (InvalidURL, ValueError) as error:  # of the encoding too
            raise FetchError("the link is malformed") from error
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
        return url

    def _pool(self, url: URL) -> httpcore2.AsyncConnectionPool:
        pool = self._proxies.get(url.scheme)
        return self._direct if pool is None or proxy_bypass(url.host) else pool

    async def _exchange(
        self,
        method: str,
        url: URL,
        headers: Mapping[str, str],
        content: bytes | None,
        most_bytes: int,
        kinds: Collection[str] | None,
    ) -> Response:
        """One request and its response; with `kinds` the body is read only with status 200 and such a type."""
        own = {"Host": url.netloc.decode(), "User-Agent": _USER_AGENT, "Accept-Encoding": "gzip"}
        target = httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
        try:
            async with self._pool(url).stream(
                method, target, headers=list({**own, **headers}.items()), content=content
            ) as response:
                found = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
                answer = Response(response.status, found, b"")
                if kinds is not None and answer.status != 200:
                    return answer
                if kinds is not None and answer.kind not in kinds:
                    raise FetchError(f"content type {answer.kind[:50] or 'not given'}")
                encoding = found.get("content-encoding", "identity").strip().lower()
                return Response(answer.status, found, await _body(response, encoding, most_bytes))
        except httpcore2.ConnectError as error:
            raise NoConnectionError(f"no connection: {error}") from error
        except (
            httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.TimeoutException, httpcore2.ProxyError, OSError,
        ) as error:  # fmt: skip
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
        parts = urlsplit(text if "://" in text else f"http://{text}")
        host, port, user = parts.hostname, parts.port, parts.username
    except ValueError:
        host = None
    if not host or not host.isascii() or parts.scheme not in ("http", "https"):
        raise UserError(
            f"the environment variable {scheme.upper()}_PROXY must be the address of an HTTP proxy, such as "
            "http://proxy.example:3128; correct it, or set environment_proxies to false."
        )
    auth = None if user is None else (unquote(user).encode(), unquote(parts.password or "").encode())
    return httpcore2.Proxy(httpcore2.URL(scheme=parts.scheme, host=host, port=port, target="/"), auth)


def _number(host: str) -> str:
    """The IPv4 address that a host means which is written as a number (127.1, 2130706433, 0x7f.1).

    Other hosts as they are.
    """
    try:
        return socket.inet_ntoa(socket.inet_aton(host.rstrip(".")))
    except (OSError, ValueError):
        return host


async def _body(response: httpcore2.Response, encoding: str, most_bytes: int) -> bytes:
    """The whole body, decompressed.  Nothing beyond the limit is decompressed."""
    if encoding not in ("identity", "gzip", "x-gzip"):
        raise FetchError(f"content encoding {encoding[:50]}, which was not asked for")
    inflate = None if encoding == "identity" else zlib.decompressobj(wbits=31)
    parts: list[bytes] = []
    received = size = 0
    async for sent in response.aiter_stream():
        received += len(sent)
        try:
            parts.append(sent if inflate is None else inflate.decompress(sent, most_bytes + 1 - size))
        except zlib.error as error:
            raise FetchError("a body that is no valid gzip") from error
        size += len(parts[-1])
        if max(received, size) > most_bytes:
            raise FetchError(f"more than {most_bytes:,} bytes")
    if inflate is not None and not inflate.eof and received:
        raise FetchError("a body that was cut off")
    return b"".join(parts)
