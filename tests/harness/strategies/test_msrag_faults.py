"""MSRAG with a chat endpoint that fails in many ways.

Every question gets an answer or a recorded failure, and no reply is asked for twice.
"""

import itertools
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from common.chat import Chat, Reply
from common.records import Question
from harness.choice.agreement import Agreement
from harness.interfaces import LanguageModel
from harness.readers.llm import LlmReader
from harness.retrievers.bm25 import Bm25Retriever
from harness.sources.generated import GeneratedContext
from harness.sources.web import WebContext
from harness.strategies.msrag import Msrag
from tests.helpers.fault_server import PASSING
from tests.helpers.llm_servers import KEY, fault_server
from tests.helpers.river_corpus import write_index
from tests.helpers.table_encoder import TableEncoder

ENCODER = TableEncoder({"ocean": (1, 0), "sea": (0.8, 0.6), "lake": (0, 1)})
QUESTIONS = [Question(str(n), f"{word} river {n}") for n, word in enumerate(["alba", "brune", "elbe", "calder"] * 5)]
CONTEXT, MEMORY = "generate relevant", "from your own knowledge"  # words of the prompts


class RuleLm:
    """Replies by the kind of prompt, and keeps what it was asked."""

    name = "rules"

    def __init__(self) -> None:
        self.given: dict[str, str] = {}  # by message

    def reply(self, chats: Sequence[Chat]) -> list[Reply]:
        """One reply per chat."""
        texts = [chat.messages[-1].content for chat in chats]
        for text in texts:
            content = json.dumps({"content": "It ends in the sea. " * 14})
            read = "Answer: sea" if "It ends in the sea" in text else "Answer: ocean"
            self.given[text] = content if CONTEXT in text else "Answer: lake" if MEMORY in text else read
        return [Reply(self.given[text]) for text in texts]


def system(llm: LanguageModel, index: Path) -> Msrag:
    reader, knowledge = LlmReader(llm), GeneratedContext(llm)
    return Msrag(reader, Agreement(loaded=ENCODER), WebContext(Bm25Retriever(index)), knowledge)


def test_every_question_is_answered_or_says_why_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_LLM_KEY", KEY)
    index, rules = write_index(tmp_path), RuleLm()
    expected = system(rules, index).answer(QUESTIONS)
    assert {answer.text for answer in expected} == {"sea"}  # between ocean and lake
    replies = {
        text: {"text": given, "finish": "stop", "prompt_tokens": 5, "logprobs": [-0.1]}
        for text, given in rules.given.items()
    }
    asked = {kind: [text for text in replies if kind in text] for kind in (CONTEXT, MEMORY)}
    reading = [text for text in replies if CONTEXT not in text and MEMORY not in text]
    faults = {text: [kind] for text, kind in zip([*replies][::3], itertools.cycle(PASSING))}
    faults = {text: kinds for text, kinds in faults.items() if kinds != ["429 date"]}
    always = [asked[CONTEXT][0], asked[CONTEXT][1], asked[MEMORY][2], reading[3]]
    faults |= {text: ["500" if place % 2 else "400", "always"] for place, text in enumerate(always)}
    with fault_server(tmp_path / "plan.json", replies, faults=faults) as server:
        client = server.client(tmp_path / "cache", timeout_seconds=5.0, max_retries=1)
        found = system(client, index).answer(QUESTIONS)
        first = server.counts()
        again = system(client, index).answer(QUESTIONS)
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
