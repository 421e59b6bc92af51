"""Pages of untrusted web servers: fetched from public addresses, with limits on time, size and type."""

from collections.abc import Sequence
from contextlib import closing
from http.cookiejar import DefaultCookiePolicy
from time import monotonic

import httpx2

from common.version import VERSION
from harness.web.addresses import Network
from harness.web.transport import ENDS, FetchError, Transport

HTML = ("text/html", "application/xhtml+xml")
KINDS = (*HTML, "text/plain")
MAX_BYTES = 4 * 2**20  # of a page
MAX_REDIRECTS = 5


class PageClient:
    """Reads pages; several threads may.  No cookies, no credentials, no compression, whose bombs it need not fear.

    Args:
        seconds: Deadline of a page with its redirects: no server holds it up by sending a byte now and then.
        allowed: Networks that may be connected to although they are not public.
        environment_proxies: As in `Transport`.

    Raises:
        UserError: If a proxy of the environment is none of HTTP.
    """

    def __init__(self, seconds: float, allowed: Sequence[Network], environment_proxies: bool = False) -> None:
        headers = {"User-Agent": f"lightning-rag/{VERSION}", "Accept": ",".join(KINDS), "Accept-Encoding": "identity"}
        self.seconds = seconds
        self._client = httpx2.Client(transport=Transport(seconds, allowed, environment_proxies), headers=headers)
        self._client.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=[]))

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def fetch(self, link: str) -> httpx2.Response:
        """The page behind a link, with its content.

        Raises:
            FetchError: If the link is no address of the web, its host is not allowed, or a limit is reached.
        """
        try:
            request = self._client.build_request("GET", link, extensions={ENDS: monotonic() + self.seconds})
            for _ in range(MAX_REDIRECTS + 1):  # the client's own way to follow them reads their bodies, of any size
                with closing(self._client.send(request, stream=True)) as response:
                    if response.next_request is None:
                        return _page(response)
                    request = response.next_request
        except httpx2.TimeoutException as error:
            raise FetchError(f"no complete response within {self.seconds:g} s") from error
        except httpx2.TransportError as error:
            what = "no connection" if isinstance(error, httpx2.ConnectError) else "a broken connection"
            raise FetchError(f"{what}: {str(error) or type(error).__name__}") from error
        except (httpx2.InvalidURL, ValueError) as error:  # of the encoding too
            raise FetchError("the link is malformed") from error
        raise FetchError(f"more than {MAX_REDIRECTS} redirects")


def kind_of(page: httpx2.Response) -> str:
    """The media type, such as text/html, without its parameters."""
    return page.headers.get("content-type", "").partition(";")[0].strip().lower()


def _page(response: httpx2.Response) -> httpx2.Response:
    """The response with its content; raises FetchError if it is no page or too large."""
    if response.status_code != 200:
        raise FetchError(f"HTTP {response.status_code}")
    if kind_of(response) not in KINDS:
        raise FetchError(f"content type {kind_of(response)[:50] or 'not given'}")
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding != "identity":
        raise FetchError(f"content encoding {encoding[:50]}, which was not asked for")
    content = bytearray()
    for part in response.iter_raw():
        content += part
        if len(content) > MAX_BYTES:
            raise FetchError(f"more than {MAX_BYTES:,} bytes")
    return httpx2.Response(200, headers={"content-type": response.headers["content-type"]}, content=bytes(content))
