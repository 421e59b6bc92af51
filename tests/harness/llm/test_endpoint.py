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

import pytest

from common.chat import Chat, Reply
from common.errors import UnavailableError, UserError
from harness.llm.endpoint import FILE, ChatEndpoint
from harness.llm.local import CausalLm
from harness.runtime.store import Store
from tests.helpers.fake_server import ALWAYS, ANY, KEY, SLOW, chat_server, files_with
from tests.helpers.tiny_lm import cases

AMBER = {ANY: {"text": "amber", "prompt_tokens": 7}}
pytestmark = pytest.mark.usefixtures("_key")


def chats(*texts: str, **options) -> list[Chat]:
    return [Chat.of(text, **options) for text in texts]


def test_no_server_holds_up_an_attempt() -> None:
    """Neither by silence nor by a byte now and then, in the headers or in the body."""
    with chat_server(AMBER, faults={kind: [kind] for kind in SLOW}) as server:
        server.client(None).reply(chats("x"))  # imports the library, which takes seconds
        began = time.monotonic()
        found = server.client(None, timeout_seconds=0.5, max_retries=0).reply(chats(*SLOW))
        assert time.monotonic() - began < 3
    assert [reply.error for reply in found] == ["no complete response within 0.5 s"] * len(SLOW)
    assert all(0.5 <= reply.seconds < 2 for reply in found)


def test_what_no_chat_can_pass_ends_the_run_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with chat_server(AMBER, faults={kind: [kind, ALWAYS] for kind in ("403", "quota")}) as server:
        cases = [
            ({}, "403", r"HTTP 403: no luck with Bearer \[key\]\): export a valid key as TEST_LLM_KEY\."),
            ({}, "quota", r"You exceeded your current quota\): the account has no credit left"),
            ({"base_url": server.base_url[:-3]}, "x", r"Not Found\): check model \(tiny\) and base_url .* /v1\."),
            ({"key_variable": None}, "y", r"401: .*: export a valid key as a variable, and name it with key_variable"),
        ]
        for options, text, message in cases:
            with pytest.raises(UserError, match=message) as raised:
                server.client(tmp_path, concurrency=1, **options).reply(chats(text, "z"))
            check_nowhere(raised.value, tmp_path)
        monkeypatch.setenv("TEST_LLM_KEY", "sk-wrong-0123456789abcdef")
        with pytest.raises(UserError, match=r"Incorrect API key provided: Bearer \[key\]\. You can find") as raised:
            server.client(tmp_path, concurrency=1).reply(chats("v", "w"))
        check_nowhere(raised.value, tmp_path, "sk-wrong-0123456789abcdef")
        assert server.counts()["requests"] == dict.fromkeys(("403", "quota", "y", "v"), 1)


def check_nowhere(error: BaseException, folder: Path, key: str = KEY) -> None:
    """A key is in no file, and in no text of an error or of those that led to it."""
    assert not files_with(key, folder)
    seen: BaseException | None = error
    while seen is not None:
        assert key not in repr(seen)
        assert "\n" not in str(seen)
        seen = seen.__cause__ or seen.__context__


@pytest.mark.parametrize("kind", ["429", "500"])
def test_a_server_that_is_down_after_all_retries_ends_the_run(kind: str, tmp_path: Path) -> None:
    """The replies before it are kept, also where the server then dies."""
    with chat_server(AMBER, faults={"broken": [kind, ALWAYS]}) as server:
        client = server.client(tmp_path, concurrency=1, max_retries=1)
        for text, why in (("broken", f"HTTP {kind}"), ("other", "no connection: ")):
            message = rf"tiny at .*{why}.* \(retries: 1\)\. Results so far are kept in .*again"
            with pytest.raises(UnavailableError, match=message):
                client.reply(chats("before", text))
            (kept,) = client.reply(chats("before"))
            assert (kept.cached, kept.text) == (True, "amber")
            if text == "broken":
                assert server.counts()["requests"][text] == 2
                server.server.die()


def test_equal_chats_are_asked_once_and_everything_that_matters_is_in_the_key(tmp_path: Path) -> None:
    with chat_server(AMBER) as server:

        def ask(*chats: Chat, **options) -> list[Reply]:
            return server.client(tmp_path, **options).reply(chats or [Chat.of("x")])

        first, second = ask(*[Chat.of("x")] * 2, usd_per_million_prompt_tokens=2.0, usd_per_million_reply_tokens=8.0)
        assert (first.cached, second.cached) == (False, True)
        assert first.usd == second.usd == pytest.approx((first.prompt_tokens * 2 + first.reply_tokens * 8) / 1e6)
        different = [Chat.of("x", 33), Chat.of("x", temperature=0.5), Chat.of("x", temperature=0.8),
                     Chat.of("x", temperature=0.5, sample=1),
                     Chat.of("x", logprobs=True), Chat.of("x", sample=1)]  # fmt: skip
        assert not any(reply.cached for reply in ask(*different))
        assert all(reply.cached for reply in ask(Chat.of("x"), *different))
        elsewhere = {"base_url": server.base_url.replace("127.0.0.1", "localhost")}
        own = ({"options": {"top_p": 0.5}}, {"reasoning_tokens": 5}, {"token_limit_field": "max_completion_tokens"})
        for options in (*own, elsewhere, {"cache": None}, {"cache": None}):
            assert not ask(**options)[0].cached, options
        slash = {"base_url": f"{server.base_url}/"}
        for options in ({"timeout_seconds": 5.0}, {"concurrency": 1}, {"max_retries": 0}, slash):
            assert [(reply.cached, reply.usd) for reply in ask(**options)] == [(True, first.usd)], options
        assert server.counts()["requests"]["x"] == 1 + len(different) + 3 + 3
        (unpriced,) = ask(Chat.of("x", 34))
        (priced,) = ask(Chat.of("x", 34), usd_per_million_prompt_tokens=1.0, usd_per_million_reply_tokens=0.0)
        assert (unpriced.usd, priced.cached, priced.usd) == (None, True, priced.prompt_tokens / 1e6)


def test_a_reply_is_kept_as_it_came_and_read_as_it_is_meant(tmp_path: Path) -> None:
    """Also one that an earlier version kept; one that says nothing is asked again."""
    said = {"a": "Paris<|im_end|>", "b": "<think>x</think>yes</s>\nQuestion: Is it?\nno", "c": "<|im_end|>"}
    read = {"a": "Paris", "b": "yes", "c": ""}
    asked = [replace(Chat.of(text), one_line=text == "b") for text in said]
    replied = {text: {"text": reply} for text, reply in said.items()}
    with chat_server(replied) as server:
        for round_ in range(2):
            replies = server.client(tmp_path).reply(asked)
            assert [reply.text for reply in replies] == [*read.values()]
            assert [(reply.cached, bool(reply.error)) for reply in replies] == [(round_ > 0, False)] * 2 + [
                (False, True)
            ]
        assert server.counts()["requests"] == {"a": 1, "b": 1, "c": 2}
        client = server.client(tmp_path)
        with Store(tmp_path / FILE, "") as store:
            kept = [store.find(client._name(chat)) for chat in asked]
            assert [each and each[0]["text"] for each in kept] == [said["a"], said["b"], None]
            store.store(client._name(asked[2]), {**kept[0][0], "text": said["c"]})  # type: ignore[index]
        replied["c"] = {"text": "Lyon"}
        found = [server.client(tmp_path).reply(asked[2:])[0] for _ in range(2)]
    assert [(reply.text, reply.cached) for reply in found] == [("Lyon", False), ("Lyon", True)]


def test_a_key_is_sent_to_its_own_server_alone_and_stored_nowhere(tmp_path: Path, monkeypatch) -> None:
    with chat_server({"Echo": {"text": f"It is {KEY}."}}) as echo:
        assert echo.client(tmp_path / "cache").reply(chats("Echo"))[0].text == "It is [key]."
    assert not files_with(KEY, tmp_path)
    monkeypatch.delenv("TEST_LLM_KEY")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)  # of another service: not sent where it is not named
    with chat_server(AMBER, key="", faults={"x": ["400", ALWAYS]}) as server:
        for options in ({}, {"key_variable": None}):
            assert server.client(None, **options).reply(chats("x"))[0].error == "HTTP 400: no luck with None"


def test_an_endpoint_without_log_probabilities_is_refused_by_name(tmp_path: Path) -> None:
    with chat_server(AMBER, gives_logprobs=False) as server:
        with pytest.raises(UserError, match=r"tiny at 127\.0\.0\.1:\d+ .*log-probabilities are needed here"):
            server.client(tmp_path).reply(chats(*map(str, range(20)), logprobs=True))
        assert sum(server.counts()["requests"].values()) <= 8
        assert server.client(tmp_path).reply(chats("0"))[0].logprob is None


@pytest.mark.whole_run
def test_transformers_serve(chat_lm: Path, tmp_path: Path) -> None:
    """The server that comes with transformers: same replies as the model, no log-probabilities, refused models."""
    asked = chats(*(text for text, _ in cases(6, seed=5, documents=3)), max_tokens=8)
    expected = CausalLm(str(chat_lm), "cpu", "fp32").reply(asked)
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
        said = [[(reply.text, reply.prompt_tokens) for reply in each] for each in (client.reply(asked), expected)]
        assert said[0] == said[1]
        with pytest.raises(UserError, match="log-probabilities are needed"):
            client.reply(chats("x", logprobs=True))
        (reply,) = ChatEndpoint("another/model", client.base_url, cache=None).reply(chats("x"))
        assert reply.error.startswith("HTTP 400: Server is pinned to ")


def test_ctrl_c_ends_the_run_and_the_replies_are_kept(tmp_path: Path) -> None:
    """Also while the server keeps a request waiting."""
    with chat_server(AMBER, faults={"waiting": ["stall", ALWAYS]}, delay_seconds=0.1) as server:
        client, asked, interrupted = server.client(tmp_path, concurrency=3), chats("waiting", *map(str, range(199))), []

        def interrupt() -> None:
            """After a few replies, however long the client's library takes to import."""
            while sum(server.counts()["answered"].values()) < 4:
                time.sleep(0.05)
            interrupted.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=interrupt, daemon=True).start()
        with pytest.raises(KeyboardInterrupt):
            client.reply(asked)
        assert time.monotonic() - interrupted[0] < 3
        done = [*server.counts()["answered"]]
        again = server.client(tmp_path).reply(chats(*done))
    assert 0 < len(done) < 30
    assert sum(reply.cached for reply in again) >= len(done) - 2
