"""Many questions to a server that fails in every way.

Each ends in an exact reply or a recorded failure, none is paid for twice.
"""

import itertools
import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from common.chat import Chat
from tests.helpers.fake_server import KEY, LASTING, PASSING, SLOW, chat_server, files_with
from tests.helpers.runs import ROOT

QUESTIONS = 1000
FOREIGN = {  # chats in other languages, and what is replied
    "日本の首都はどこですか。": "東京は日本の首都です。",
    "ما عاصمة مصر؟": "القاهرة",
    "Где жил Пушкин? 🪶": "Он жил в Москве 🏙 и в Петербурге",
    "भारत की राजधानी?": "नई दिल्ली",
    "Separators?": "a\u2028b\u2029c\x85d\x1ce\nf\r\n\ng",  # at which lines end in Python, not in server-sent events
    "Say amber two thousand times.": " ".join(["amber"] * 2_001),
}
RETRIES = 2
CONCURRENCY = 16
counts = pytest.mark.parametrize("count", [60, pytest.param(QUESTIONS, marks=pytest.mark.whole_run)])
pytestmark = pytest.mark.usefixtures("_key")


def replies(count: int):
    """Replies to so many questions; the last ones are in other languages, or long."""
    chance = random.Random(5)

    def reply(text: str):
        tokens = [-chance.expovariate(1) for _ in text.split()]
        return {"text": text, "finish": chance.choice(["stop", "length"]), "prompt_tokens": 7, "logprobs": tokens}

    texts = {f"Question {n}?": " ".join(["amber"] * chance.randint(1, 8)) for n in range(count - len(FOREIGN))}
    return {chat: reply(text) for chat, text in {**texts, **FOREIGN}.items()}


def plan(chats: list[str]) -> dict[str, list[str]]:
    """Faults before the replies: every kind, several in a row, without end."""
    faults = {chat: [kind] for chat, kind in zip(chats[10::3], itertools.cycle(k for k in PASSING if k != "429 date"))}
    faults |= {chat: [kind] for chat, kind in zip(chats, (*SLOW, "429 date"), strict=False)}
    faults |= {chats[4]: ["500", "cut"], chats[5]: ["429", "half"]}
    lasting = {chat: [kind, "always"] for chat, kind in zip(chats[11::3], LASTING, strict=False)}
    return faults | lasting | {chats[6]: ["half", "always"], chats[8]: ["cut", "always"]}


def retries(faults: list[str]) -> int:
    """How many retries faults cost."""
    if faults[1:] == ["always"]:
        return 0 if faults[0] in LASTING else RETRIES
    return len(faults)


@counts
def test_every_question_ends_in_a_reply_or_a_recorded_failure(count: int, tmp_path, capfd) -> None:
    wanted = replies(count)
    faults = plan(list(wanted))
    lost = [chat for chat, kinds in faults.items() if kinds[1:] == ["always"]]
    chats = [Chat.of(text, logprobs=True) for text in wanted]
    options = {"timeout_seconds": 4.0, "max_retries": RETRIES, "concurrency": CONCURRENCY}
    with chat_server(wanted, faults=faults) as server:
        client = server.client(tmp_path / "cache", **options)
        found = dict(zip(wanted, client.reply(chats), strict=True))
        seen = server.counts()
        for chat, reply in found.items():
            assert reply.retries == retries(faults.get(chat, [])), (chat, faults.get(chat), reply)
            assert seen["requests"][chat] == 1 + reply.retries
            if chat in lost:
                assert (reply.text, reply.finish, reply.logprob) == ("", "", None)
                assert reply.error == " ".join(reply.error.split()) != ""
            else:  # the model's, to the last digit of its log-probability
                tokens = wanted[chat]["logprobs"]
                assert (reply.text, reply.finish, reply.error) == (wanted[chat]["text"], wanted[chat]["finish"], "")
                assert (reply.prompt_tokens, reply.reply_tokens) == (wanted[chat]["prompt_tokens"], len(tokens))
                assert reply.logprob == math.fsum(tokens)
        assert 2 <= seen["max_at_once"] <= CONCURRENCY
        assert len(lost) == 2 + len(LASTING)
        again = server.client(tmp_path / "cache", **options).reply(chats)
        for chat, reply in zip(wanted, again, strict=True):
            assert reply.cached == (chat not in lost)
            if reply.cached:
                assert replace(reply, cached=False, seconds=0) == replace(found[chat], seconds=0)
        after = server.counts()["requests"]
    assert {chat for chat in wanted if after[chat] != seen["requests"][chat]} == set(lost)
    assert not files_with(KEY, tmp_path)
    assert KEY not in "".join(capfd.readouterr())


@counts
def test_after_a_kill_at_most_the_requests_under_way_are_repeated(count: int, tmp_path) -> None:
    wanted = replies(count)
    with chat_server(wanted, delay_seconds=0.05) as server:
        (tmp_path / "asked.json").write_text(json.dumps(list(wanted)))
        code = (
            "import json; from pathlib import Path; from common.chat import Chat; "
            "from harness.llm.endpoint import ChatEndpoint; "
            f"client = ChatEndpoint('tiny', {server.base_url!r}, 'TEST_LLM_KEY', concurrency=8, cache=Path('cache')); "
            "client.reply([Chat.of(each) for each in json.loads(Path('asked.json').read_text())])"
        )
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        with subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, env=environment) as run:
            while sum(server.counts()["answered"].values()) < count // 3:
                assert run.poll() is None
                time.sleep(0.02)
            run.send_signal(signal.SIGKILL)
        before = server.counts()
        assert count // 3 <= sum(before["answered"].values()) < count
        found = server.client(tmp_path / "cache", concurrency=8).reply([Chat.of(chat) for chat in wanted])
        after = server.counts()
    assert [reply.text for reply in found] == [wanted[chat]["text"] for chat in wanted]
    assert sum(reply.cached for reply in found) >= sum(before["answered"].values()) - 8
    assert 0 <= sum(after["requests"].values()) - count <= 8
    assert set(after["requests"].values()) <= {1, 2}
    assert not files_with(KEY, tmp_path)
