"""Web search as a retriever.

A search service finds links, pages are read, and their best pieces by BM25 are the passages.

query -> search service -> links -> pages -> texts -> pieces -> BM25 among the pieces -> k passages
"""

import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing, nullcontext
from dataclasses import astuple
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

from common.context_sources import WEB
from common.errors import SearchFailedError, UserError
from common.killable import Killable
from common.packages import require
from common.progress import in_bytes, track
from common.ranges import NonNegativeInt, PositiveFloat, PositiveInt
from common.records import Passage, Ranked, as_texts, clean
from common.threads import as_completed
from harness.retrievers.bm25 import rank_by_bm25
from harness.runtime.store import Store
from harness.web.addresses import parse_networks
from harness.web.extraction import extracted, extractor
from harness.web.pages import PageClient
from harness.web.pieces import pieces
from harness.web.search_services import ADDRESSES, MAX_RESULTS, SearchResult, SearchService, ServiceName, check_service
from harness.web.service_failures import ServiceError
from harness.web.transport import FetchError

FILE = "web.sqlite"
_LOST = "its searches and pages will be requested again"
_FORMAT = 1  # of what is stored; increase it when its meaning changes

Found = tuple[list[SearchResult], float]  # results of a search and their time, seconds since 1970


class WebRetriever:
    """Searches the web and reads the pages that it finds.

    Passages have the source `web`, and in `metadata` the `link`, the time at which it was `retrieved` (UTC), and
    `snippet` if the text is the search service's. A page that cannot be read is replaced by that snippet. `totals` and
    `lost_pages` count what happened; `failures` has, by query, why the last search with it failed.

    Args:
        service: searxng (your own), brave or tavily.
        base_url: Address of the service; SearXNG needs one, such as http://localhost:8888.
        key_variable: Name of the environment variable that holds the key of Brave or Tavily; BRAVE_API_KEY or
            TAVILY_API_KEY when omitted. The key itself is no option, so that it is never written to a file.
        parameters: Further fields of each search, such as {"language": "en"}.
        results: Results of each search that are used, the first ones; at most 20.
        read_pages: Whether their pages are read; else the passages are the snippets.
        passage_words: Words of a passage, at most.
        timeout_seconds: Deadline of each attempt to search, and of each page with its redirects.
        max_retries: Further attempts to search after 408, 409, 425, 429, 5xx, no connection, no response in time or a
            malformed one.
        concurrency: Searches, and then pages, at the same time.
        cache: Folder of the cache of searches and pages; None stores nothing.
        max_age_days: What is older is requested again; None never.
        allow_networks: Networks in CIDR notation from which pages are read although they are not public.
        environment_proxies: Whether the proxies of the environment are used. A proxy resolves names itself, so that it,
            and not this program, must keep pages from private addresses.

    Raises:
        UserError: If an option is missing or holds a secret, the key is missing, or trafilatura is not
            installed.
    """

    def __init__(
        self,
        service: ServiceName,
        base_url: str | None = None,
        key_variable: str | None = None,
        parameters: dict[str, Any] | None = None,
        results: PositiveInt = 5,
        read_pages: bool = True,
        passage_words: PositiveInt = 100,
        timeout_seconds: PositiveFloat = 15.0,
        max_retries: NonNegativeInt = 4,
        concurrency: PositiveInt = 8,
        cache: Path | None = Path("cache/web"),
        max_age_days: PositiveFloat | None = 7.0,
        allow_networks: tuple[str, ...] = (),
        environment_proxies: bool = False,
    ) -> None:
        check_service(service, base_url, key_variable, parameters)
        if results > MAX_RESULTS:
            raise UserError(f"results must be at most {MAX_RESULTS}, got {results}.")
        address = base_url or ADDRESSES[service]
        self.cache = None if cache is None else Path(cache)
        self.service = SearchService(
            service, address.rstrip("/"), key_variable, parameters or {}, results, timeout_seconds, max_retries,
            self.cache, environment_proxies, self._count,
        )  # fmt: skip
        self.service.key()
        if read_pages:
            require("web", "read_pages", "set it to false to use the search service's snippets")
        self.read_pages, self.passage_words, self.timeout_seconds = read_pages, passage_words, timeout_seconds
        self.concurrency, self.max_age_days = concurrency, max_age_days
        self.environment_proxies, self._networks = environment_proxies, parse_networks(allow_networks)
        self.totals: Counter[str] = Counter()
        self.lost_pages: dict[str, str] = {}  # why, by link; they are not read again by this object
        self.failures: dict[str, str] = {}  # why, by query
        self._counting = Lock()

    def _count(self, **more: int) -> None:
        """Add to `totals`, from any thread."""
        with self._counting:
            self.totals.update(more)

    @property
    def _asked(self) -> dict[str, Any]:
        service = self.service
        return {"service": service.name, "base_url": service.base_url, "parameters": dict(service.parameters)}

    @property
    def identity(self) -> dict[str, Any]:
        """The options that determine the passages, JSON types only; saved results are reused if they are equal."""
        read = {"results": self.service.results, "read_pages": self.read_pages, "passage_words": self.passage_words}
        return {**self._asked, **read, "allow_networks": [str(network) for network in self._networks]}

    @property
    def facts(self) -> list[str]:
        """The service and what was requested so far, for reports."""
        total, of = self.totals, f"{self.service.title}, {self.service.results} results a search"
        read = f"pages in passages of {self.passage_words} words" if self.read_pages else "the service's snippets"
        counted = f"{total['searches']:,} searches ({total['retries']:,} retries), {total['failures']:,} failed"
        if self.read_pages:
            first = f", the first: {next(iter(self.lost_pages.values()))}" if self.lost_pages else ""
            counted += f"; {total['pages']:,} pages, {len(self.lost_pages):,} lost{first}"
        counted += f"; {in_bytes(total['bytes'])}; {total['from_cache']:,} searches and pages from the cache"
        return [f"web search: {of}, {read}", f"web requests: {counted}"]

    def search(self, queries: Sequence[str], k: int) -> list[list[Ranked]]:
        """The k best passages of each query, best first, with their BM25 scores among all that the query found.

        A query whose search fails has no passage, and the reason is in `failures`.

        Raises:
            UserError: If no search can succeed (wrong key, no credit).
            UnavailableError: If the service is down after all retries; SearchFailedError if all searches of this call
                failed.
            ArtifactError: If the cache is corrupt or cannot be written.
        """
        queries = as_texts(queries)
        texts = [clean(query) for query in queries]
        distinct = [text for text in dict.fromkeys(texts) if text]
        with Store(self.cache / FILE, _LOST, self.max_age_days) if self.cache else nullcontext() as store:
            found, pages = self._find(distinct, store) if distinct else ({}, {})
        ranked = {text: rank_by_bm25(text, self._passages(*found[text], pages), k) for text in found}
        return [ranked.get(text, []) for text in texts]

    def _find(
        self, queries: Sequence[str], store: Store | None
    ) -> tuple[dict[str, Found], dict[str, tuple[str, float]]]:
        """The results of every query, and the texts of their pages with their times."""
        if store:
            store.check_writable()
        for query in queries:
            self.failures.pop(query, None)
        what = f"searching with {self.service.name}"
        found = self._each(lambda query: self._results(query, store), queries, what, self.failures)
        self.totals["failures"] += len(queries) - len(found)
        if not found:
            raise SearchFailedError(f"{self.service.title}: all searches failed: {self.failures[queries[-1]]}.")
        links = list(dict.fromkeys(each.link for results, _ in found.values() for each in results))
        links = [link for link in links if self.read_pages and link not in self.lost_pages]
        with (
            closing(PageClient(self.timeout_seconds, self._networks, self.environment_proxies)) as client,
            closing(extractor(self.concurrency)) as processes,
        ):
            read = partial(self._page, client, processes, store)
            return found, self._each(read, links, "reading pages", self.lost_pages)

    def _each(
        self, work: Callable[[str], Any], items: Sequence[str], what: str, lost: dict[str, str]
    ) -> dict[str, Any]:
        """The result of some work on every item; of those that have none, `lost` gets the reason."""

        def one(item: str) -> tuple[str, Any]:
            try:
                return item, work(item)
            except (ServiceError, FetchError) as error:
                lost[item] = str(error)
                return item, None

        done = dict(track(as_completed(one, items, self.concurrency), len(items), what))
        return {item: done[item] for item in items if done[item] is not None}

    def _results(self, query: str, store: Store | None) -> Found:
        def search() -> list[tuple[str, ...]]:
            self._count(searches=1)
            return [astuple(each) for each in self.service.search(query)]

        asked = {"search": query, "results": self.service.results, **self._asked}
        found, when = self._stored(store, asked, search)
        return [SearchResult(*each) for each in found], when

    def _page(self, client: PageClient, extractor: Killable, store: Store | None, link: str) -> tuple[str, float]:
        """The text of a page and its time; raises FetchError if there is none."""

        def read() -> str:
            self._count(pages=1)
            page = client.fetch(link)
            self._count(bytes=len(page.content))
            if not (text := extracted(extractor, page)).strip():
                raise FetchError("a page without text")
            return text

        # what was read from a private network is not given to a retriever that may not read from there
        networks = {"allow_networks": sorted(map(str, self._networks))} if self._networks else {}
        return self._stored(store, {"page": link, **networks}, read)

    def _stored(self, store: Store | None, asked: dict[str, Any], work: Callable[[], Any]) -> tuple[Any, float]:
        """The result of some work, from the cache where it has it, with its time."""
        key = json.dumps({"format": _FORMAT, **asked}, sort_keys=True)
        if store and (known := store.find(key)):
            self._count(from_cache=1)
            return known
        result, now = work(), time.time()
        if store:
            store.store(key, result, now)
        return result, now

    def _passages(
        self, results: Sequence[SearchResult], seconds: float, pages: dict[str, tuple[str, float]]
    ) -> list[Passage]:
        """The pieces of the pages in the order of the results, each once; the snippet where a page gives nothing."""
        made: dict[str, Passage] = {}
        for each in results:
            text, when = pages.get(each.link, ("", seconds))
            retrieved = datetime.fromtimestamp(when, UTC).isoformat(timespec="seconds")
            metadata: dict[str, object] = {"link": each.link, "retrieved": retrieved}
            if not text:
                metadata["snippet"] = True
            for piece in pieces(text or each.snippet, self.passage_words):
                passage = Passage.of(each.title, piece, WEB, metadata=metadata)
                if passage.text:
                    made.setdefault(passage.id, passage)
        return [*made.values()]
