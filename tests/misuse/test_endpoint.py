"""Chat endpoints on the command line: secrets are refused and written nowhere, what fails is one line with the cure."""

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from datamodules.formats.reading import read_questions
from harness.retrievers.bm25 import build_bm25
from tests.helpers.commands import command, refused
from tests.helpers.fake_server import ANY, KEY, chat_server, files_with
from tests.helpers.llm_world import write_rows
from tests.helpers.reports import questions
from tests.misuse.places import DEAD

ENDPOINT = "harness.llm.endpoint.ChatEndpoint"
SECRET = "sk-proj-Abc0123456789defghijkl"  # made up


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Questions, an index of their passages, and a config without a reader; no key in the environment."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "TEST_LLM_KEY"):
        monkeypatch.delenv(name, raising=False)
    write_rows(tmp_path / "dev.json", count=4)
    passages = [p for question in read_questions("hotpotqa", str(tmp_path / "dev.json")) for p in question.passages]
    build_bm25(passages, tmp_path / "index")
    retriever = {"class_path": "harness.retrievers.bm25.Bm25Retriever", "init_args": {"index": "index"}}
    system = {
        "class_path": "harness.systems.retrieve_read.RetrieveRead",
        "init_args": {"retriever": retriever, "k": 2},
    }
    (tmp_path / "plain.yaml").write_text(yaml.safe_dump({"system": system}))
    return tmp_path


def llm(**options: object) -> list[str]:
    """The option `--llm` with those of the client."""
    words = [word for name, value in options.items() for word in (f"--llm.{name}", str(value))]
    return ["--llm", ENDPOINT, *words]


def test_the_environment_s_address_and_key_are_checked_too(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ask = ("ask", "--config", "plain.yaml", "--question", "x", *llm(model="m"))
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://me:{SECRET}@localhost/v1")
    line = refused(
        command(place, "infer.py", *ask), 2, "the environment variable OPENAI_BASE_URL holds a user or password"
    )
    assert SECRET not in line
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "clé secrète")
    line = refused(
        command(place, "infer.py", *ask), 2, "OPENAI_API_KEY holds no key: a key has neither spaces nor accents"
    )
    assert "secr\u00e8te" not in line


def test_no_output_of_a_command_holds_the_key(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither of one that succeeds nor of one that the server refuses while it repeats the key."""
    monkeypatch.setenv("TEST_LLM_KEY", KEY)
    replies = {ANY: {"text": "amber"}}
    evaluate = ("evaluate", "--config", "plain.yaml", "--questions", "dev.json", "--resamples", "100")
    with chat_server(replies) as server:
        client = llm(model="tiny", base_url=server.base_url, key_variable="TEST_LLM_KEY")
        ended = command(place, "infer.py", *evaluate, "--out", "report", *client)
        assert ended.code == 0, ended.err[-3000:]
        assert [each["answer"] for each in questions(place / "report")] == ["amber"] * 4
        assert "tiny at 127.0.0.1" in (place / "report" / "report.md").read_text()
        assert (place / "cache" / "llm" / "replies.sqlite").is_file()
        asked = command(
            place, "infer.py", "ask", "--config", "plain.yaml", "--question", "Where is alfa?", "--json", *client
        )
        assert asked.code == 0, asked.err
        wrong = KEY + "-wrong"
        monkeypatch.setenv("TEST_LLM_KEY", wrong)
        refusal = command(place, "infer.py", *evaluate, "--out", "refused", *client, "--llm.cache", "null")
        refused(
            refusal,
            2,
            "refuses all chats (HTTP 401: Incorrect API key provided: Bearer [key].",
            "export a valid key as TEST_LLM_KEY",
        )
    assert not files_with(KEY, place)
    for each in (ended, asked, refusal):
        assert KEY not in each.out + each.err


def test_no_rewrite_is_kept_where_no_reply_can_be_used(made: Callable[[str], Path], tmp_path: Path) -> None:
    with chat_server({"*": {"text": "I cannot do that."}}, key="") as server:
        model = DEAD | {"init_args": {**DEAD["init_args"], "base_url": server.base_url}}
        (tmp_path / "llm.yaml").write_text(yaml.safe_dump(model))
        options = ("--questions", "questions.json", "--out", str(tmp_path / "out"), "--llm", str(tmp_path / "llm.yaml"))
        ended = command(made("asking"), "infer.py", "distill", *options)
    parts = ("no valid line in the reply after the repairs", "it has no valid line for", "model calls 4")
    refused(ended, 65, "No rewrite was kept", *parts)
    assert not (tmp_path / "out").exists()
