"""Web search against real servers: a search service in three shapes and pages, which fail in the ways of the web."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from common.errors import SearchFailedError, UnavailableError
from common.records import Ranked
from harness.interfaces import Retriever
from harness.retrievers.web import WebRetriever
from tests.helpers.fake_server import Searches, answer, bomb, cut_off, drip, files_with, no_response, page, web_server

SITE = "127.0.0.2"
KEY = "tvly-0123456789abcdef-key"
ALBA = ["The Alba is a river of the north. It ends in the sea near the town of Elm."] + [
    f"Paragraph {n} is about bridges, boats, fish and the weather of the valley in that year." for n in range(30)
]
BRUNE = ["The Brune is a river of the south. It ends in a lake, and it is short.", "Its mayor is called Ada."]
PAGES = {"/alba": page("Alba", *ALBA), "/brune": page("Brune", *BRUNE)}
JSON = "application/json"
PATHS = {"searxng": "/search", "brave": "/web/search", "tavily": "/search"}


@contextmanager
def world(cache: Path, found: dict[str, list[str]], routes=PAGES, shape="searxng", **faults: list) -> Iterator:
    """Run a search service at 127.0.0.1 and pages at 127.0.0.2, with a function that makes retrievers of them.

    Args:
        cache: Folder.
        found: By query, paths or whole links of the results; their snippets are `snippet of` the link.
        routes: The pages.
        shape: Of the search service.
        faults: By query, with `_` for a space, or `every` for all; routes before the answers.
    """
    with web_server(routes, SITE) as pages:
        results = {}
        for query, paths in found.items():
            whole = [link if "://" in link else pages.url + link for link in paths]
            results[query] = [(link.rpartition("/")[2].title(), link, f"snippet of {link}") for link in whole]
        planned = {"*" if name == "every" else name.replace("_", " "): routes for name, routes in faults.items()}
        searches = Searches(results, shape, faults=planned)
        with web_server({PATHS[shape]: searches}) as service:
            key = None if shape == "searxng" else "TEST_WEB_KEY"
            given = {"service": shape, "base_url": service.url, "key_variable": key, "cache": cache,
                     "timeout_seconds": 5.0, "max_retries": 2, "allow_networks": (f"{SITE}/32",)}  # fmt: skip
            made = lambda **options: WebRetriever(**{**given, **options})  # noqa: E731
            yield SimpleNamespace(service=service, pages=pages, searches=searches, retriever=made)


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_WEB_KEY", KEY)


def links(hits: list[Ranked]) -> list[str]:
    return [str((hit.passage.metadata or {})["link"]).rpartition("/")[2] for hit in hits]


@pytest.mark.parametrize("shape", PATHS)
def test_the_best_pieces_of_the_pages_with_link_and_time(shape: str, tmp_path: Path) -> None:
    with world(tmp_path, {"where does the Brune end?": ["/alba", "/brune"]}, shape=shape) as there:
        retriever = there.retriever(passage_words=30)
        assert isinstance(retriever, Retriever)
        (hits, none) = retriever.search(["where does the  Brune end?", " "], 4)
    assert none == []
    assert len(hits) == 4
    best = hits[0].passage
    assert "ends in a lake" in best.text
    assert (best.title, best.source, links(hits)[0]) == ("Brune", "web", "brune")
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert all(len(hit.passage.text.split()) <= 30 for hit in hits)
    when = datetime.fromisoformat(str((best.metadata or {})["retrieved"]))
    assert abs((datetime.now(UTC) - when).total_seconds()) < 60
    asked = {name.lower(): value for name, value in there.service.asked[0].headers.items()}
    sent = {name: asked[name] for name in ("x-subscription-token", "authorization") if name in asked}
    keys = {"searxng": {}, "brave": {"x-subscription-token": KEY}, "tavily": {"authorization": f"Bearer {KEY}"}}
    assert sent == keys[shape]
    assert not files_with(KEY, tmp_path)


def test_nothing_is_requested_twice_while_it_is_young(tmp_path: Path) -> None:
    with world(tmp_path, {"alba": ["/alba", "/brune"], "brune": ["/brune"]}) as there:
        first = there.retriever().search(["alba", "brune", "alba"], 3)
        assert first[0] == first[2]
        assert (there.service.counts["/search"], there.pages.counts) == (2, {"/alba": 1, "/brune": 1})
        again = there.retriever()
        assert again.search(["brune", "alba"], 3) == first[1::-1]
        assert [h.passage.metadata for h in again.search(["alba"], 3)[0]] == [h.passage.metadata for h in first[0]]
        assert len(there.service.asked) + len(there.pages.asked) == 4
        assert "0 searches (0 retries), 0 failed; 0 pages, 0 lost; 0 B; 7 searches and pages" in again.facts[1]
        there.retriever(max_age_days=1e-9).search(["brune"], 3)
        assert len(there.service.asked) + len(there.pages.asked) == 6
        there.retriever(cache=None).search(["brune"], 3)
        assert len(there.service.asked) + len(there.pages.asked) == 8


def test_a_lost_page_is_replaced_by_its_snippet_and_counted(tmp_path: Path) -> None:
    lost = {"/404": answer(b"", 404), "/500": answer(b"x", 500), "/pdf": answer(b"%PDF", kind="application/pdf"),
            "/cut": cut_off, "/bomb": bomb(50), "/drip": drip, "/loop": answer(b"", 302, Location="/loop"),
            "/empty": answer(b"<html></html>"), "/gone": no_response}  # fmt: skip
    secret = "http://127.0.0.1:1/secret"
    found = {"alba river": [*lost, secret, "/alba", "http://no-such-host.invalid/x", "http://[::1/bad link"]}
    with world(tmp_path, found, {**PAGES, **lost}) as there:
        retriever = there.retriever(results=20, timeout_seconds=1.5)
        (hits,) = retriever.search(["alba river"], 50)
        assert len(retriever.lost_pages) == 12
        before = len(there.pages.asked)
        retriever.search(["alba river"], 50)
        assert len(there.pages.asked) == before  # this object does not try them again
    snippets = [hit for hit in hits if (hit.passage.metadata or {}).get("snippet")]
    names = {hit.passage.text.rpartition("/")[2] for hit in snippets}
    assert names == {*(path[1:] for path in lost), "secret", "x", "bad link"}
    assert [hit for hit in hits if "ends in the sea" in hit.passage.text]
    assert "127.0.0.1 is not public and not in allow_networks" in retriever.lost_pages[secret]
    assert "12 lost" in retriever.facts[1]


def test_snippets_need_no_page_and_are_in_the_service_s_order_where_no_word_is_in_them(tmp_path: Path) -> None:
    with world(tmp_path, {"ποταμός": ["/alba", "/brune"]}) as there:
        (hits,) = there.retriever(read_pages=False).search(["ποταμός"], 2)
        assert not there.pages.asked
    assert links(hits) == [hit.passage.text.rpartition("/")[2] for hit in hits] == ["alba", "brune"]
    assert [hit.score for hit in hits] == [0.0, 0.0]


PASSING = {
    "429": answer(b"{}", 429, JSON, Retry_After="0.05"),
    "500": answer(b"no json", 500),
    "503": answer(b"", 503),
    "cut": cut_off,
    "no_response": no_response,
    "no_JSON": answer(b"<html>", kind="text/html"),
    "no_results": answer(b'{"results": 3}', kind=JSON),
    "engines": answer(b'{"results": [], "unresponsive_engines": [["google", "timeout"]]}', kind=JSON),
}


def test_a_search_is_repeated_after_what_may_pass(tmp_path: Path) -> None:
    queries, faults = [name.replace("_", " ") for name in PASSING], {name: [each] for name, each in PASSING.items()}
    with world(tmp_path, {query: ["/alba"] for query in queries}, **faults) as there:
        retriever = there.retriever(read_pages=False)
        assert [links(hits) for hits in retriever.search(queries, 1)] == [["alba"]] * len(PASSING)
    assert (retriever.totals["retries"], retriever.failures) == (len(PASSING), {})


def test_a_failed_search_loses_no_other_and_is_recorded_and_not_stored(tmp_path: Path) -> None:
    broken, refused = answer(b'{"error": "it broke"}', kind=JSON), answer(b'{"detail": "bad query"}', 400, JSON)
    found = {"alba": ["/alba"], "brune": ["/brune"], "odd one": ["/alba"]}
    with world(tmp_path, found, brune=[broken, broken], odd_one=[refused, refused]) as there:
        retriever = there.retriever(max_retries=1, read_pages=False)
        hits = retriever.search(["alba", "brune", "odd one"], 1)
        assert [links(each) for each in hits] == [["alba"], [], []]
        why = {"brune": "a response without a list of results (retries: 1)", "odd one": "HTTP 400: bad query"}
        assert retriever.failures == why
        assert "3 searches (1 retries), 2 failed" in retriever.facts[1]
        there.searches.faults = {}
        hits = there.retriever(read_pages=False).search(["alba", "brune", "odd one"], 1)
        assert [links(each) for each in hits] == [["alba"], ["brune"], ["alba"]]
        assert there.searches.answered == {"alba": 1, "brune": 1, "odd one": 1}
        retriever.search(["brune", "odd one"], 1)
        assert retriever.failures == {}


def test_a_service_without_any_answer_is_unavailable(tmp_path: Path) -> None:
    with world(tmp_path, {"alba": ["/alba"]}, every=[answer(b"<html>")] * 2, brune=[answer(b"", 500)]) as there:
        retriever = there.retriever(max_retries=0, read_pages=False, concurrency=1)
        with pytest.raises(SearchFailedError, match=r"searxng at 127\.0\.0\.1:\d+: all searches failed: .*no valid"):
            retriever.search(["alba"], 1)
        with pytest.raises(UnavailableError, match=r"HTTP 500\. Results so far are kept in .* run the same command"):
            retriever.search(["alba", "brune"], 1)
    began = time.monotonic()
    with pytest.raises(UnavailableError, match=r"cannot be reached .*: start the server, or correct base_url"):
        there.retriever(max_retries=0).search(["alba"], 1)
    assert time.monotonic() - began < 20


def test_searches_and_pages_are_bounded_in_number(tmp_path: Path) -> None:
    def slow(handler: Any, asked: Any) -> None:
        time.sleep(0.05)
        page("Alba", *BRUNE)(handler, asked)

    paths = {f"/{n}": slow for n in range(12)}
    with world(tmp_path, {"alba": [*paths]}, paths) as there:
        retriever = there.retriever(results=12, concurrency=3)
        retriever.search(["alba"], 1)
        assert (retriever.totals["pages"], len(retriever.lost_pages)) == (12, 0)
        assert 1 < there.pages.most <= 3


def test_what_is_stored_is_of_its_parameters_and_its_allowed_networks_alone(tmp_path: Path) -> None:
    with world(tmp_path, {"alba": ["/alba"]}) as there:
        for parameters in ({"language": "en"}, {"language": "de"}, {"language": "en"}):
            there.retriever(parameters=parameters, read_pages=False).search(["alba"], 1)
        assert [asked.fields["language"] for asked in there.service.asked] == [["en"], ["de"]]
        assert "ends in the sea" in there.retriever().search(["alba"], 1)[0][0].passage.text
        other = there.retriever(allow_networks=())
        (hits,) = other.search(["alba"], 1)
    assert hits[0].passage.text.startswith("snippet of")
    assert "not public" in other.lost_pages[f"{there.pages.url}/alba"]
