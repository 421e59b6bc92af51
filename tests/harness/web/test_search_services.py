"""What is sent to each search service, and what is read of its responses, however hostile."""

import json
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from common.errors import RefusedError
from harness.web.search_services import SearchResult, SearchService, brave, searxng, tavily
from harness.web.service_failures import BrokenReplyError, ServiceError
from tests.helpers.fake_server import answer, web_server

SEARXNG = SearchService("searxng", "http://localhost:8888/sub", None, {"language": "en", "safesearch": 1}, 3)
BRAVE_API, BRAVE_OPTIONS = "https://api.search.brave.com/res/v1", {"country": "US", "spellcheck": False}
BRAVE = SearchService("brave", BRAVE_API, "BRAVE_API_KEY", BRAVE_OPTIONS, 5)
TAVILY = SearchService("tavily", "https://api.tavily.com", "TAVILY_API_KEY", {"topic": "news"}, 5)
KEY = "tvly-0123456789abcdef"


def search(name: str, body: bytes, query: str = "who & what?") -> Any:
    """The results that a response holds, and the request for it."""
    asked: list[httpx2.Request] = []
    transport = httpx2.MockTransport(lambda request: asked.append(request) or httpx2.Response(200, content=body))
    with httpx2.Client(transport=transport) as client:
        one, service = SEARCHES[name]
        return one(client, service, KEY, query), asked[0]


SEARCHES = {"searxng": (searxng, SEARXNG), "brave": (brave, BRAVE), "tavily": (tavily, TAVILY)}


def results(name: str, body: Any) -> list[SearchResult]:
    """What a response holds."""
    return search(name, body if isinstance(body, bytes) else json.dumps(body).encode())[0]


@pytest.mark.parametrize(
    ("name", "link", "body", "header"),
    [
        ("searxng", "http://localhost:8888/sub/search?language=en&safesearch=1&q=who+%26+what%3F&format=json", None,
            ("authorization", None)),
        ("brave", "https://api.search.brave.com/res/v1/web/search?country=US&spellcheck=false&q=who+%26+what%3F&count=5"
            "&text_decorations=false", None, ("x-subscription-token", KEY)),
        ("tavily", "https://api.tavily.com/search", {"topic": "news", "query": "who & what?", "max_results": 5},
            ("authorization", f"Bearer {KEY}")),
    ],
)  # fmt: skip
def test_the_requests_of_each_service(name: str, link: str, body: Any, header: tuple[str, str | None]) -> None:
    _, asked = search(name, b'{"results": []}')
    assert (str(asked.url), asked.headers.get(header[0])) == (link, header[1])
    assert (json.loads(asked.content) if asked.content else None) == body


def test_a_query_that_the_services_would_refuse_is_cut() -> None:
    for name, words, letters in (("brave", 50, 400), ("tavily", 80, 400), ("searxng", 100, 1000)):
        for query, part, count in (("word " * 100, "word", words), ("z" * 2000, "z", letters)):
            _, asked = search(name, b'{"results": []}', query)
            assert (str(asked.url) + asked.content.decode()).count(part) == count


def test_the_first_results_of_each_service_each_link_once() -> None:
    link, url = "https://a.test/?x=1&copy=2", "https://a.test/?x=1&copy=2#part"
    listed = [{"title": "A &amp; B", "url": url, "content": "s", "description": "d &lt;b&gt;"}]
    assert results("searxng", {"results": listed}) == [SearchResult("A & B", link, "s")]
    assert results("tavily", {"results": listed}) == [SearchResult("A & B", link, "s")]
    assert results("brave", {"web": {"results": listed}}) == [SearchResult("A & B", link, "d <b>")]
    assert results("brave", {"query": {}}) == []  # nothing was found
    assert results("searxng", {"results": [], "unresponsive_engines": []}) == []
    several: list[Any] = [{"url": "http://u/", "title": "first"}, {"url": "http://u/#x", "title": "again"}]
    found = results("searxng", {"results": several + [{"url": f"https://{n}.test/"} for n in range(100_000)]})
    assert [each.link for each in found] == ["http://u/", "https://0.test/", "https://1.test/"]
    assert found[0].title == "first"


@pytest.mark.parametrize(
    "each",
    [
        None, 3, "x", [], {}, {"link": "a"},
        *({"url": url} for url in (None, 3, ["a"], "", "http://" + "x" * 5000, "x", "javascript:alert(1)", "ftp://a/")),
    ],
)  # fmt: skip
def test_a_result_of_another_form_is_left_out(each: object) -> None:
    good = {"url": "https://a.test/", "title": 3, "content": {"a": 1}}
    assert results("searxng", {"results": [each, good]}) == [SearchResult("", "https://a.test/", "")]


def test_texts_are_bounded_and_can_be_encoded() -> None:
    long = {"url": "http://u/\ud800", "title": "t" * 10**6, "content": "\ud800" * 10**5}
    (found,) = results("searxng", {"results": [long]})
    assert (len(found.title), len(found.snippet)) == (300, 5000)
    assert all(each.encode() for each in (found.title, found.link, found.snippet))


@pytest.mark.parametrize(
    ("name", "text", "part"),
    [
        *(("searxng", text, "no valid JSON")
          for text in (b"", b"<html>", b'{"results": [', b"[" * 200_000, b"9" * 10_000, b"\xff\xfe{")),
        ("searxng", b"[]", "no JSON object"),
        *(("searxng", text, "without a list of results")
          for text in (b"{}", b'{"results": {}}', b'{"results": null}')),
        ("searxng", b'{"results": [], "unresponsive_engines": [["google", "timeout"]]}',
            'none of its engines answered: .*"timeout"'),
        *(("brave", text, "without a list of results") for text in (
            b'{"web": []}', b'{"web": null}', b'{"web": {"results": 3}}', b'{"web": {"results": {}}}')),
    ],
)  # fmt: skip
def test_responses_without_results_say_why(name: str, text: bytes, part: str) -> None:
    with pytest.raises(BrokenReplyError, match=part):
        results(name, text)


@pytest.mark.parametrize(
    ("service", "status", "code", "part"),
    [
        (SEARXNG, 403, "", "add json to search.formats"), (SEARXNG, 404, "", "check base_url (http://"),
        (SEARXNG, 302, "", "check base_url"), (BRAVE, 401, "", "export a valid key as BRAVE_API_KEY"),
        (BRAVE, 422, "SUBSCRIPTION_TOKEN_INVALID", "export a valid key as BRAVE_API_KEY"),
        (TAVILY, 401, "", "export a valid key as TAVILY_API_KEY"), (TAVILY, 403, "", "export a valid key"),
        *((service, status, "", "used up") for service, status in ((TAVILY, 432), (TAVILY, 433), (BRAVE, 402))),
        *((service, status, "VALIDATION", "") for service, status in (  # another search may succeed
            (BRAVE, 422), (SEARXNG, 400), (SEARXNG, 432), (TAVILY, 400))),
    ],
)  # fmt: skip
def test_what_to_do_where_no_search_can_succeed(service, status: int, code: str, part: str, monkeypatch) -> None:
    if service.key_variable:
        monkeypatch.setenv(service.key_variable, KEY)
    path = "/web/search" if service is BRAVE else "/search"
    body = json.dumps({"error": {"code": code, "detail": f"bad {KEY}"}}).encode()
    with web_server({path: answer(body, status)}) as server, pytest.raises((RefusedError, ServiceError)) as raised:
        replace(service, base_url=server.url, max_retries=0).search("x")
    assert len(server.asked) == 1
    assert KEY not in str(raised.value)
    assert isinstance(raised.value, RefusedError) == bool(part)
    assert all(each in str(raised.value) for each in (f"HTTP {status}", part))
