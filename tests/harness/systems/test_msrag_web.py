"""MSRAG with a web search and a chat endpoint that fail in many ways, both real servers.

Every question gets an answer or a recorded failure, a lost source leaves the others, and nothing that was answered is
asked for again.
"""

import itertools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from common.chat import Chat, Reply
from common.records import Question
from harness.context_sources.generated import GeneratedContext
from harness.context_sources.web import WebContext
from harness.interfaces import LanguageModel
from harness.readers.llm import LlmReader
from harness.retrievers.bm25 import Bm25Retriever
from harness.retrievers.web import WebRetriever
from harness.rewriters.prompted import PromptRewriter
from harness.runtime.answer_text import answer_text
from harness.systems.msrag import Msrag
from tests.helpers.fake_server import (
    ALWAYS,
    ANY,
    KEY,
    PASSING,
    Searches,
    WebServer,
    answer,
    bomb,
    chat_server,
    cut_off,
    no_response,
    page,
    redirect,
    web_server,
)

RIVERS = ["Alba", "Brune", "Calder", "Dorn", "Elbe", "Fulda", "Garonne", "Havel"]
QUESTIONS = [Question(str(n), f"Where does the {river} end?") for n, river in enumerate(RIVERS)]
KINDS = ("source", "mouth", "length")
DIVIDE, CONTEXT, MEMORY = "Divide the question", "generate relevant", "from your own knowledge"  # words of the prompts
BROKEN = [answer(b"<html>"), ALWAYS]  # after all retries
NO_JSON = "a response that is no valid JSON (retries: 1)"


class RuleLm:
    """Replies by the kind of prompt, and keeps what it was asked."""

    name = "rules"

    def __init__(self) -> None:
        self.given: dict[str, str] = {}  # by message

    def reply(self, chats: Sequence[Chat]) -> list[Reply]:
        """One reply per chat."""
        for chat in chats:
            text = chat.messages[-1].content
            (river,) = [river for river in RIVERS if f"the {river} end?" in text]
            content = json.dumps({"content": "It ends in the sea. " * 14})
            queries = "\n".join(f"{kind} of the {river}" for kind in KINDS)
            read = "Answer: sea" if "ends in the sea" in text else "Answer: ocean"
            rules = {DIVIDE: queries, CONTEXT: content, MEMORY: "Answer: lake"}
            self.given[text] = next((reply for words, reply in rules.items() if words in text), read)
        return [Reply(self.given[chat.messages[-1].content]) for chat in chats]


def query(river: str, kind: str) -> str:
    return f"{kind} of the {river}"


@pytest.fixture
def pages() -> Iterator[WebServer]:
    """A page on each river and kind of question."""
    text = "The {kind} of the {river} is known. The {river} ends in the salt water of the ocean, and it is long."
    routes = {
        f"/{river}/{kind}": page(f"{river}, {kind}", text.format(kind=kind, river=river))
        for river, kind in itertools.product(RIVERS, KINDS)
    }
    with web_server(routes, "127.0.0.2") as server:
        yield server


@pytest.fixture
def searches(pages: WebServer) -> Searches:
    return Searches({
        query(river, kind): [(f"{river}, {kind}", f"{pages.url}/{river}/{kind}", f"The {river} ends in the ocean.")]
        for river, kind in itertools.product(RIVERS, KINDS)
    })  # fmt: skip


def system(llm: LanguageModel, service: WebServer, cache: Path) -> Msrag:
    web = WebRetriever(
        "searxng", service.url, cache=cache, timeout_seconds=5.0, max_retries=1, allow_networks=("127.0.0.2/32",)
    )
    source = WebContext(web, PromptRewriter(llm, "sub_questions", len(KINDS)), ("sub_questions",))
    return Msrag(LlmReader(llm), web=source, knowledge=GeneratedContext(llm))


def told(answered: Any, source: str) -> dict[str, Any]:
    """What the notes of an answer say of one source."""
    (each,) = [each for each in answered.notes["sources"] if each["source"] == source]
    return each


@pytest.mark.whole_run
def test_every_question_is_answered_and_says_what_was_lost(
    pages: WebServer, searches: Searches, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_LLM_KEY", KEY)
    with web_server({"/search": searches}) as service:
        rules = RuleLm()
        expected = system(rules, service, tmp_path / "calm").answer(QUESTIONS)
        assert {each.text for each in expected} == {told(each, "web")["answer"] for each in expected} == {"ocean"}
        assert all(told(each, "web")["passages"][0]["link"].startswith(pages.url) for each in expected)
        replies = {
            text: {"text": given, "finish": "stop", "prompt_tokens": 5, "logprobs": [-0.1]}
            for text, given in rules.given.items()
        }
        asked = {
            kind: {text.split(" end?")[0].rpartition(" ")[2]: text for text in replies if kind in text}
            for kind in (DIVIDE, CONTEXT, MEMORY)
        }
        kinds = itertools.cycle(kind for kind in PASSING if kind != "429 date")
        faults = {text: [kind] for text, kind in zip([*replies][::3], kinds, strict=False)}
        always = [asked[CONTEXT]["Alba"], asked[MEMORY]["Brune"], asked[DIVIDE]["Calder"]]
        faults |= {text: ["invalid", "always"] for text in always}
        replies[ANY] = {
            **replies[always[0]],
            "text": "Answer: ocean",
        }  # to contexts with a snippet, or without a search
        # the web: passing faults, a question without any search, one with a search less, lost pages
        passing = [answer(b"<html>"), answer(b"{}", 429, Retry_After="0.05"), cut_off, no_response]
        searches.faults = {query(river, "source"): [fault] for river, fault in zip(RIVERS[4:], passing, strict=True)}
        searches.faults |= {query("Dorn", kind): BROKEN for kind in KINDS} | {query("Elbe", "length"): BROKEN}
        lost_pages = {
            "/Fulda/source": bomb(50),
            "/Garonne/mouth": redirect("http://127.0.0.1:1/"),
            "/Havel/length": answer(b"", 403),
        }
        pages.routes |= lost_pages
        pages.asked.clear()
        searches.answered.clear()
        with chat_server(replies, faults=faults) as server:

            def run() -> tuple[list[Any], dict[str, Any]]:
                client = server.client(tmp_path / "llm", timeout_seconds=10.0, max_retries=1)
                return system(client, service, tmp_path / "web").answer(QUESTIONS), server.counts()

            found, first = run()
            answered, read = dict(searches.answered), pages.counts
            again, second = run()
    by_river = dict(zip(RIVERS, found, strict=True))
    assert all(each.text for each in found)
    lost = {river: set(each.notes["lost"]) for river, each in by_river.items() if "lost" in each.notes}
    assert lost == {"Alba": {"generated"}, "Brune": {"none"}, "Dorn": {"web"}}
    assert by_river["Dorn"].notes["lost"]["web"] == NO_JSON
    assert by_river["Dorn"].costs["failed_searches"] == 3
    assert f"Lost: web: {NO_JSON}" in answer_text(QUESTIONS[3], by_river["Dorn"], 500)
    assert "length of the Elbe" in answer_text(QUESTIONS[4], by_river["Elbe"], 500)
    assert [each.get("error", "") for each in by_river["Elbe"].notes["queries"]] == [
        "",
        "",
        NO_JSON,
    ]
    assert by_river["Calder"].notes["fallbacks"]  # its sub-questions failed: the question itself was searched
    for river, theirs in zip(RIVERS[5:], expected[5:], strict=True):  # lost pages only: the snippet is in their place
        assert by_river[river].text == theirs.text
        assert len(told(by_river[river], "web")["passages"]) == len(told(theirs, "web")["passages"])
    # what was answered is asked for once; what failed is asked for again
    assert set(answered.values()) == {1}
    assert dict(searches.answered) == answered
    assert {path: count - read[path] for path, count in pages.counts.items() if count > read[path]} == {
        path: 1 for path in lost_pages
    }
    assert max(first["answered"].values()) == 1
    assert second["answered"] == first["answered"]
    assert [each.text for each in again] == [each.text for each in found]


def test_a_chat_endpoint_s_failures_alone(bm25: Bm25Retriever, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_LLM_KEY", KEY)
    rules = RuleLm()

    def system(llm: LanguageModel) -> Msrag:
        return Msrag(LlmReader(llm), web=WebContext(bm25), knowledge=GeneratedContext(llm))

    expected = system(rules).answer(QUESTIONS)
    replies = {
        text: {"text": given, "finish": "stop", "prompt_tokens": 5, "logprobs": [-0.1]}
        for text, given in rules.given.items()
    }
    asked = {kind: [text for text in replies if kind in text] for kind in (CONTEXT, MEMORY)}
    reading = [text for text in replies if CONTEXT not in text and MEMORY not in text]
    faults = {text: [kind] for text, kind in zip([*replies][::3], itertools.cycle(PASSING))}
    faults = {text: kinds for text, kinds in faults.items() if kinds != ["429 date"]}
    always = [asked[CONTEXT][0], asked[CONTEXT][1], asked[MEMORY][2], reading[3]]
    faults |= {text: ["invalid" if place % 2 else "400", "always"] for place, text in enumerate(always)}
    with chat_server(replies, faults=faults) as server:
        client = server.client(tmp_path / "cache", timeout_seconds=5.0, max_retries=1)
        found = system(client).answer(QUESTIONS)
        first = server.counts()
        again = system(client).answer(QUESTIONS)
        second = server.counts()
    lost = {answer.question_id: answer.notes["lost"] for answer in found if "lost" in answer.notes}
    assert {frozenset(each) for each in lost.values()} >= {frozenset({"generated"}), frozenset({"none"})}
    assert sum(map(len, lost.values())) == len(always)
    assert all(reason for each in lost.values() for reason in each.values())
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.text, ours.notes  # two sources are left
        if ours.question_id not in lost:
            assert (ours.text, ours.notes["sources"]) == (theirs.text, theirs.notes["sources"])
    # what was answered is not asked again; what failed is
    assert max(first["answered"].values()) == 1
    assert second["answered"] == first["answered"]
    grown = {text for text, count in second["requests"].items() if count > first["requests"][text]}
    assert grown == set(always)
    assert [answer.text for answer in again] == [answer.text for answer in found]


def test_a_web_that_is_down_leaves_the_other_sources(pages: WebServer, searches: Searches, tmp_path: Path) -> None:
    with web_server({"/search": searches}) as service:
        pass  # it has stopped
    found = system(RuleLm(), service, tmp_path).answer(QUESTIONS[:2])
    for each in found:
        assert each.text
        assert each.notes["chosen"] != "web"
        assert "cannot be reached" in each.notes["lost"]["web"]
        assert each.costs["lost_sources"] == 1
