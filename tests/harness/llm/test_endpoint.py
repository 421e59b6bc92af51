"""The client of chat endpoints against real servers.

Deadlines, refusals, the cache, costs, log-probabilities, secrets.
"""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from common.chat import Chat, Reply
from common.errors import UnavailableError, UserError
from harness.llm.endpoint import ChatEndpoint
from harness.llm.local import CausalLm
from tests.helpers.fake_server import KEY, SLOW, ChatServer, chat_server, files_with
from tests.helpers.tiny_lm import cases

Replies = dict[str, dict[str, Any]]
pytestmark = pytest.mark.usefixtures("_key")


@pytest.fixture(scope="module")
def server(replies: Replies, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A server without faults before its replies."""
    with chat_server(replies) as running:
        yield running


def texts(replies: Replies, first: int, count: int) -> list[str]:
    """Different chats for each test."""
    return list(replies)[first : first + count]


def test_no_server_holds_up_an_attempt(replies: Replies, tmp_path: Path) -> None:
    """Neither by silence nor by a byte now and then, in the headers or in the body."""
    prompt, *chats = texts(replies, 0, 1 + len(SLOW))
    faults = {chat: [kind] for chat, kind in zip(chats, SLOW, strict=True)}
    with chat_server(replies, faults=faults) as server:
        server.client(None).reply([Chat.of(prompt)])  # imports the library, which takes seconds
        began = time.monotonic()
        client = server.client(None, timeout_seconds=0.5, max_retries=0)
        found = client.reply([Chat.of(chat) for chat in chats])
        assert time.monotonic() - began < 3
    assert [reply.error for reply in found] == ["no complete response within 0.5 s"] * len(SLOW)
    assert all(0.5 <= reply.seconds < 2 for reply in found)


def test_what_no_chat_can_pass_ends_the_run_at_once(replies: Replies, tmp_path: Path, monkeypatch) -> None:
    forbidden, quota, *others = texts(replies, 0, 30)
    faults = {forbidden: ["403", "always"], quota: ["quota", "always"]}
    with chat_server(replies, faults=faults) as server:
        cases = [
            ({}, forbidden, r"refuses all chats \(HTTP 403: no luck with Bearer \[key\]\): export a valid key as "
                            r"TEST_LLM_KEY\."),
            ({}, quota, r"You exceeded your current quota\): the account has no credit left"),
            ({"base_url": server.base_url[:-3]}, others[0],
                r"404: Not Found\): check model \(tiny\) and base_url .* /v1\."),
            ({"key_variable": None}, others[1],
                r"401: .*: export a valid key as a variable, and name it with key_variable\."),
        ]  # fmt: skip
        for options, chat, message in cases:
            with pytest.raises(UserError, match=message) as raised:
                server.client(tmp_path, **options).reply([Chat.of(chat)])
            check_nowhere(raised.value, tmp_path)
        monkeypatch.setenv("TEST_LLM_KEY", "sk-wrong-0123456789abcdef")
        with pytest.raises(UserError, match=r"Incorrect API key provided: Bearer \[key\]\. You can find") as raised:
            server.client(tmp_path, concurrency=1).reply([Chat.of(chat) for chat in others[2:10]])
        check_nowhere(raised.value, tmp_path, "sk-wrong-0123456789abcdef")
        requests = server.counts()["requests"]
    assert [requests[each] for each in (forbidden, quota, others[2], others[3])] == [1, 1, 1, 0]


def check_nowhere(error: BaseException, folder: Path, key: str = KEY) -> None:
    """A key is in no file, and in no text of an error or of those that led to it."""
    assert not files_with(key, folder)
    seen: BaseException | None = error
    while seen is not None:
        assert key not in repr(seen)
        assert "\n" not in str(seen)
        seen = seen.__cause__ or seen.__context__


def test_an_unreachable_server_is_named_within_seconds(tmp_path: Path) -> None:
    nowhere = ChatEndpoint("tiny", "http://127.0.0.1:9/v1", "TEST_LLM_KEY", cache=tmp_path)
    began = time.monotonic()
    with pytest.raises(
        UnavailableError, match=r"tiny at 127\.0\.0\.1:9 cannot be reached \(no connection: .*\): start"
    ):
        nowhere.reply([Chat.of("x"), Chat.of("y")])
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("kind", ["429", "500"])
def test_a_server_that_is_down_after_all_retries_ends_the_run(kind: str, replies: Replies, tmp_path: Path) -> None:
    """The replies before it are kept, also where the server then dies."""
    before, broken, other = (Chat.of(text) for text in texts(replies, 0, 3))
    with chat_server(replies, faults={texts(replies, 1, 1)[0]: [kind, "always"]}) as server:
        client = server.client(tmp_path, concurrency=1, max_retries=1)
        for chat, why in ((broken, f"HTTP {kind}"), (other, "no connection: ")):
            with pytest.raises(
                UnavailableError, match=rf"tiny at .*{why}.* \(retries: 1\)\. Results so far are kept in"
            ):
                client.reply([before, chat])
            (kept,) = client.reply([before])
            assert (kept.cached, kept.text) == (True, replies[texts(replies, 0, 1)[0]]["text"])
            if chat is broken:
                assert server.counts()["requests"][texts(replies, 1, 1)[0]] == 2
                server.server.die()


def test_equal_chats_are_asked_once_and_everything_that_matters_is_in_the_key(
    server: ChatServer, replies: Replies, tmp_path: Path
) -> None:
    (text,) = texts(replies, 100, 1)

    def ask(*chats: Chat, **options: Any) -> list[Reply]:
        return server.client(tmp_path, **options).reply(chats or [Chat.of(text)])

    first, second = ask(*[Chat.of(text)] * 2, usd_per_million_prompt_tokens=2.0, usd_per_million_reply_tokens=8.0)
    assert (first.cached, second.cached) == (False, True)
    assert first.usd == second.usd == pytest.approx((first.prompt_tokens * 2 + first.reply_tokens * 8) / 1e6)
    different = [Chat.of(text, 33), Chat.of(text, temperature=0.5), Chat.of(text, temperature=0.8),
                 Chat.of(text, temperature=0.5, sample=1),
                 Chat.of(text, logprobs=True), Chat.of(text, sample=1)]  # fmt: skip
    assert not any(reply.cached for reply in ask(*different))
    assert all(reply.cached for reply in ask(Chat.of(text), *different))
    elsewhere = {"base_url": server.base_url.replace("127.0.0.1", "localhost")}
    own = ({"options": {"top_p": 0.5}}, {"reasoning_tokens": 5}, {"token_limit_field": "max_completion_tokens"})
    for options in (*own, elsewhere, {"cache": None}, {"cache": None}):
        assert not ask(**options)[0].cached, options
    slash = {"base_url": f"{server.base_url}/"}
    for options in ({"timeout_seconds": 5.0}, {"concurrency": 1}, {"max_retries": 0}, slash):
        assert [(reply.cached, reply.usd) for reply in ask(**options)] == [(True, first.usd)], options
    assert server.counts()["requests"][text] == 1 + len(different) + 3 + 3
    (unpriced,) = ask(Chat.of(text, 34))
    (priced,) = ask(Chat.of(text, 34), usd_per_million_prompt_tokens=1.0, usd_per_million_reply_tokens=0.0)
    assert (unpriced.usd, priced.cached, priced.usd) == (None, True, priced.prompt_tokens / 1e6)


def test_a_key_is_sent_to_its_own_server_alone_and_stored_nowhere(
    replies: Replies, tmp_path: Path, monkeypatch
) -> None:
    with chat_server({"Echo": {"text": f"It is {KEY}."}}) as echo:
        assert echo.client(tmp_path / "cache").reply([Chat.of("Echo")])[0].text == "It is [key]."
    assert not files_with(KEY, tmp_path)
    monkeypatch.delenv("TEST_LLM_KEY")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)  # of another service: not sent where it is not named
    with chat_server(replies, key="", faults={"x": ["400", "always"]}) as server:
        for options in ({}, {"key_variable": None}):
            assert server.client(None, **options).reply([Chat.of("x")])[0].error == "HTTP 400: no luck with None"


def test_an_endpoint_without_log_probabilities_is_refused_by_name(replies: Replies, tmp_path: Path) -> None:
    chats = [Chat.of(text, logprobs=True) for text in texts(replies, 0, 20)]
    with chat_server(replies, gives_logprobs=False) as server:
        with pytest.raises(UserError, match=r"tiny at 127\.0\.0\.1:\d+ .*log-probabilities are needed here"):
            server.client(tmp_path).reply(chats)
        assert sum(server.counts()["requests"].values()) <= 8
        (reply,) = server.client(tmp_path).reply([replace(chats[0], logprobs=False)])
        assert reply.logprob is None


@pytest.mark.whole_run
def test_transformers_serve(chat_lm: Path, tmp_path: Path) -> None:
    """The server that comes with transformers: same replies as the model, no log-probabilities, refused models."""
    chats = [Chat.of(text, max_tokens=8) for text, _ in cases(6, seed=5, documents=3)]
    expected = CausalLm(str(chat_lm), "cpu", "fp32").reply(chats)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        host, port = free.getsockname()
    program = str(Path(sys.executable).with_name("transformers"))
    command = [program, "serve", str(chat_lm), "--host", host, "--port", str(port), "--device", "cpu"]
    with ExitStack() as stack:
        log = stack.enter_context((tmp_path / "log").open("w"))
        process = stack.enter_context(subprocess.Popen(command, stdout=log, stderr=log))
        stack.callback(process.kill)
        deadline = time.monotonic() + 120
        while socket.socket().connect_ex((host, port)):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
        client = ChatEndpoint(str(chat_lm), f"http://{host}:{port}/v1", cache=tmp_path / "cache")
        found = client.reply(chats)
        assert [(reply.text, reply.prompt_tokens) for reply in found] == [
            (reply.text, reply.prompt_tokens) for reply in expected
        ]
        with pytest.raises(UserError, match="log-probabilities are needed"):
            client.reply([Chat.of("x", logprobs=True)])
        (reply,) = ChatEndpoint("another/model", client.base_url, cache=None).reply([Chat.of("x")])
        assert reply.error.startswith("HTTP 400: Server is pinned to ")


def test_ctrl_c_ends_the_run_and_the_replies_are_kept(replies: Replies, tmp_path: Path) -> None:
    """Also while the server keeps a request waiting."""
    waiting, *others = texts(replies, 0, 200)
    with chat_server(replies, faults={waiting: ["stall", "always"]}, delay_seconds=0.1) as server:
        client, chats = server.client(tmp_path, concurrency=3), [Chat.of(text) for text in (waiting, *others)]
        interrupted = []

        def interrupt() -> None:
            """After a few replies, however long the client's library takes to import."""
            while sum(server.counts()["answered"].values()) < 4:
                time.sleep(0.05)
            interrupted.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=interrupt, daemon=True).start()
        with pytest.raises(KeyboardInterrupt):
            client.reply(chats)
        assert time.monotonic() - interrupted[0] < 3
        before = server.counts()
        done = [chat for chat in chats if before["answered"].get(chat.messages[0].content)]
        again = server.client(tmp_path).reply(done)
    assert 0 < len(done) < 30
    assert sum(reply.cached for reply in again) >= len(done) - 2
