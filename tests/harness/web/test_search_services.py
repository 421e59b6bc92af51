"""What is sent to each search service, and what is read of its responses, however hostile."""

import json
from typing import Any

import pytest

from harness.web.search_services import BadResultsError, Result, SearchService

SEARXNG = SearchService("searxng", "http://localhost:8888/sub", None, {"language": "en", "safesearch": 1}, 3)
BRAVE = SearchService(
    "brave", "https://api.search.brave.com/res/v1", "BRAVE_API_KEY", {"country": "US", "spellcheck": False}, 5
)
TAVILY = SearchService("tavily", "https://api.tavily.com", "TAVILY_API_KEY", {"topic": "news"}, 5)
KEY = "tvly-0123456789abcdef"


def test_the_requests_of_each_service() -> None:
    method, link, headers, body = SEARXNG.request("who & what?", "")
    assert (method, link, body) == (
        "GET",
        "http://localhost:8888/sub/search?language=en&safesearch=1&q=who+%26+what%3F&format=json",
        None,
    )
    method, link, headers, body = BRAVE.request("größe", KEY)
    fields = "country=US&spellcheck=false&q=gr%C3%B6%C3%9Fe&count=5&text_decorations=false"
    assert (method, link, body) == ("GET", f"https://api.search.brave.com/res/v1/web/search?{fields}", None)
    assert headers["X-Subscription-Token"] == KEY
    method, link, headers, body = TAVILY.request("a", KEY)
    assert (method, link) == ("POST", "https://api.tavily.com/search")
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert json.loads(body or b"") == {"topic": "news", "query": "a", "max_results": 5}
    assert KEY not in link + str(body)


def test_a_query_that_the_services_would_refuse_is_cut() -> None:
    for service, words in ((BRAVE, 50), (TAVILY, 80), (SEARXNG, 100)):
        _, link, _, body = service.request("word " * 100 + "\ud800", KEY)
        assert (link + str(body)).count("word") == words
    for service in (BRAVE, TAVILY):
        _, link, _, body = service.request("x" * 1000, KEY)
        assert (link + str(body)).count("x") in (400, 401)  # of "max" too


def test_the_results_of_each_service() -> None:
    listed = [
        {"title": "A &amp; B", "url": "https://a.test/?x=1&copy=2#part", "content": "s", "description": "d &lt;b&gt;"}
    ]
    link = "https://a.test/?x=1&copy=2"
    assert SEARXNG.results(json.dumps({"results": listed}).encode()) == [Result("A & B", link, "s")]
    assert TAVILY.results(json.dumps({"results": listed}).encode()) == [Result("A & B", link, "s")]
    assert BRAVE.results(json.dumps({"web": {"results": listed}}).encode()) == [Result("A & B", link, "d <b>")]
    assert BRAVE.results(b'{"query": {}}') == []  # nothing was found
    assert SEARXNG.results(b'{"results": [], "unresponsive_engines": []}') == []


def test_only_the_first_results_each_link_once() -> None:
    listed: list[Any] = [{"url": "http://u/", "title": "first"}, {"url": "http://u/#x", "title": "again"}]
    listed += [{"url": f"https://{n}.test/"} for n in range(100_000)]
    found = SEARXNG.results(json.dumps({"results": listed}).encode())
    assert [each.link for each in found] == ["http://u/", "https://0.test/", "https://1.test/"]
    assert found[0].title == "first"


@pytest.mark.parametrize(
    "each",
    [
        None,
        3,
        "x",
        [],
        {},
        {"url": None},
        {"url": 3},
        {"url": ["a"]},
        {"url": ""},
        {"url": "http://" + "x" * 5000},
        {"url": "x"},
        {"url": "javascript:alert(1)"},
        {"url": "ftp://a/"},
        {"link": "a"},
    ],
)
def test_a_result_of_another_form_is_left_out(each: object) -> None:
    good = {"url": "https://a.test/", "title": 3, "content": {"a": 1}}
    assert SEARXNG.results(json.dumps({"results": [each, good]}).encode()) == [Result("", "https://a.test/", "")]


def test_texts_are_bounded_and_can_be_encoded() -> None:
    text = json.dumps(
        {"results": [{"url": "http://u/\ud800", "title": "t" * 10**6, "content": "\ud800" * 10**5}]}
    ).encode()
    (found,) = SEARXNG.results(text)
    assert (len(found.title), len(found.snippet)) == (300, 5000)
    assert all(each.encode() for each in (found.title, found.link, found.snippet))


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (b"", "no valid JSON"),
        (b"<html>", "no valid JSON"),
        (b'{"results": [', "no valid JSON"),
        (b"[" * 200_000, "no valid JSON"),
        (b"9" * 10_000, "no valid JSON"),
        (b"\xff\xfe{", "no valid JSON"),
        (b"[]", "no JSON object"),
        (b"{}", "without a list of results"),
        (b'{"results": {}}', "without a list of results"),
        (b'{"results": null}', "without a list of results"),
        (
            b'{"results": [], "unresponsive_engines": [["google", "timeout"]]}',
            'none of its engines answered: .*"timeout"',
        ),
    ],
)
def test_responses_without_results_say_why(text: bytes, part: str) -> None:
    with pytest.raises(BadResultsError, match=part):
        SEARXNG.results(text)


@pytest.mark.parametrize(
    "text", [b'{"web": []}', b'{"web": null}', b'{"web": {"results": 3}}', b'{"web": {"results": {}}}']
)
def test_brave_s_nested_results_too(text: bytes) -> None:
    with pytest.raises(BadResultsError, match="without a list of results"):
        BRAVE.results(text)


@pytest.mark.parametrize(
    ("service", "status", "body", "part"),
    [
        (SEARXNG, 403, b"", "add json to search.formats"),
        (SEARXNG, 404, b"", "check base_url (http://localhost:8888/sub)"),
        (SEARXNG, 301, b"", "check base_url"),
        (BRAVE, 401, b"", "export a valid key as BRAVE_API_KEY"),
        (BRAVE, 422, b'{"error": {"code": "SUBSCRIPTION_TOKEN_INVALID"}}', "export a valid key as BRAVE_API_KEY"),
        (TAVILY, 401, b"", "export a valid key as TAVILY_API_KEY"),
        (TAVILY, 432, b"", "used up"),
        (TAVILY, 433, b"", "used up"),
        (BRAVE, 402, b"", "used up"),
    ],
)
def test_what_to_do_where_no_search_can_succeed(service: SearchService, status: int, body: bytes, part: str) -> None:
    assert part in service.cure(status, body)


@pytest.mark.parametrize(
    ("service", "status"), [(BRAVE, 422), (BRAVE, 429), (SEARXNG, 400), (SEARXNG, 500), (SEARXNG, 432), (TAVILY, 400)]
)
def test_another_search_may_succeed_after_other_statuses(service: SearchService, status: int) -> None:
    assert service.cure(status, b'{"error": {"code": "VALIDATION"}}') == ""
