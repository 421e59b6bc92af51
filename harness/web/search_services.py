"""Search services, one function each: SearXNG, Brave and Tavily; their results, retries, and advice after refusals."""

import html
import json
import random
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import httpx2

from common.errors import UserError
from common.version import VERSION
from harness.runtime.services import (
    check_fields,
    check_key_variable,
    check_url,
    json_body,
    key_in_environment,
    valid_text,
)
from harness.web.service_failures import BrokenReplyError, Service, usual_cures
from harness.web.transport import Transport

ServiceName = Literal["searxng", "brave", "tavily"]
ADDRESSES = {"brave": "https://api.search.brave.com/res/v1", "tavily": "https://api.tavily.com"}
_KEYS = {"brave": "BRAVE_API_KEY", "tavily": "TAVILY_API_KEY"}  # variables of the environment, by default
MAX_RESULTS = 20  # of one request, by Brave and Tavily
_OWN_FIELDS = ("q", "query", "format", "count", "max_results", "api_key", "text_decorations")
_RETRIED = (408, 409, 425, 429)  # and 5xx
_LONGEST_WAIT_SECONDS = 120.0  # that a service may ask for
_LONGEST_TITLE, _LONGEST_SNIPPET, _LONGEST_LINK = 300, 5000, 4096  # characters


@dataclass(frozen=True, slots=True)
class SearchResult:
    """One result of a search."""

    title: str
    link: str
    snippet: str


@dataclass(frozen=True)
class SearchService:
    """A search service; several threads may search.  The options are those of `harness.retrievers.web.WebRetriever`.

    Args:
        counted: Is told of `retries` and of the `bytes` of responses.
    """

    name: ServiceName
    base_url: str
    key_variable: str | None
    parameters: Mapping[str, Any]
    results: int
    timeout_seconds: float = 15.0
    max_retries: int = 4
    cache: Path | None = None
    environment_proxies: bool = False
    counted: Callable[..., None] = lambda **_: None

    @property
    def title(self) -> str:
        """For error lines and reports; holds no key."""
        return f"{self.name} at {urlsplit(self.base_url).netloc}"

    def key(self) -> str:
        """The key in the environment; empty for a service without one.

        Raises:
            UserError: If it is needed and missing, or a header cannot hold it.
        """
        key = key_in_environment(self._variable)
        if self._variable and not key:
            raise UserError(f"{self.title} needs a key: export {self._variable}=...")
        return key

    @property
    def _variable(self) -> str | None:
        return self.key_variable or _KEYS.get(self.name)

    @cached_property
    def _told(self) -> Service:
        key, address = f"export a valid key as {self._variable}.", f"check base_url ({self.base_url})."
        used_up = "the account's searches are used up; add some, then run the same command again."
        own: dict[str, dict[int | str, str]] = {
            "searxng": {
                403: "add json to search.formats in the settings.yml of SearXNG (docs/serve.md), and start it."
            },
            "brave": {"SUBSCRIPTION_TOKEN_INVALID": key},
            "tavily": {432: used_up, 433: used_up},
        }
        cures = usual_cures(key, used_up, address) | own[self.name]
        return Service(self.title, "searches", self.base_url, self.key(), self.timeout_seconds, self.cache, cures)

    @cached_property
    def _client(self) -> httpx2.Client:
        client = httpx2.Client(
            transport=Transport(self.timeout_seconds, None, self.environment_proxies),
            headers={"Accept": "application/json", "User-Agent": f"lightning-rag/{VERSION}"},
            event_hooks={"response": [lambda response: self.counted(bytes=len(response.read()))]},
        )
        self._told.reach(client)
        return client

    def search(self, query: str) -> list[SearchResult]:
        """The first results of a query.

        Raises:
            ServiceError: If there are none for this query.
            RefusedError: If no search can succeed.
            UnavailableError: If the service cannot be reached, or is down after all retries.
        """
        search, query, retries = _SEARCHES[self.name], valid_text(query), 0
        while True:
            try:
                return search(self._client, self, self.key(), query)
            except httpx2.HTTPStatusError as error:
                failure = self._told.refusal(error.response, retries)
                wait_seconds = _wait_seconds(retries, error.response)
            except httpx2.RequestError as error:
                failure, wait_seconds = self._told.loss(error, retries), _wait_seconds(retries)
            if wait_seconds is None or retries == self.max_retries:
                raise failure  # here, so that no error that repeats the key is its context
            time.sleep(wait_seconds)
            self.counted(retries=1)
            retries += 1


def searxng(client: httpx2.Client, service: SearchService, key: str, query: str) -> list[SearchResult]:
    """One request to SearXNG, which says `unresponsive_engines` where none of its engines has answered."""
    fields = {**service.parameters, "q": _cut(query, 1000), "format": "json"}
    body = _body(client.get(f"{service.base_url}/search", params=fields))
    found = _results(body.get("results"), "content", service.results)
    if not found and (silent := body.get("unresponsive_engines")):
        raise BrokenReplyError(f"none of its engines answered: {json.dumps(silent)[:200]}")
    return found


def brave(client: httpx2.Client, service: SearchService, key: str, query: str) -> list[SearchResult]:
    """One request to Brave, which leaves out `web` where it has found nothing."""
    words = " ".join(query.split()[:50])
    fields = {**service.parameters, "q": _cut(words, 400), "count": service.results, "text_decorations": False}
    headers = {"X-Subscription-Token": key}
    web = _body(client.get(f"{service.base_url}/web/search", params=fields, headers=headers)).get("web", {})
    return _results(web.get("results", []) if isinstance(web, dict) else None, "description", service.results)


def tavily(client: httpx2.Client, service: SearchService, key: str, query: str) -> list[SearchResult]:
    """One request to Tavily."""
    fields = {**service.parameters, "query": _cut(query, 400), "max_results": service.results}
    headers = {"Authorization": f"Bearer {key}"}
    body = _body(client.post(f"{service.base_url}/search", json=fields, headers=headers))
    return _results(body.get("results"), "content", service.results)


_SEARCHES: dict[str, Callable[[httpx2.Client, SearchService, str, str], list[SearchResult]]] = {
    "searxng": searxng, "brave": brave, "tavily": tavily,
}  # fmt: skip


def _wait_seconds(retries: int, response: httpx2.Response | None = None) -> float | None:
    """How long to wait before a further attempt, as the `openai` package does it; None if it would not help."""
    if response is not None:
        if response.status_code < 500 and response.status_code not in _RETRIED:
            return None
        with suppress(KeyError, ValueError):
            if (asked := float(response.headers["retry-after"])) > 0:
                return asked if asked <= _LONGEST_WAIT_SECONDS else None
    return min(0.5 * 2**retries, 8.0) * random.uniform(0.75, 1.0)


def _cut(query: str, most: int) -> str:
    return " ".join(query.split())[:most]


def _body(response: httpx2.Response) -> dict[str, Any]:
    """The object in a response; raises httpx2.HTTPStatusError, or BrokenReplyError if there is none."""
    response.raise_for_status()
    try:
        return json_body(response.content)
    except ValueError as error:
        raise BrokenReplyError(str(error)) from error


def _results(listed: object, snippet: str, count: int) -> list[SearchResult]:
    """The first results, each link once; malformed ones are left out.

    Raises:
        BrokenReplyError: If it is no list.
    """
    if not isinstance(listed, list):
        raise BrokenReplyError("a response without a list of results")
    found: dict[str, SearchResult] = {}
    for each in listed:
        link = _text(each, "url", _LONGEST_LINK + 1).partition("#")[0]
        if link.startswith(("http://", "https://")) and len(link) <= _LONGEST_LINK and len(found) < count:
            texts = (_text(each, "title", _LONGEST_TITLE), _text(each, snippet, _LONGEST_SNIPPET))
            title, excerpt = map(html.unescape, texts)
            found.setdefault(link, SearchResult(title, link, excerpt))
    return [*found.values()]


def check_service(
    service: str, base_url: str | None, key_variable: str | None, parameters: Mapping[str, Any] | None
) -> None:
    """Raise UserError if an option is missing, malformed, set by the searches, or holds a secret (not repeated)."""
    examples = "http://localhost:8888"
    if service == "searxng" and base_url is None:
        raise UserError(f"service searxng needs base_url, the address of your own SearXNG, such as {examples}.")
    check_url("base_url", base_url, examples)
    if service == "searxng" and key_variable is not None:
        raise UserError("service searxng takes no key: omit key_variable.")
    check_key_variable(key_variable, _KEYS.get(service, ""))
    check_fields("parameters", parameters or {}, _OWN_FIELDS)


def _text(each: object, name: str, most: int) -> str:
    """A text of a result; empty if it is none."""
    value = each.get(name) if isinstance(each, dict) else None
    return valid_text(value[:most]).strip() if isinstance(value, str) else ""
