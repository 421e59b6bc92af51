"""Mistakes in what `infer.py ask` is asked: one line each, before an index or a model is loaded.

Ctrl-C at the prompt.
"""

import io
import os
import pty
import select
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from common.errors import INTERRUPTED
from tests.docs.documents import ROOT, parser_of
from tests.helpers.commands import command, refused

PLAIN = ("--system", "harness.systems.retrieve_read.RetrieveRead")
BM25 = ("--system.retriever", "harness.retrievers.bm25.Bm25Retriever", "--system.retriever.index", "bm25")


def test_no_question_at_all(made: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    typed = ("infer.py", "ask", *PLAIN, *BM25)
    for stdin in (io.StringIO(""), io.StringIO(" \n\n"), None):
        monkeypatch.setattr(sys, "stdin", stdin)
        refused(command(made("asking"), *typed), 2, "no question is given: type --question TEXT")


def test_every_option_that_is_true_or_false_can_be_given_without_a_value() -> None:
    index = ["index", "--corpus", "[a.jsonl]", "--kind", "bm25", "--out", "x"]
    given = {"": False, "--overwrite": True, "--overwrite --bm25.k1 2": True, "--overwrite false": False}
    for words, value in given.items():
        assert parser_of("infer").parse_args([*index, *words.split()]).index.overwrite is value


@pytest.mark.parametrize("text", ["null", "~", "&a", "Null", "# x", "*a", "[1", "{a: b}", "5", "'x'", "a: b", ""])
def test_a_typed_question_is_no_yaml(text: str) -> None:
    typed = ["ask", *PLAIN, *BM25, "--question", text]
    assert parser_of("infer").parse_args(typed).ask.question == text
    assert parser_of("infer").parse_args(typed[:-2]).ask.question is None


def test_ctrl_c_at_the_prompt_ends_with_one_line(made: Callable[[str], Path]) -> None:
    """A real terminal: the prompt, an answer, and Ctrl-C as the terminal sends it."""
    arguments = ["ask", *PLAIN, *BM25[:-1], str(made("asking") / "bm25")]
    process, master = pty.fork()
    if process == 0:
        os.execv(sys.executable, [sys.executable, str(ROOT / "infer.py"), *arguments])
    shown = b""

    def until(text: bytes) -> None:
        nonlocal shown
        deadline = time.monotonic() + 60
        while text not in shown:
            assert time.monotonic() < deadline, shown
            if select.select([master], [], [], 1)[0]:
                shown += os.read(master, 4096)

    try:
        until(b"ends): ")
        os.write(master, b"alba river\n")
        until(b"Cost: ")
        shown = shown.partition(b"Cost: ")[2]
        until(b"ends): ")
        time.sleep(0.5)  # a signal between the prompt and the system call that reads would wait for the next line
        os.write(master, b"\x03")
        until(b"interrupted.")
        _, status = os.waitpid(process, 0)
    finally:
        os.close(master)  # ends a process that still waits
    assert os.waitstatus_to_exitcode(status) == INTERRUPTED
    assert b"\ninfer.py: interrupted." in shown
    assert b"Traceback" not in shown
