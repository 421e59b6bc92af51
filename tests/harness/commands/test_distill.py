"""`infer.py distill` with an endpoint that fails in every way.

Files that training reads, counts, costs, and a run after a kill.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from string import Template
from typing import Any

import pytest
import yaml

from datamodules.formats.rewrites import read_rewrites
from models.dmqr.strategies import POOL, Pool
from tests.conftest import NAMES
from tests.helpers.commands import Ended, command
from tests.helpers.fake_server import ANY, KEY, PASSING, ChatServer, chat_server, files_with
from tests.helpers.runs import ROOT

STRATEGIES = ("gqr", "decomposition")
pytestmark = pytest.mark.usefixtures("_key")


@pytest.fixture
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_LLM_KEY", KEY)


def texts(count: int) -> list[str]:
    return [f"who is {NAMES[n % 60]} of the film {NAMES[(7 * n + 1) % 60]} in the city" for n in range(count)]


def made_of(text: str) -> dict[str, str]:
    """What the model makes of a question."""
    words = text.split()
    return {"gqr": f"{words[2]} film {words[6]}", "decomposition": f"{words[2]}; {words[6]}; {words[2]}"}


def said(made: dict[str, str]) -> dict[str, Any]:
    """The model's reply of 5 tokens."""
    lines = "\n".join(f"{POOL[name].title}: {text}" for name, text in made.items())
    return {"text": lines, "finish": "stop", "prompt_tokens": 100, "logprobs": [0.0] * 5}


def prompt(text: str, history: Sequence[str] = (), chosen: bool = False) -> str:
    """The message by which a question is asked; `chosen`: where the model chooses."""
    asked = (Pool().selection_prompt if chosen else Pool().rewriting_prompt)(STRATEGIES, bool(history))
    return Template(asked).substitute(question=text, history="\n".join(f"- {turn}" for turn in history))


def write_rows(folder: Path, questions: Sequence[str], name: str = "train.jsonl") -> None:
    rows = [{"question": text, "golden_answers": ["x"]} for text in questions]
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))


def known(folder: Path, count: int) -> tuple[list[str], dict[str, dict[str, Any]]]:
    """Questions in the training file, and the model's replies."""
    asked = texts(count)
    write_rows(folder, asked)
    return asked, {prompt(text): said(made_of(text)) for text in asked}


def write_model(folder: Path, server: ChatServer, **options: Any) -> None:
    own = {"model": "tiny", "base_url": server.base_url, "key_variable": "TEST_LLM_KEY", "max_retries": 2, **options}
    (folder / "llm.yaml").write_text(
        yaml.safe_dump({"class_path": "harness.llm.endpoint.ChatEndpoint", "init_args": own})
    )


GIVEN = ("distill", "--questions", "train.jsonl", "--layout", "flashrag", "--llm", "llm.yaml", "--out", "out",
         "--strategies", "[gqr,decomposition]")  # fmt: skip
NOTHING = {**said({}), "text": "reason: none fits"}  # a reply without a rewrite: where the model chooses, a choice


def run(folder: Path, *more: str, code: int = 0) -> Ended:
    ended = command(folder, "infer.py", *GIVEN, *more)
    assert ended.code == code, ended.err[-3000:]
    return ended


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "out/rewrites.jsonl").read_text().splitlines()]


def expected(questions: Sequence[str]) -> list[dict[str, str]]:
    """The training examples of answered questions: repeated sub-questions count once."""
    return [
        {"question": text, "strategy": name, "rewrite": queries if name == "gqr" else queries.rpartition(";")[0]}
        for text in questions
        for name, queries in made_of(text).items()
    ]


def manifest(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "out/distillation.json").read_text())


def test_an_endpoint_that_fails_in_every_way_loses_nothing(tmp_path: Path) -> None:
    asked = texts(len(PASSING) + 2)
    broken, unusable = asked[-2:]
    write_rows(tmp_path, [*asked, asked[0], f" {asked[1]}  "])
    replies = {prompt(text): said(made_of(text)) for text in asked}
    replies[prompt(unusable)] = said({"gqr": made_of(unusable)["gqr"]})  # and so is its repaired reply
    replies[ANY] = NOTHING
    faults = {prompt(text): [kind] for text, kind in zip(asked, PASSING, strict=False)}
    faults[prompt(broken)] = ["invalid"] * 3  # all attempts of the first run, none of the second
    with chat_server(replies, faults=faults) as server:
        write_model(tmp_path, server, usd_per_million_prompt_tokens=1.0, usd_per_million_reply_tokens=10.0)
        first = run(tmp_path, code=3)
        found, counted = rows(tmp_path), manifest(tmp_path)
        before = server.counts()["answered"]
        again = run(tmp_path)
        after = server.counts()["answered"]
    examples = expected(asked[:-2])
    assert found == [*examples, expected([unusable])[0]]
    assert counted["repeated"] == 2
    assert counted["rewrites"]["kept"] == {"gqr": len(asked) - 1, "decomposition": len(asked) - 2}
    dropped = {"failed": {"gqr": 1, "decomposition": 1}, "unusable": {"decomposition": 1}, "unchanged": {}}
    assert counted["rewrites"]["dropped"] == dropped
    assert {each["question"] for each in counted["examples_of_dropped"]["failed"]} == {broken}
    costs = counted["costs"]
    assert (costs["model_calls"], costs["repairs"], costs["failed_calls"]) == (len(asked) + 1, 1, 1)
    assert costs["tokens"] == 100 * len(asked)
    assert costs["usd"] == pytest.approx((100 * len(asked) + 50 * len(asked)) / 1e6)
    assert f"1 of {len(asked)} questions failed: " in first.err
    assert "fell back to the question" not in first.err  # counted once, at the end
    # typed again, the failed question alone is asked, and its rewrites come at its place
    assert f"reusing {len(asked) - 1} rewrites" in again.err
    assert {text: after[text] - before.get(text, 0) for text in after if after[text] != before.get(text)} == {
        prompt(broken): 1
    }
    assert rows(tmp_path) == [*examples, *expected([broken]), expected([unusable])[0]]
    assert not (tmp_path / "out.partial").exists()
    read = read_rewrites("rewrites", str(tmp_path / "out/rewrites.jsonl"))
    written = [[*row.values()] for row in rows(tmp_path)]
    assert [[each.question, each.strategy, each.rewrite] for each in read] == written
    assert not files_with(KEY, tmp_path)


@pytest.mark.whole_run
def test_a_kill_loses_nothing_that_was_answered(tmp_path: Path) -> None:
    asked, replies = known(tmp_path, 40)
    with chat_server(replies, delay_seconds=0.1) as server:
        write_model(tmp_path, server, concurrency=2)
        code = f"import harness.rewriters.distilled as r, infer; r.QUESTIONS_AT_ONCE = 4; infer.main({[*GIVEN]!r})"
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        with subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, env=environment) as killed:
            while sum(server.counts()["answered"].values()) < 14:
                assert killed.poll() is None
                time.sleep(0.02)
            killed.send_signal(signal.SIGKILL)
        before = server.counts()["answered"]
        assert 14 <= len(before) < 40
        assert not (tmp_path / "out").exists()
        ended = run(tmp_path)
        after = server.counts()["requests"]
    (reused,) = map(int, re.findall(r"reusing (\d+) rewrites", ended.err))
    assert 12 <= reused <= len(before)
    assert rows(tmp_path) == expected(asked)
    assert 0 <= sum(after.values()) - 40 <= 2  # the requests that were under way; the others are in the response cache
    assert manifest(tmp_path)["costs"]["model_calls"] == 40
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith((".tmp", "out."))] == []


def test_an_endpoint_that_forbids_ends_the_work_and_the_same_command_goes_on(tmp_path: Path) -> None:
    """Without a cache of replies, too: what is answered is in the journal, also for more questions."""
    asked, replies = known(tmp_path, 40)  # two batches
    with chat_server(replies, faults={prompt(asked[35]): ["403"]}) as server:
        write_model(tmp_path, server, cache=None)
        assert "32 of 38 questions are kept" in run(tmp_path, "--limit", "38", code=2).err
        assert "reusing 32 rewrites from earlier runs" in run(tmp_path).err
        requests = server.counts()["requests"]
    assert rows(tmp_path) == expected(asked)
    assert {requests[prompt(text)] for text in asked[:32]} == {1}


def test_other_options_start_over(tmp_path: Path) -> None:
    asked, replies = known(tmp_path, 2)
    with chat_server(replies, faults={prompt(asked[1]): ["400", "always"]}) as server:
        write_model(tmp_path, server)
        run(tmp_path, code=3)
        assert "differs in: max_tokens. Starting over" in run(tmp_path, "--max_tokens", "99", code=3).err


def test_rewrites_that_repeat_the_question_are_counted_and_may_be_left_out(tmp_path: Path) -> None:
    one, two = texts(2)
    write_rows(tmp_path, [one])
    write_rows(tmp_path, [one, two], "more.jsonl")
    replies = {
        prompt(one): said({"gqr": f"{one.capitalize()}?", "decomposition": made_of(one)["decomposition"]}),
        prompt(two): said({"gqr": "none", "decomposition": "  ;"}),
        ANY: said({"gqr": made_of(two)["gqr"]}),
    }
    with chat_server(replies) as server:
        write_model(tmp_path, server)
        for keep, kept, dropped in ("true", 3, {}), ("false", 2, {"gqr": 1}):
            ended = run(tmp_path, "--questions", "[train.jsonl, more.jsonl]", "--keep_unchanged", keep)
            found = manifest(tmp_path)["rewrites"]
            assert len(rows(tmp_path)) == kept
            assert found["with_the_same_words_as_the_question"] == 1
            assert found["dropped"]["unchanged"] == dropped
            assert manifest(tmp_path)["costs"].get("usd") is None
            assert "US dollars unknown" in ended.out


def test_turns_of_a_dialogue_are_asked_with_its_history_and_the_model_may_choose(tmp_path: Path) -> None:
    history = ("where was name1 born", "in the city")
    line = {"question": "where is it", "strategy": "gqr", "rewrite": "old"}
    lines = [line | {"history": [*history]}, line | {"strategy": "kwr", "history": [*history]}, line]
    (tmp_path / "turns.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    chosen = said({"gqr": "city of name1"})
    chosen["text"] += "\nreason: it is short"
    replies = {
        prompt("where is it", history): said({"gqr": "city of name1", "decomposition": "name1"}),
        prompt("where is it"): said({"gqr": "place", "decomposition": "place"}),
        prompt("where is it", history, chosen=True): chosen,
        ANY: NOTHING,
    }
    with chat_server(replies) as server:
        write_model(tmp_path, server)
        for adaptive, expected in (
            ("false", [("city of name1", [*history]), ("name1", [*history]), ("place", []), ("place", [])]),
            ("true", [("city of name1", [*history])]),
        ):
            run(tmp_path, "--questions", "turns.jsonl", "--layout", "rewrites", "--adaptive", adaptive)
            assert [(row["rewrite"], row.get("history", [])) for row in rows(tmp_path)] == expected
            found = manifest(tmp_path)
            assert found["repeated"] == 1
            assert found["rewrites"]["dropped"]["unusable"] == found["failures"] == {}  # none is a choice
