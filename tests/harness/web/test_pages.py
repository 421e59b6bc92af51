"""Pages from real servers that attack it: each attack is refused, and quickly."""

import time
from contextlib import closing, nullcontext
from pathlib import Path
from unittest import mock

import httpcore2
import pytest

from common.errors import UserError
from harness.web import pages, transport
from harness.web.addresses import parse_networks
from harness.web.pages import PageClient, kind_of
from harness.web.transport import FetchError
from tests.helpers import fake_server as fake
from tests.helpers.fake_server import answer, redirect, web_server

SITE = "127.0.0.2"  # the address that is allowed; 127.0.0.1 is not
CERTIFICATE = Path("tests/fixtures/web/pages_test.pem")  # self-signed, of pages.test


@pytest.fixture(autouse=True)
def _limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MAX_BYTES", 100_000)
    monkeypatch.setattr(pages, "MAX_REDIRECTS", 3)
    for name in ("http_proxy", "no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


def fetch(link, seconds=5.0, allowed=(f"{SITE}/32",), resolver=None, proxies=False):
    """A page by a new client; `resolver` gives the addresses of a host and a port."""
    resolve = mock.patch.object(transport, "resolve", resolver) if resolver else nullcontext()
    with resolve, closing(PageClient(seconds, parse_networks(allowed), proxies)) as client:
        return client.fetch(link)


def site(host: str, port: int) -> list[str]:
    return [SITE]


def test_a_page_comes_whole_and_no_compression_is_asked_for() -> None:
    text = b"<p>\xc3\xa9t\xc3\xa9</p>" * 1000
    with web_server({"/": answer(text)}, SITE) as server:
        found = fetch(server.url)
    assert (kind_of(found), found.charset_encoding, found.content) == ("text/html", "utf-8", text)
    headers = {name.lower(): value for name, value in server.asked[0].headers.items()}
    assert (headers["host"], headers["accept-encoding"]) == (server.url.removeprefix("http://"), "identity")


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "2130706433", "0x7f.1", "127.1",
        "0177.0.0.1", "0", "[64:ff9b::7f00:1]", "127.0.0.1.", "LOCALHOST", "10.0.0.1", "169.254.169.254", "[fe80::1]",
        "[fd00::1]", "224.0.0.1", "192.168.0.1"],
)  # fmt: skip
def test_no_way_of_writing_a_private_address_reaches_it_nor_a_redirect_to_it(host: str) -> None:
    began = time.monotonic()
    with web_server({"/": answer(b"secret")}) as secret:
        link = f"http://{host}:{secret.server_port}/"
        with web_server({"/": redirect(link)}, SITE) as server:
            for each in (link, server.url):
                with pytest.raises(FetchError, match=r"not public|malformed|HTTP 302"):
                    fetch(each)
    assert server.counts == {"/": 1}
    assert not secret.asked
    assert time.monotonic() - began < 2


def test_a_name_that_resolves_to_another_address_later_reaches_only_the_first() -> None:
    """DNS rebinding: the checked address is the one that is connected to; a further resolution is checked again."""
    answers = [[SITE], ["127.0.0.1"]]

    def rebinding(host: str, port: int) -> list[str]:
        assert host == "pages.test"
        return answers.pop(0)

    with web_server({"/": answer(b"ok"), "/again": redirect("/"), "/secret": answer(b"ok")}, SITE) as server:
        link = f"http://pages.test:{server.server_port}"
        with web_server({"/": answer(b"secret")}, "127.0.0.1", server.server_port) as secret:
            assert fetch(link, resolver=rebinding).content == b"ok"
            assert answers == [["127.0.0.1"]]  # resolved once
            answers.insert(0, [SITE])
            with pytest.raises(FetchError, match=r"pages\.test is at 127\.0\.0\.1, which is not public"):
                fetch(f"{link}/again", resolver=rebinding)
    assert server.counts == {"/": 1, "/again": 1}
    assert server.asked[0].headers["Host"] == f"pages.test:{server.server_port}"
    assert not secret.asked


def test_of_several_addresses_only_those_that_are_allowed_are_tried() -> None:
    several = ["127.0.0.1", "10.0.0.1", "127.0.0.3", SITE]  # nothing listens at the third, which is allowed
    with web_server({"/": answer(b"ok")}, SITE) as server:
        link = f"http://pages.test:{server.server_port}/"
        with web_server({"/": answer(b"secret")}, "127.0.0.1", server.server_port) as secret:
            assert fetch(link, allowed=("127.0.0.2/31",), resolver=lambda host, port: several).content == b"ok"
    assert not secret.asked


def test_tls_is_checked_against_the_name_although_a_number_is_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    monkeypatch.setattr(transport, "ssl_context", httpcore2.default_ssl_context)  # not the one that was made before
    with web_server({"/": answer(b"ok")}, SITE, certificate=CERTIFICATE) as server:
        assert fetch(f"https://pages.test:{server.server_port}/", resolver=site).content == b"ok"
        with pytest.raises(FetchError, match=r"no connection: .*(certificate|match|valid)"):
            fetch(f"https://other.test:{server.server_port}/", resolver=site)
    assert [asked.headers["Host"] for asked in server.asked] == [f"pages.test:{server.server_port}"]


NOT_ALLOWED = {
    "content encoding gzip, which was not asked for": [fake.bomb(50)],
    "more than 100,000 bytes": [fake.endless],
    "no complete response within 1 s": [fake.drip, fake.drip_headers],
    "a broken connection": [fake.huge_header, fake.no_response, fake.cut_off],
    "content encoding br": [answer(b"x", Content_Encoding="br")],
    "content type application/pdf": [answer(b"%PDF", kind="application/pdf")],
    "content type not given": [answer(b"x", kind="")],
    "HTTP 404": [answer(b"x", 404)],
    "HTTP 500": [answer(b"x", 500)],
    "HTTP 302": [answer(b"x", 302), redirect("http://a\x01b/")],
    "more than 3 redirects": [redirect("/")],
    "no address of the web": [redirect("file:///etc/passwd"), redirect("ftp://127.0.0.2/")],
    "user or password": [redirect("http://me:secret@127.0.0.2/")],
    "malformed": [redirect("http://127.0.0.2:99999/")],
    "too long": [redirect("/" + "a" * 5000)],
}


@pytest.mark.parametrize(("part", "route"), [(part, route) for part, every in NOT_ALLOWED.items() for route in every])
def test_what_a_server_may_not_do(route: object, part: str) -> None:
    began = time.monotonic()
    with web_server({"/": route}, SITE) as server, pytest.raises(FetchError, match=part):  # type: ignore[dict-item]
        fetch(server.url, seconds=1.0 if "within" in part else 5.0)
    assert time.monotonic() - began < 3


@pytest.mark.parametrize("link", ["", "x", "//127.0.0.2/", "http://", "javascript:alert(1)", "http://a\x00b/",
                                  "http://[::1", "http://h/\ud800", "http://h:99999999/", "http://me@127.0.0.2/",
                                  "file:///etc/passwd", "http://no-such-host.invalid/", "http://" + "a" * 70 + ".test/",
                                  "http://a..b/", f"http://{SITE}:99999/", f"http://{SITE}:-5/"])  # fmt: skip
def test_links_that_are_none(link: str) -> None:
    with pytest.raises(FetchError):
        fetch(link)


def test_cookies_are_not_sent_back() -> None:
    routes = {"/": redirect("/next", Set_Cookie="a=b; Path=/"), "/next": answer(b"ok", Set_Cookie="c=d; Path=/")}
    with web_server(routes, SITE) as server:
        assert [fetch(server.url).content for _ in range(2)] == [b"ok", b"ok"]
    assert len(server.asked) == 4
    assert not [asked for asked in server.asked if "cookie" in str(asked.headers).lower()]


def test_proxies_of_the_environment_are_used_only_when_they_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    with web_server({"/a": answer(b"direct")}, SITE) as server, web_server({"/a": answer(b"by proxy")}) as proxy:
        page = f"http://pages.test:{server.server_port}/a"
        for name in ("HTTP_PROXY", "http_proxy"):
            monkeypatch.setenv(name, proxy.url)
        assert fetch(page, resolver=site).content == b"direct"
        assert not proxy.asked
        assert fetch(page, resolver=site, proxies=True).content == b"by proxy"
        for number in ("10.0.0.1", "167772161", "10.1", "0xa.1", "10.0.0.1.", "[::ffff:10.0.0.1]"):  # checked here
            with pytest.raises(FetchError, match="not public"):
                fetch(f"http://{number}/", resolver=site, proxies=True)
        with pytest.raises(FetchError, match="malformed"):
            fetch("https://.pages.test/", proxies=True)
        assert len(proxy.asked) == 1
        monkeypatch.setenv("no_proxy", "pages.test")
        assert fetch(page, resolver=site, proxies=True).content == b"direct"
        with pytest.raises(FetchError, match="not public"):  # and so is what no proxy connects to
            fetch(f"http://pages.test:{proxy.server_port}/a", allowed=(), resolver=site, proxies=True)


@pytest.mark.parametrize(
    "proxy", ["socks5://127.0.0.1:9", "ftp://127.0.0.1:9", "http://", "http://127.0.0.1:99999", "http://u:secret@:3128"]
)
def test_a_proxy_that_cannot_be_used_is_one_line_without_its_password(proxy: str, monkeypatch) -> None:
    monkeypatch.setenv("https_proxy", proxy)
    with pytest.raises(UserError, match="variable HTTPS_PROXY must be the address of an HTTP proxy") as refusal:
        fetch("http://pages.test/", proxies=True)
    assert "secret" not in str(refusal.value)


def test_a_proxy_gets_its_user_and_password_and_needs_no_scheme(monkeypatch: pytest.MonkeyPatch) -> None:
    with web_server({"/a": answer(b"by proxy")}) as server:
        for address in (server.url.replace("//", "//me:a%40b@"), f"127.0.0.1:{server.server_port}"):
            monkeypatch.setenv("http_proxy", address)
            assert fetch("http://pages.test/a", proxies=True).content == b"by proxy"
    sent = [asked.headers.get("Proxy-Authorization") for asked in server.asked]
    assert sent == ["Basic bWU6YUBi", None]  # me:a@b
