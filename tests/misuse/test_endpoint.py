"""Chat endpoints on the command line: secrets are refused and written nowhere, what fails is one line with the cure."""

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from datamodules.formats.reading import read_questions
from harness.retrievers.bm25 import build_bm25
from tests.helpers.commands import command, done, refused
from tests.helpers.fake_server import ANY, KEY, chat_server, files_with
from tests.helpers.llm_world import write_rows
from tests.helpers.reports import questions
from tests.misuse.places import DEAD


def test_no_output_of_a_command_holds_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither of one that succeeds nor of one that the server refuses while it repeats the key."""
    write_rows(tmp_path / "dev.json", count=4)
    rows = read_questions("hotpotqa", str(tmp_path / "dev.json"))
    build_bm25([passage for question in rows for passage in question.passages], tmp_path / "index")
    bm25 = "harness.retrievers.bm25.Bm25Retriever --system.retriever.index index"
    system = f"--system harness.systems.retrieve_read.RetrieveRead --system.k 2 --system.retriever {bm25}".split()
    monkeypatch.setenv("TEST_LLM_KEY", KEY)
    evaluate = ("evaluate", *system, "--questions", "dev.json", "--resamples", "100")
    with chat_server({ANY: {"text": "amber"}}) as server:
        asked_of = f"--llm.model tiny --llm.base_url {server.base_url} --llm.key_variable TEST_LLM_KEY"
        client = ["--llm", DEAD["class_path"], *asked_of.split()]
        ended = done(tmp_path, "infer.py", *evaluate, "--out", "report", *client)
        assert [each["answer"] for each in questions(tmp_path / "report")] == ["amber"] * 4
        assert "tiny at 127.0.0.1" in (tmp_path / "report" / "report.md").read_text()
        assert (tmp_path / "cache" / "llm" / "replies.sqlite").is_file()
        asked = done(tmp_path, "infer.py", "ask", *system, "--question", "Where is alfa?", "--json", *client)
        monkeypatch.setenv("TEST_LLM_KEY", KEY + "-wrong")
        refusal = command(tmp_path, "infer.py", *evaluate, "--out", "refused", *client, "--llm.cache", "null")
    said = "refuses all chats (HTTP 401: Incorrect API key provided: Bearer [key]."
    refused(refusal, 2, said, "export a valid key as TEST_LLM_KEY")
    assert not files_with(KEY, tmp_path)
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
