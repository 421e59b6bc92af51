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
from tests.helpers.commands import done
from tests.helpers.llm_world import reading_rows
from tests.helpers.reports import cells, questions, report
from tests.helpers.rerag_world import write_serving
from tests.helpers.scripted_lm import KNOWN, POOL, STRATEGIES, UNUSABLE, rewrites
from tests.helpers.tiny_lm import question

BM25 = {"class_path": "harness.retrievers.bm25.Bm25Retriever", "init_args": {"index": "index"}}
LLM = {"class_path": "tests.helpers.scripted_lm.RewritingLm"}


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
    own = {"retriever": BM25, "strategies": list(STRATEGIES), "serving": "serving", "device": "cpu", "k": 3}
    fused = {"retriever": BM25, "rewriter": rewriter, "strategies": list(STRATEGIES), "fusion": "rrf"}
    around = {"class_path": "harness.retrievers.multi_query.MultiQueryRetriever", "init_args": fused}
    for name, word, options in (
        ("dmqr", "dmqr.Dmqr", {**own, "rewriter": rewriter}),
        ("adaptive", "dmqr.Dmqr", {**own, "rewriter": adaptive}),
        ("shallow", "dmqr.Dmqr", {**own, "per_query": 2}),
        ("rrf", "dmqr.Dmqr", {**fused, "k": 3}),
        ("under", "rerag.ReRag", {"retriever": around, "serving": "serving", "contexts": 3, "device": "cpu"}),
    ):
        config = {"class_path": f"harness.systems.{word}", "init_args": options}
        (root / f"{name}.yaml").write_text(yaml.safe_dump({"system": config}))
    return root


def ask(place: Path, config: str, known: str = KNOWN[1]) -> dict[str, Any]:
    typed = ("--config", f"{config}.yaml", "--question", question("river", known), "--json")
    return json.loads(done(place, "infer.py", "ask", *typed).out)


def test_ask_shows_the_queries_that_the_model_has_written_or_chosen(place: Path) -> None:
    record, made = ask(place, "rrf"), rewrites(KNOWN[1])
    queries = [each["query"] for each in record["notes"]["queries"]]
    assert queries == [question("river", KNOWN[1]), made["kwr"], made["par"]]
    assert (record["costs"]["retriever_calls"], record["costs"]["model_calls"]) == (3, 0)
    for known, chosen in ((KNOWN[1], [["kwr"]]), (KNOWN[0], [["kwr"], ["par"]])):
        record = ask(place, "adaptive", known)
        assert [each["made_by"] for each in record["notes"]["queries"]] == [["question"], *chosen]
        assert record["notes"]["reason"] == "river"
    assert len(ask(place, "under")["evidence"]) == 3  # of a rewriting retriever under another system


def test_several_rewriters_are_measured_in_one_run_and_fallbacks_counted(place: Path) -> None:
    given = "{chosen: adaptive.yaml, fused: rrf.yaml, shallow: shallow.yaml, again: dmqr.yaml}"
    rows = "[chosen, fused, shallow, again, 'again, par']"
    study = ("--study.rewriters", given, "--study.rows", rows)
    typed = ("--config", "dmqr.yaml", "--questions", "dev.json", "--resamples", "50", "--out", "several", *study)
    assert "2 of 8 rewrites fell back to the question: " in done(place, "infer.py", "evaluate", *typed).err
    found, made = cells(place / "several"), report(place / "several")
    shown = {row for table, row, _ in found if table == "methods"}
    assert shown == {"OQR", "OQR deep", "chosen", "fused", "shallow", "again", "again, par", "DMQR-RAG"}
    for row, searches in {"chosen": 2, "DMQR-RAG": 2.5, "again, par": 1.75, "shallow": 1}.items():
        assert found["costs of the methods", row, "retriever calls"] == searches
    for row, scored in {"fused": 0, "shallow": 2}.items():
        assert found["costs of the methods", row, "model calls"] == scored
    assert found["rewrites", "chosen", "mean"] == 1
    for value in ("H@3 %", "P@3 %", "queries", "passages"):
        assert found["methods", "again", value] == found["methods", "DMQR-RAG", value]
    assert any(each.startswith("rewriter: scripted") for each in made["models"])
    assert made["study"]["methods"]["shallow"]["per_query"] == 2
    assert made["study"]["further indexes"] == {}  # all search with the system's own retriever
    assert [file.name for file in (place / "several").glob("*.png")] == ["recall.png"]
    for known, record in zip(KNOWN, questions(place / "several"), strict=True):
        fallen = known == UNUSABLE
        assert record["notes"].get("fallbacks", {}).keys() == ({*STRATEGIES} if fallen else set())
        assert (record["costs"].get("fallbacks", 0), record["costs"]["rewriter_calls"]) == (2 * fallen, 1)
        assert len(record["notes"]["queries"]) == (1 if fallen else 3)
