"""Multi-query retrieval on the command line, with a language model that rewrites by rule.

Ask, evaluate, compare, plan.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from datamodules.formats.reading import read_questions
from harness.retrievers.bm25 import build_bm25
from tests.helpers.commands import Ended, done
from tests.helpers.llm_world import reading_rows
from tests.helpers.reports import cells, questions, report
from tests.helpers.rerag_world import write_serving
from tests.helpers.scripted_lm import KNOWN, POOL, STRATEGIES, UNUSABLE, rewrites
from tests.helpers.tiny_lm import question

BM25 = {"class_path": "harness.retrievers.bm25.Bm25Retriever", "init_args": {"index": "index"}}
LLM = {"class_path": "tests.helpers.scripted_lm.RewritingLm"}
ASKED = question("river", KNOWN[1])
EVALUATED = ("--config", "dmqr.yaml", "--questions", "dev.json", "--resamples", "50")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, checkpoints: dict[str, Path]) -> Path:
    """Questions that the model can rewrite, an index of their passages, an estimator, and configs."""
    root = tmp_path_factory.mktemp("multi")
    (root / "pool.yaml").write_text(yaml.safe_dump(POOL))
    rows = [
        {**row, "question": question("river", known)}
        for row, known in zip(reading_rows(len(KNOWN)), KNOWN, strict=True)
    ]
    (root / "dev.json").write_text(json.dumps(rows))
    asked = read_questions("hotpotqa", str(root / "dev.json"))
    build_bm25([passage for each in asked for passage in each.passages], root / "index")
    write_serving(checkpoints["t5"], root / "serving", max_tokens=96)
    (root / "llm.yaml").write_text(yaml.safe_dump(LLM))
    by_llm = {"llm": "llm.yaml", "pool": "pool.yaml", "repairs": 0}
    rewriter = {"class_path": "harness.rewriters.llm.LlmRewriter", "init_args": by_llm}
    adaptive = {**rewriter, "init_args": {**by_llm, "adaptive": True}}
    own = {"strategies": list(STRATEGIES), "serving": "serving", "device": "cpu", "k": 3}
    for name, options in {
        "dmqr": {**own, "rewriter": rewriter},
        "adaptive": {**own, "rewriter": adaptive},
        "oqr": own,
        "rrf": {**own, "serving": None, "fusion": "rrf", "rewriter": rewriter},
    }.items():
        write_config(root, name, **options)
    return root


def write_config(place: Path, name: str, **options: Any) -> None:
    config = {"class_path": "harness.systems.dmqr.Dmqr", "init_args": {"retriever": BM25, **options}}
    (place / f"{name}.yaml").write_text(yaml.safe_dump({"system": config}))


def run(place: Path, *arguments: str) -> Ended:
    return done(place, "infer.py", *arguments)


def evaluated(place: Path, out: str, *study: str) -> Ended:
    return run(place, "evaluate", *EVALUATED, "--out", out, *study)


def test_ask_shows_the_queries_that_the_model_has_written(place: Path) -> None:
    made = rewrites(KNOWN[1])
    record = json.loads(run(place, "ask", "--config", "rrf.yaml", "--question", ASKED, "--json").out)
    assert [each["query"] for each in record["notes"]["queries"]] == [ASKED, made["kwr"], made["par"]]
    assert record["costs"]["retriever_calls"] == 3
    assert record["costs"]["model_calls"] == 0


def test_its_own_choice_comes_with_its_reason(place: Path) -> None:
    record = json.loads(run(place, "ask", "--config", "adaptive.yaml", "--question", ASKED, "--json").out)
    assert [each["made_by"] for each in record["notes"]["queries"]] == [["question"], ["kwr"]]
    assert record["notes"]["reason"] == "river"
    both = question("river", KNOWN[0])
    record = json.loads(run(place, "ask", "--config", "adaptive.yaml", "--question", both, "--json").out)
    assert [each["made_by"] for each in record["notes"]["queries"]] == [["question"], ["kwr"], ["par"]]


def test_evaluate_counts_fallbacks_and_names_model_and_prompt(place: Path) -> None:
    assert "2 of 8 rewrites fell back to the question: " in evaluated(place, "out").err
    assert any(each.startswith("rewriter: scripted") for each in report(place / "out")["models"])
    found = questions(place / "out")
    for known, record in zip(KNOWN, found, strict=True):
        fallen = known == UNUSABLE
        assert record["notes"].get("fallbacks", {}).keys() == ({*STRATEGIES} if fallen else set())
        assert record["costs"].get("fallbacks", 0) == 2 * fallen
        assert record["costs"]["rewriter_calls"] == 1
        assert len(record["notes"]["queries"]) == (1 if fallen else 3)


def test_several_rewriters_are_measured_in_one_run(place: Path) -> None:
    given = "{chosen: adaptive.yaml, fused: rrf.yaml, shallow: shallow.yaml, again: dmqr.yaml}"
    config = yaml.safe_load((place / "oqr.yaml").read_text())
    config["system"]["init_args"]["per_query"] = 2
    (place / "shallow.yaml").write_text(yaml.safe_dump(config))
    rows = "[chosen, fused, shallow, again, 'again, par']"
    evaluated(place, "several", "--study.rewriters", given, "--study.rows", rows)
    found = cells(place / "several")
    shown = {row for table, row, _ in found if table == "methods"}
    assert shown == {"OQR", "OQR deep", "chosen", "fused", "shallow", "again", "again, par", "DMQR-RAG"}
    for row, searches in {"chosen": 2, "DMQR-RAG": 2.5, "again, par": 1.75, "shallow": 1}.items():
        assert found["costs of the methods", row, "retriever calls"] == searches
    for row, scored in {"fused": 0, "shallow": 2}.items():
        assert found["costs of the methods", row, "model calls"] == scored
    assert found["rewrites", "chosen", "mean"] == 1
    for value in ("H@3 %", "P@3 %", "queries", "passages"):
        assert found["methods", "again", value] == found["methods", "DMQR-RAG", value]
    made = report(place / "several")["study"]
    assert made["methods"]["shallow"]["per_query"] == 2
    assert made["further indexes"] == {}  # all search with the system's own retriever
    assert [file.name for file in (place / "several").glob("*.png")] == ["recall.png"]


def test_a_rewriting_retriever_stands_under_another_system(place: Path) -> None:
    inner = yaml.safe_load((place / "rrf.yaml").read_text())["system"]["init_args"]
    options = {name: inner[name] for name in ("retriever", "rewriter", "strategies", "fusion")}
    around = {"class_path": "harness.retrievers.multi_query.MultiQueryRetriever", "init_args": options}
    own = {"retriever": around, "serving": "serving", "contexts": 3, "device": "cpu"}
    config = {"class_path": "harness.systems.rerag.ReRag", "init_args": own}
    (place / "under.yaml").write_text(yaml.safe_dump({"system": config}))
    record = json.loads(run(place, "ask", "--config", "under.yaml", "--question", ASKED, "--json").out)
    assert len(record["evidence"]) == 3
