"""`infer.py ask --turns` with a system whose rewriter reads the earlier turns.

What is asked, searched, read and printed.
"""

import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from string import Template
from typing import Any

import pytest
import yaml

from common.records import clean
from models.dmqr.strategies import Pool
from tests.helpers.commands import Ended, done
from tests.helpers.fake_server import ANY, chat_server
from tests.helpers.river_corpus import write_index

STRATEGIES = ("gqr", "kwr")
LINES = ("alba river", "what ends there", "and it?")


def prompt(text: str, *turns: str) -> str:
    asked = Pool().rewriting_prompt(STRATEGIES, bool(turns))
    return Template(asked).substitute(question=text, history="\n".join(f"- {turn}" for turn in turns))


def said(gqr: str, kwr: str) -> dict[str, Any]:
    text = f"General Search Rewriting: {gqr}\nKeyword Rewriting: {kwr}"
    return {"text": text, "finish": "stop", "prompt_tokens": 9, "logprobs": [0.0]}


REPLIES = {  # the reader answers with the last word of the first passage
    prompt(LINES[0]): said("alba river", "alba, river"),
    prompt(LINES[1], "alba river", "brune"): said("brune ends ocean", "brune"),
    prompt(LINES[2], "brune ends ocean", "ocean"): said("dorn ends lake", "dorn"),  # --turns 1
    ANY: said("elbe mountain", "elbe"),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    root = tmp_path_factory.mktemp("dialogue")
    bm25 = {"class_path": "harness.retrievers.bm25.Bm25Retriever", "init_args": {"index": str(write_index(root))}}
    with chat_server(REPLIES, key="") as server:
        options = {"model": "tiny", "base_url": server.base_url, "key_variable": None}
        llm = {"class_path": "harness.llm.endpoint.ChatEndpoint", "init_args": options}
        for name, word, strategies in (("own", "llm.LlmRewriter", STRATEGIES), ("hyde", "prompted.PromptRewriter", ())):
            made_by = {"llm": llm} if strategies else {"llm": llm, "prompt": "hyde"}
            parts = {
                "retriever": bm25, "fusion": "rrf", "k": 2, "strategies": [*(strategies or ("hyde",))],
                "rewriter": {"class_path": f"harness.rewriters.{word}", "init_args": made_by},
                "reader": {"class_path": "tests.helpers.echo_reader.FirstPassage"},
            }  # fmt: skip
            system = {"class_path": "harness.systems.dmqr.Dmqr", "init_args": parts}
            (root / f"{name}.yaml").write_text(yaml.safe_dump({"system": system}))
        yield root


def ask(place: Path, monkeypatch: pytest.MonkeyPatch, *options: str, lines: Sequence[str] = LINES) -> Ended:
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines)))
    return done(place, "infer.py", "ask", *options)


def records(ended: Ended) -> list[dict[str, Any]]:
    return [json.loads(line) for line in ended.out.splitlines()]


def test_the_rewriter_reads_the_last_turns_and_every_query_stands_alone(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("--config", "own.yaml", "--turns", "1")
    first, second, third = records(ask(place, monkeypatch, *options, "--json"))
    assert first["question"] == LINES[0]
    assert "typed" not in first
    for record, typed, text, words in (
        (second, LINES[1], "brune ends ocean", "brune"),
        (third, LINES[2], "dorn ends lake", "dorn"),
    ):
        assert (record["question"], record["typed"]) == (text, typed)
        assert [each["query"] for each in record["notes"]["queries"]] == [text, words]
        assert record["costs"]["rewriter_calls"] == 1
    assert [record["text"] for record in (first, second, third)] == ["brune", "ocean", "lake"]
    shown = clean(ask(place, monkeypatch, *options).out)
    assert f"(Rewritten by the system's rewriter, typed: {LINES[2]}) Question: dorn ends lake" in shown


def test_turns_are_put_before_a_question_whose_rewriter_reads_none(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options, lines = ("--config", "hyde.yaml", "--turns", "2"), [*LINES, "again?"]
    turns = records(ask(place, monkeypatch, *options, "--json", lines=lines))
    said = [word for line, record in zip(lines, turns, strict=True) for word in (line, record["text"])]  # by turns
    expected = [" ".join([*said[max(0, 2 * number - 4) : 2 * number], line]) for number, line in enumerate(lines)]
    assert [record["question"] for record in turns] == expected
    assert [record.get("typed") for record in turns] == [None, *lines[1:]]
    shown = clean(ask(place, monkeypatch, *options).out)
    assert f"(Earlier turns are put before the question, typed: {LINES[1]}) Question: {LINES[0]}" in shown
