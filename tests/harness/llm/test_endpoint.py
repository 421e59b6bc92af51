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
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from common.chat import Chat
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


def test_what_no_chat_can_pass_ends_the_run_at_once(
    replies: Replies, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
        assert requests[forbidden] == requests[quota] == requests[others[2]] == 1
        assert others[3] not in requests


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
        UnavailableError, match=r"tiny at 127\.0\.0\.1:9 cannot be reached \(no connection: .*\): start the server"
    ):
        nowhere.reply([Chat.of("x"), Chat.of("y")])
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("kind", ["429", "500"])
def test_a_server_that_is_down_after_all_retries_ends_the_run(kind: str, replies: Replies, tmp_path: Path) -> None:
    """The replies before it are kept."""
    before, broken = texts(replies, 0, 2)
    with chat_server(replies, faults={broken: [kind, "always"]}) as server:
        client = server.client(tmp_path, concurrency=1, max_retries=1)
        with pytest.raises(
            UnavailableError,
            match=rf"tiny at .*: HTTP {kind}.* \(retries: 1\)\. Results so far are kept in .*again",
        ):
            client.reply([Chat.of(before), Chat.of(broken)])
        assert client.reply([Chat.of(before)])[0].cached
        assert server.counts()["requests"][broken] == 2


def test_equal_chats_are_asked_once_and_everything_that_matters_is_in_the_key(
    server: ChatServer, replies: Replies, tmp_path: Path
) -> None:
    (text,) = texts(replies, 100, 1)
    client = server.client(tmp_path, usd_per_million_prompt_tokens=2.0, usd_per_million_reply_tokens=8.0)
    first, second = client.reply([Chat.of(text), Chat.of(text)])
    assert not first.cached
    assert second.cached
    assert first.usd == second.usd == pytest.approx((first.prompt_tokens * 2 + first.reply_tokens * 8) / 1e6)
    different = [Chat.of(text, 33), Chat.of(text, temperature=0.5), Chat.of(text, temperature=0.8),
                 Chat.of(text, temperature=0.5, sample=1),
                 Chat.of(text, logprobs=True), Chat.of(text, sample=1)]  # fmt: skip
    assert not any(reply.cached for reply in client.reply(different))
    assert all(reply.cached for reply in client.reply([Chat.of(text), *different]))
    own = ({"options": {"top_p": 0.5}}, {"reasoning_tokens": 5}, {"token_limit_field": "max_completion_tokens"})
    for options in own:
        (reply,) = server.client(tmp_path, **options).reply([Chat.of(text)])
        assert not reply.cached, options
    for options in ({"timeout_seconds": 5.0}, {"concurrency": 1}, {"max_retries": 0}):
        (reply,) = server.client(tmp_path, **options).reply([Chat.of(text)])
        assert reply.cached, options
        assert reply.usd == first.usd
    for options in ({"base_url": server.base_url.replace("127.0.0.1", "localhost")}, {"cache": None}, {"cache": None}):
        (reply,) = server.client(tmp_path, **options).reply([Chat.of(text)])
        assert not reply.cached
    (reply,) = server.client(tmp_path, base_url=f"{server.base_url}/").reply([Chat.of(text)])
    assert (reply.cached, reply.usd) == (True, first.usd)
    assert server.counts()["requests"][text] == 1 + len(different) + 3 + 3
    (unpriced,) = server.client(tmp_path).reply([Chat.of(text, 34)])
    (priced,) = server.client(tmp_path, usd_per_million_prompt_tokens=1.0, usd_per_million_reply_tokens=0.0).reply(
        [Chat.of(text, 34)]
    )
    assert (unpriced.usd, priced.cached, priced.usd) == (None, True, priced.prompt_tokens / 1e6)


def test_a_server_without_key_gets_none(replies: Replies, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TEST_LLM_KEY")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)  # of another service: not sent where it is not named
    (text,) = texts(replies, 0, 1)
    with chat_server(replies, key="", faults={text: ["400", "always"]}) as server:
        for options in ({}, {"key_variable": None}):
            (reply,) = server.client(None, **options).reply([Chat.of(text)])
            assert reply.error == "HTTP 400: no luck with None"


def test_a_key_in_a_reply_is_not_stored(tmp_path: Path) -> None:
    with chat_server({"Echo": {"text": f"It is {KEY}."}}) as echo:
        assert echo.client(tmp_path / "cache").reply([Chat.of("Echo")])[0].text == "It is [key]."
    assert not files_with(KEY, tmp_path)


def test_an_endpoint_without_log_probabilities_is_refused_by_name(replies: Replies, tmp_path: Path) -> None:
    chats = [Chat.of(text, logprobs=True) for text in texts(replies, 0, 20)]
    with chat_server(replies, gives_logprobs=False) as server:
        with pytest.raises(UserError, match=r"tiny at 127\.0\.0\.1:\d+ .*log-probabilities are needed here"):
            server.client(tmp_path).reply(chats)
        assert sum(server.counts()["requests"].values()) <= 8
        (reply,) = server.client(tmp_path).reply([replace(chats[0], logprobs=False)])
        assert reply.logprob is None


@contextmanager
def transformers_serve(model: Path, log: Path) -> Iterator[str]:
    """Run `transformers serve` with one model, whose folder is its name, while the `with` block runs."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = str(Path(sys.executable).with_name("transformers"))
    command = [program, "serve", str(model), "--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
    with log.open("w") as output, subprocess.Popen(command, stdout=output, stderr=output) as process:
        try:
            deadline = time.monotonic() + 120
            while True:
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
                    break
                except OSError:
                    assert process.poll() is None and time.monotonic() < deadline, log.read_text()  # noqa: PT018
                    time.sleep(0.1)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.kill()


@pytest.mark.whole_run
def test_transformers_serve(chat_lm: Path, tmp_path: Path) -> None:
    """The server that comes with transformers: same replies as the model, no log-probabilities, refused models."""
    chats = [Chat.of(text, max_tokens=8) for text, _ in cases(6, seed=5, documents=3)]
    expected = CausalLm(str(chat_lm), "cpu", "fp32").reply(chats)
    with transformers_serve(chat_lm, tmp_path / "log") as base_url:
        client = ChatEndpoint(str(chat_lm), base_url, cache=tmp_path / "cache")
        found = client.reply(chats)
        assert [reply.text for reply in found] == [reply.text for reply in expected]
        assert [reply.prompt_tokens for reply in found] == [reply.prompt_tokens for reply in expected]
        with pytest.raises(UserError, match="log-probabilities are needed"):
            client.reply([Chat.of("x", logprobs=True)])
        (reply,) = ChatEndpoint("another/model", base_url, cache=None).reply([Chat.of("x")])
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
