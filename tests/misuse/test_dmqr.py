"""Mistakes in the options of multi-query retrieval: one line, before anything is loaded, and nothing is written."""

import json
from pathlib import Path

import pytest
import yaml

from tests.conftest import hotpot_rows
from tests.helpers.commands import Ended, command, refused
from tests.helpers.river_corpus import write_index

BM25 = {"class_path": "harness.retrievers.bm25.Bm25Retriever", "init_args": {"index": "bm25"}}
DEAD = {
    "class_path": "harness.llm.endpoint.ChatEndpoint",
    "init_args": {
        "model": "m",
        "base_url": "http://127.0.0.1:9/v1",
        "key_variable": None,
        "max_retries": 2,
        "cache": None,
    },
}
REWRITER = {"class_path": "harness.rewriters.llm.LlmRewriter", "init_args": {"llm": DEAD}}
KEY = "--strategy.init_args."


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, checkpoints: dict[str, Path]) -> Path:
    root = tmp_path_factory.mktemp("dmqr")
    write_index(root)
    (root / "t5").symlink_to(checkpoints["t5"])
    (root / "dev.json").write_text(json.dumps(hotpot_rows(2)))
    made = [{"question": "alba river", "strategy": name, "rewrite": "alba"} for name in ("gqr", "kwr")]
    (root / "made.jsonl").write_text("".join(json.dumps(row) + "\n" for row in made))
    (root / "pool.yaml").write_text("strategies: [{name: a, title: 'A: B', description: d, guideline: g}]")
    prompted = {"class_path": "harness.rewriters.prompted.PromptRewriter", "init_args": {"llm": DEAD, "prompt": "hyde"}}
    for name, options in {
        "rrf": {"fusion": "rrf", "rewriter": REWRITER},
        "rerank": {"rewriter": REWRITER},
        "hyde": {"fusion": "rrf", "rewriter": prompted, "original": False},
        "file": {
            "fusion": "rrf",
            "rewriter": {"class_path": "harness.rewriters.file.FileRewriter", "init_args": {"rewrites": "made.jsonl"}},
        },
    }.items():
        config = {"class_path": "harness.strategies.dmqr.Dmqr", "init_args": {"retriever": BM25, **options}}
        (root / f"{name}.yaml").write_text(yaml.safe_dump({"strategy": config}))
    rm3 = {"class_path": "harness.retrievers.rm3.Rm3Retriever", "init_args": {"retriever": {**BM25}}}
    plain = {"class_path": "harness.strategies.retrieve_read.RetrieveRead", "init_args": {"retriever": rm3}}
    (root / "rm3.yaml").write_text(yaml.safe_dump({"strategy": plain}))
    return root


def run(place: Path, command_: str, config: str, *more: str) -> Ended:
    own = {"ask": ("--question", "alba river"), "evaluate": ("--questions", "dev.json", "--out", "out")}
    return command(place, "infer.py", command_, "--config", f"{config}.yaml", *own[command_], *more)


@pytest.mark.parametrize(
    ("config", "options", "code", "part"),
    [
        ("rrf", ("k", "0"), 2, "k must be at least 1, got 0"),
        ("rrf", ("per_query", "0"), 2, "per_query must be at least 1, got 0"),
        ("rrf", ("rank_constant", "-1"), 2, "rank_constant must be at least 0, got -1"),
        ("rrf", ("fusion", "mean"), 2, "fusion"),
        ("rrf", ("serving", "t5"), 2, "fusion rrf uses no scorer: omit serving, or set fusion to rerank"),
        ("rerank", (), 2, "fusion rerank needs one scorer: name a folder with an estimator by serving"),
        ("rerank", ("serving", "nowhere"), 66, "nowhere does not exist: no serving folder there, and no cross-encoder"),
        ("rerank", ("serving", "t5"), 2, "t5 is a T5ForConditionalGeneration, not a cross-encoder"),
        ("rrf", ("judged_by", "gqr"), 2,
            "judged_by is 'gqr'; allowed with this fusion, rewriter and strategies: question."),
        ("rrf", ("strategies", "[gqr,hyde]"), 2,
            "strategies contains 'hyde'; allowed: gqr, kwr, par, cce, decomposition"),
        ("rrf", ("strategies", "[]"), 2, "strategies is []; it must name at least one, each once"),
        ("rrf", ("strategies", "[kwr,kwr]"), 2, "it must name at least one, each once"),
        ("rrf", ("rewriter.init_args.repairs", "-1"), 2, "repairs must be at least 0, got -1"),
        ("rrf", ("rewriter.init_args.max_tokens", "0"), 2, "max_tokens must be at least 1, got 0"),
        ("rrf", ("rewriter.init_args.pool", "none.yaml"), 66, "pool: none.yaml does not exist"),
        ("rrf", ("rewriter.init_args.pool", "pool.yaml"), 65,
            "pool.yaml is no pool: the title 'A: B' must not have a colon"),
        ("file", (), 2, "made.jsonl has no rewrites by the strategy 'par'; it has: gqr, kwr."),
        ("file", ("rewriter.init_args.rewrites", "none.jsonl"), 66, "none.jsonl does not exist"),
        ("file", ("rewriter.init_args.rewrites", "dev.json"), 65, "dev.json"),
        ("hyde", (), 2, "the prompt hyde is one strategy: set strategies to [hyde]"),
        ("hyde", ("rewriter.init_args.prompt", "hide"), 2, "prompt is 'hide'; allowed: "),
        ("hyde", ("rewriter.init_args.queries", "0"), 2, "queries must be at least 1, got 0"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_in_one_line(
    place: Path, config: str, options: tuple[str, ...], code: int, part: str
) -> None:
    given = (f"{KEY}{options[0]}", options[1]) if options else ()
    ended = run(place, "ask", config, *given)
    refused(ended, code, part)
    assert ended.out == ""


@pytest.mark.parametrize(
    ("options", "code", "part"),
    [
        (("rows", "[OQR, best]"), 2, "study.rows contains 'best'; allowed: OQR, OQR deep, RM3, RM3 deep, gqr, kwr, "
                                     "par, cce, DMQR-RAG, w/o gqr"),
        (("read", "[gqr]", "--study.rows", "[kwr]"), 2,
            "study.read contains 'gqr'; allowed: OQR, OQR deep, kwr, DMQR-RAG."),
        (("deep", "0"), 2, "deep must be at least 1, got 0"),
        (("bm25", "nowhere"), 66, "nowhere: no such index"),
        (("row", "[OQR]"), 2, "study.row is no option of dmqr's study; allowed: rows, rewriters, bm25, deep, read"),
        (("rewriters", "{a: nowhere.yaml}"), 66,
            "study.rewriters.a: nowhere.yaml does not exist: give the config file of a system"),
        (("rewriters", "{a: rm3.yaml}"), 2, "study.rewriters.a: strategy"),
        (("rewriters", "{a: [1]}"), 2, "study.rewriters.a is [1]: give the config file of a system"),
        (("rewriters", "{a: hyde.yaml}"), 2, "the prompt hyde is one strategy: set strategies to [hyde]"),
        (("rewriters", "{a: {class_path: harness.rewriters.llm.Llm}}"), 2, "study.rewriters.a: rewriter"),
        (("rewriters", "{a: {class_path: harness.rewriters.trained.TrainedRewriter, init_args: {serving: nowhere}}}"),
            66, "nowhere"),
        (("rewriters", "{RM3: rrf.yaml}"), 2, "study.rewriters: 'RM3' is the name of another row: choose another one"),
        (("rewriters", "{kwr: rrf.yaml}"), 2, "'kwr' is the name of another row"),
        (("rewriters", "{dmqr: rrf.yaml}"), 2, "'dmqr' is the name of another row"),
    ],
)  # fmt: skip
def test_wrong_options_of_the_study(place: Path, options: tuple[str, ...], code: int, part: str) -> None:
    """The rewriter's endpoint does not answer: a check after the first rewrite would say that."""
    refused(run(place, "evaluate", "rrf", f"--study.{options[0]}", *options[1:]), code, part)
    assert not (place / "out").exists()
    assert not (place / "out.partial").exists()


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (("terms", "0"), "terms must be at least 1"),
        (("original_weight", "2"), "original_weight must lie in [0, 1], got 2"),
        (("common", "0"), "common must be above 0"),
    ],
)
def test_wrong_options_of_rm3(place: Path, options: tuple[str, str], part: str) -> None:
    refused(run(place, "ask", "rm3", f"{KEY}retriever.init_args.{options[0]}", options[1]), 2, part)
    assert run(place, "ask", "rm3").code == 0


@pytest.mark.parametrize("asked", ["ask", "evaluate"])
def test_an_endpoint_that_cannot_be_reached_ends_the_command_in_one_line(place: Path, asked: str) -> None:
    ended = run(place, asked, "rrf")
    refused(ended, 69, "m at 127.0.0.1:9 cannot be reached")
    assert ended.out == ""
    assert not (place / "out").exists()


def test_the_classes_are_listed(place: Path) -> None:
    ended = command(place, "infer.py", "ask", "--config", "rrf.yaml", f"{KEY}rewriter.help")
    assert ended.code == 0
    assert "harness.rewriters.llm.LlmRewriter" in ended.out
    assert "harness.rewriters.prompted.PromptRewriter" in ended.out
    listed = command(place, "infer.py", "ask", "--strategy.help")
    assert "harness.strategies.dmqr.Dmqr" in listed.out
    retrievers = command(place, "infer.py", "ask", "--config", "rrf.yaml", f"{KEY}retriever.help")
    assert "harness.retrievers.multi_query.MultiQueryRetriever" in retrievers.out
    assert "harness.retrievers.rm3.Rm3Retriever" in retrievers.out
