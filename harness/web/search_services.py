"""Search services: requests to SearXNG, Brave and Tavily, their results, and advice after refusals."""

import html
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlencode, urlsplit

from common.errors import UserError
from harness.runtime.services import (
    check_fields,
    check_key_variable,
    check_url,
    json_body,
    key_in_environment,
    valid_text,
)

ServiceName = Literal["searxng", "brave", "tavily"]
ADDRESSES = {"brave": "https://api.search.brave.com/res/v1", "tavily": "https://api.tavily.com"}
MAX_RESULTS = 20  # of one request, by Brave and Tavily
_OWN_FIELDS = ("q", "query", "format", "count", "max_results", "api_key", "text_decorations")
_LONGEST_QUERY = {"searxng": 1000, "brave": 400, "tavily": 400}  # characters
_MAX_WORDS = {"brave": 50}  # of a query
_LONGEST_TITLE, _LONGEST_SNIPPET, _LONGEST_LINK = 300, 5000, 4096  # characters


@dataclass(frozen=True, slots=True)
class SearchResult:
    """One result of a search."""

    title: str
    link: str
    snippet: str


@dataclass(frozen=True)
class SearchService:
    """The address and the fields of searches; the options are those of `harness.retrievers.web.WebRetriever`."""

    name: ServiceName
    base_url: str
    key_variable: str | None
    parameters: Mapping[str, Any]
    count: int

    @property
    def title(self) -> str:
        """For error lines and reports; holds no key."""
        return f"{self.name} at {urlsplit(self.base_url).netloc}"

    def key(self) -> str:
        """The key in the environment; empty for a service without one.

        Raises:
            UserError: If it is needed and missing, or a header cannot hold it.
        """
        key = key_in_environment(self.key_variable)
        if self.key_variable and not key:
            raise UserError(f"{self.title} needs a key: export {self.key_variable}=...")
        return key

    def headers(self, key: str) -> dict[str, str]:
        """The headers of every search."""
        with_key = {"brave": {"X-Subscription-Token": key}, "tavily": {"Authorization": f"Bearer {key}"}}
        return {"Accept": "application/json", **with_key.get(self.name, {})}

    def request(self, query: str) -> tuple[str, dict[str, Any] | None]:
        """Address of a search, and its body; None for a GET."""
        query = valid_text(" ".join(query.split()[: _MAX_WORDS.get(self.name)]))[: _LONGEST_QUERY[self.name]]
        if self.name == "tavily":
            return f"{self.base_url}/search", {**self.parameters, "query": query, "max_results": self.count}
        fields = {
            name: str(value).lower() if isinstance(value, bool) else value for name, value in self.parameters.items()
        }
        fields["q"] = query
        if self.name == "brave":
            fields |= {"count": self.count, "text_decorations": "false"}
            return f"{self.base_url}/web/search?{urlencode(fields, doseq=True)}", None
        return f"{self.base_url}/search?{urlencode({**fields, 'format': 'json'}, doseq=True)}", None

    def results(self, text: bytes) -> list[SearchResult]:
        """The first results of a response; malformed ones are left out.

        Raises:
            ValueError: If it is no JSON object with a list of results, or none of the service's own engines has
                answered.
        """
        body = json_body(text)
        if self.name == "brave":
            web = body.get("web", {})  # absent where nothing was found
            listed = web.get("results", []) if isinstance(web, dict) else None
        else:
            listed = body.get("results")
        if not isinstance(listed, list):
            raise ValueError("a response without a list of results")
        snippet = "description" if self.name == "brave" else "content"
        found: dict[str, SearchResult] = {}
        for each in listed:
            link = _text(each, "url", _LONGEST_LINK + 1).partition("#")[0]
            if link.startswith(("http://", "https://")) and len(link) <= _LONGEST_LINK and len(found) < self.count:
                texts = (_text(each, "title", _LONGEST_TITLE), _text(each, snippet, _LONGEST_SNIPPET))
                title, excerpt = map(html.unescape, texts)
                found.setdefault(link, SearchResult(title, link, excerpt))
        if not found and (silent := body.get("unresponsive_engines")):  # SearXNG's
            raise ValueError(f"none of its engines answered: {json.dumps(silent)[:200]}")
        return [*found.values()]

    def cure(self, status: int, code: str) -> str:
        """Advice if status and code of an error mean that no search can succeed; empty if another one may."""
        key = f"export a valid key as {self.key_variable}."
        if self.name == "searxng" and status == 403:
            return "add json to search.formats in the settings.yml of SearXNG (docs/serve.md), then start it again."
        if status in (401, 403) or (self.name == "brave" and status == 422 and "SUBSCRIPTION_TOKEN" in code):
            return key
        if status == 402 or (self.name == "tavily" and status in (432, 433)):
            return "the account's searches are used up; add some, then run the same command again."
        if status in (404, 405) or 300 <= status < 400:
            return f"check base_url ({self.base_url})."
        return ""


def check_service(
    service: str, base_url: str | None, key_variable: str | None, parameters: Mapping[str, Any] | None
) -> None:
    """Raise UserError if an option is missing, malformed, set by the searches, or holds a secret (not repeated)."""
    examples = "http://localhost:8888"
    if service == "searxng" and base_url is None:
        raise UserError(f"service searxng needs base_url, the address of your own SearXNG, such as {examples}.")
    check_url("base_url", base_url, examples)
    needed = {"brave": "BRAVE_API_KEY", "tavily": "TAVILY_API_KEY"}.get(service)
    if needed and key_variable is None:
        raise UserError(
            f"service {service} needs key_variable, the name of the environment variable that holds the key: {needed}."
        )
    if not needed and key_variable is not None:
        raise UserError("service searxng takes no key: omit key_variable.")
    check_key_variable(key_variable, needed or "")
    check_fields("parameters", parameters or {}, _OWN_FIELDS)


def _text(each: object, name: str, most: int) -> str:
    """A text of a result; empty if it is none."""
    value = each.get(name) if isinstance(each, dict) else None
    return valid_text(value[:most]).strip() if isinstance(value, str) else ""
