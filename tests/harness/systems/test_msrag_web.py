"""MSRAG with a web search and a chat endpoint that fail in many ways, both real servers.

Every question gets an answer or a recorded failure, a lost source leaves the others, and nothing that was answered is
asked for again.
"""

import itertools
import json

import pytest

from common.chat import Chat
from common.records import Answer, Question
from harness.context_sources.generated import GeneratedContext
from harness.context_sources.web import WebContext
from harness.interfaces import LanguageModel
from harness.readers.llm import LlmReader
from harness.retrievers.web import WebRetriever
from harness.rewriters.prompted import PromptRewriter
from harness.systems.msrag import Msrag
from tests.helpers import fake_server as fake
from tests.helpers.scripted_lm import ScriptedLm

RIVERS = ["Alba", "Brune", "Calder", "Dorn", "Elbe", "Fulda", "Garonne", "Havel"]
QUESTIONS = [Question(str(n), f"Where does the {river} end?") for n, river in enumerate(RIVERS)]
KINDS = ("source", "mouth", "length")
EACH = [*itertools.product(RIVERS, KINDS)]
DIVIDE, CONTEXT, MEMORY = "Divide the question", "generate relevant", "from your own knowledge"  # words of the prompts
BROKEN = [fake.answer(b"<html>"), fake.ALWAYS]  # after all retries
NO_JSON = "a response that is no valid JSON (retries: 1)"


def by_rule(chat: Chat) -> str:
    """A reply by the kind of prompt."""
    text = chat.messages[-1].content
    (river,) = [river for river in RIVERS if f"the {river} end?" in text]
    content = json.dumps({"content": "It ends in the sea. " * 14})
    read = "Answer: sea" if "ends in the sea" in text else "Answer: ocean"
    by_words = {DIVIDE: "\n".join(query(river, kind) for kind in KINDS), CONTEXT: content, MEMORY: "Answer: lake"}
    return next((reply for words, reply in by_words.items() if words in text), read)


def query(river: str, kind: str) -> str:
    return f"{kind} of the {river}"


@pytest.fixture
def pages():
    """A page on each river and kind of question."""
    text = "The {1} of the {0} is known. The {0} ends in the salt water of the ocean, and it is long."
    routes = {f"/{river}/{kind}": fake.page(f"{river}, {kind}", text.format(river, kind)) for river, kind in EACH}
    with fake.web_server(routes, "127.0.0.2") as server:
        yield server


def system(llm: LanguageModel, service: fake.WebServer, cache) -> Msrag:
    allowed = ("127.0.0.2/32",)
    web = WebRetriever("searxng", service.url, cache=cache, timeout_seconds=5.0, max_retries=1, allow_networks=allowed)
    source = WebContext(web, PromptRewriter(llm, "sub_questions", len(KINDS)), ("sub_questions",))
    return Msrag(LlmReader(llm), web=source, knowledge=GeneratedContext(llm))


def of_web(answered: Answer):
    """What the notes of an answer say of the web."""
    return next(each for each in answered.notes["sources"] if each["source"] == "web")


@pytest.mark.whole_run
def test_every_question_is_answered_and_says_what_was_lost(pages: fake.WebServer, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("TEST_LLM_KEY", fake.KEY)
    searches = fake.Searches({
        query(river, kind): [(f"{river}, {kind}", f"{pages.url}/{river}/{kind}", f"The {river} ends in the ocean.")]
        for river, kind in EACH
    })  # fmt: skip
    with fake.web_server({"/search": searches}) as service:
        calm = ScriptedLm(by_rule)
        expected = system(calm, service, tmp_path / "calm").answer(QUESTIONS)
        assert {each.text for each in expected} == {of_web(each)["answer"] for each in expected} == {"ocean"}
        assert all(of_web(each)["passages"][0]["link"].startswith(pages.url) for each in expected)
        chats = {chat.messages[-1].content: chat for asked in calm.asked for chat in asked}
        replies = {text: {"text": by_rule(chat)} for text, chat in chats.items()}
        kinds = itertools.cycle(kind for kind in fake.PASSING if kind != "429 date")
        faults = {text: [kind] for text, kind in zip([*replies][::3], kinds, strict=False)}
        for words, river in ((CONTEXT, "Alba"), (MEMORY, "Brune"), (DIVIDE, "Calder")):
            (lost,) = [text for text in replies if words in text and f"the {river} end?" in text]
            faults[lost] = ["invalid", fake.ALWAYS]
        replies[fake.ANY] = {"text": "Answer: ocean"}  # to contexts with a snippet, or without a search
        # the web: passing faults, a question without any search, one with a search less, lost pages
        passing = [fake.answer(b"<html>"), fake.answer(b"{}", 429, Retry_After="0.05"), fake.cut_off, fake.no_response]
        searches.faults = {query(river, "source"): [fault] for river, fault in zip(RIVERS[4:], passing, strict=True)}
        searches.faults |= {query("Dorn", kind): BROKEN for kind in KINDS} | {query("Elbe", "length"): BROKEN}
        lost_pages = {
            "/Fulda/source": fake.bomb(50), "/Garonne/mouth": fake.redirect("http://127.0.0.1:1/"),
            "/Havel/length": fake.answer(b"", 403),
        }  # fmt: skip
        pages.routes |= lost_pages
        pages.asked.clear()
        searches.answered.clear()
        with fake.chat_server(replies, faults=faults) as server:

            def run():
                client = server.client(tmp_path / "llm", timeout_seconds=10.0, max_retries=1)
                return system(client, service, tmp_path / "web").answer(QUESTIONS), server.counts()

            found, first = run()
            answered, read = dict(searches.answered), pages.counts
            again, second = run()
    by_river = dict(zip(RIVERS, found, strict=True))
    assert all(each.text for each in found)
    lost_sources = {river: each.notes["lost"].keys() for river, each in by_river.items() if "lost" in each.notes}
    assert lost_sources == {"Alba": {"generated"}, "Brune": {"none"}, "Dorn": {"web"}}
    assert (by_river["Dorn"].notes["lost"], by_river["Dorn"].costs["failed_searches"]) == ({"web": NO_JSON}, 3)
    assert [each.get("error", "") for each in by_river["Elbe"].notes["queries"]] == ["", "", NO_JSON]
    assert by_river["Calder"].notes["fallbacks"]  # its sub-questions failed: the question itself was searched
    for river, theirs in zip(RIVERS[5:], expected[5:], strict=True):  # lost pages only: the snippet is in their place
        assert by_river[river].text == theirs.text
        assert len(of_web(by_river[river])["passages"]) == len(of_web(theirs)["passages"])
    # what was answered is asked for once; what failed is asked for again
    assert set(answered.values()) == set(first["answered"].values()) == {1}
    assert (dict(searches.answered), second["answered"]) == (answered, first["answered"])
    assert pages.counts - read == dict.fromkeys(lost_pages, 1)
    assert [each.text for each in again] == [each.text for each in found]
    for each in system(ScriptedLm(by_rule), service, tmp_path / "down").answer(QUESTIONS[:2]):  # it has stopped
        assert (each.text == "", each.notes["chosen"] == "web", each.costs["lost_sources"]) == (False, False, 1)
        assert "cannot be reached" in each.notes["lost"]["web"]
