"""`--llm` and language-model readers on the command line.

Ask with several turns, evaluate, compare with local readers.
"""

from pathlib import Path
from typing import Any

import pytest
import yaml

from common.errors import SomeFailedError
from datamodules.formats.reading import read_questions
from harness.llm.local import CausalLm
from harness.llm.prompts import Prompt
from harness.readers.llm import LlmReader
from harness.retrievers.bm25 import Bm25Retriever, build_bm25
from harness.systems.rerag import ReRag
from harness.systems.retrieve_read import RetrieveRead
from tests.helpers.commands import Ended, command
from tests.helpers.llm_world import write_prompt, write_rows
from tests.helpers.reports import cells, questions, report
from tests.helpers.rerag_world import write_serving

LLM = "harness.llm.local.CausalLm"
BM25 = {"class_path": "harness.retrievers.bm25.Bm25Retriever", "init_args": {"index": "index"}}
PACKED = {"class_path": "harness.readers.t5.PackedReader", "init_args": {"serving": "packed", "device": "cpu"}}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, checkpoints: dict[str, Path], chat_lm: Path) -> Path:
    """Questions that the tiny language model can answer, an index of their passages, served models, and configs."""
    root = tmp_path_factory.mktemp("llm")
    write_rows(root / "dev.json", count=8)
    passages = [p for question in read_questions("hotpotqa", str(root / "dev.json")) for p in question.passages]
    build_bm25(passages, root / "index")
    prompt = str(write_prompt(root))
    write_serving(checkpoints["t5"], root / "both", max_tokens=96, temperature=3.0)  # of its generator alone
    write_serving(checkpoints["t5"], root / "packed", False, "packed", max_tokens=96)
    llm = {"class_path": LLM, "init_args": {"model": str(chat_lm), "device": "cpu"}}
    (root / "llm.yaml").write_text(yaml.safe_dump(llm))
    reader = {"class_path": "harness.readers.llm.LlmReader", "init_args": {"llm": llm, "prompt": prompt}}
    rerag = {"retriever": None, "serving": "both", "contexts": 3, "device": "cpu"}
    plain = {"retriever": BM25, "k": 2}
    configs = {
        "plain": system("retrieve_read.RetrieveRead", **plain, reader=PACKED),
        "plain_llm": system("retrieve_read.RetrieveRead", **plain, reader=reader),
        "rerag": system("rerag.ReRag", **rerag),
        "rerag_llm": system("rerag.ReRag", **rerag, reader=reader),
        "drrag_llm": system("drrag.DrRag", retriever=BM25, selection={"method": "qdc", "k": 2}, reader=reader),
    }
    for name, config in configs.items():
        (root / f"{name}.yaml").write_text(yaml.safe_dump(config))
    return root


def system(class_path: str, **options: Any) -> dict[str, Any]:
    return {"system": {"class_path": f"harness.systems.{class_path}", "init_args": options}}


def evaluate(place: Path, out: str, *configs: str, more: tuple[str, ...] = (), code: int = 0) -> Ended:
    given = [word for name in configs for word in ("--config", f"{name}.yaml")]
    typed = ("evaluate", *given, "--questions", "dev.json", "--out", out, "--resamples", "100")
    ended = command(place, "infer.py", *typed, *more)
    assert ended.code == code, ended.err[-3000:]
    return ended


def test_rerag_with_a_language_model_reports_table_6(place: Path) -> None:
    evaluate(place, "rerag_out", "rerag_llm", more=("--layout", "hotpotqa", "--paper", "nq"))
    told = report(place / "rerag_out")
    assert f"prompt tiny, {Prompt.load(str(place / 'tiny.yaml')).hash}" in str(told["models"])
    rows = {row for table, row, _ in cells(place / "rerag_out") if table == "language model"}
    assert rows == {"LLM w/ RE", "LLM w/ retriever", "RE - retriever"}
    found = questions(place / "rerag_out")
    written = {c["title"]: c["written"] for q in found for c in q["candidates"] if c["written"] is not None}
    asked = read_questions("hotpotqa", str(place / "dev.json"))
    values = {passage.title: passage.text.split()[-2] for each in asked for passage in each.passages}
    assert sum(written[title] == values[title] for title in written) > 0.8 * len(written)
    assert found[0]["costs"]["reply_tokens"] > 0
    assert told["study"]["relevance_temperature"] == 1
    assert found[0]["settings"].keys() == {"Baseline", "RE score", "RE context", "RE context, score"}
    assert found[0]["settings"]["Baseline"].keys() == {"generated", "fast"}


def test_the_study_costs_what_the_system_costs(place: Path, chat_lm: Path) -> None:
    """With as many contexts as candidates both read the same."""
    evaluate(place, "all_out", "rerag_llm", more=("--system.contexts", "4"))
    reader = LlmReader(CausalLm(str(chat_lm), device="cpu"), str(place / "tiny.yaml"))
    system = ReRag(None, place / "both", contexts=4, device="cpu", reader=reader)
    asked = list(read_questions("hotpotqa", str(place / "dev.json")))
    for record, answer in zip(questions(place / "all_out"), system.answer(asked), strict=True):
        for name in ("tokens", "reply_tokens", "model_calls"):
            assert record["costs"][name] == pytest.approx(answer.costs[name]), name


def test_local_readers_and_language_models_are_compared_by_one_command(place: Path) -> None:
    evaluate(place, "compared", "plain", "plain_llm", "rerag", "rerag_llm", "drrag_llm")
    found = report(place / "compared")
    assert list(found["systems"]) == ["plain", "plain_llm", "rerag", "rerag_llm", "drrag_llm"]
    costs = cells(place / "compared")
    assert costs["costs", "plain_llm", "reply tokens"] > 0
    assert ("costs", "plain", "reply tokens") not in costs  # its reader counts none
    for name in ("plain_llm", "rerag_llm", "drrag_llm"):
        assert "reader: " in (place / "compared" / name / "report.md").read_text()
    assert "reader: " not in (place / "compared" / "plain" / "report.md").read_text()


def test_the_option_takes_the_reader_s_place_whatever_the_strategy(place: Path, chat_lm: Path) -> None:
    """It equals the system with an LlmReader in its config; its other reader is neither needed nor loaded."""
    config = yaml.safe_load((place / "plain.yaml").read_text())
    config["system"]["init_args"]["reader"]["init_args"]["serving"] = "no-such-folder"
    (place / "missing.yaml").write_text(yaml.safe_dump(config))
    more = ("--llm", "llm.yaml", "--limit", "2")  # the prompt is unknown to the model, which writes to the end
    evaluate(place, "option", "missing", more=more)
    assert "prompt drrag, " in (place / "option" / "report.md").read_text()
    asked = list(read_questions("hotpotqa", str(place / "dev.json")))[:2]
    system = RetrieveRead(Bm25Retriever(place / "index"), 2, LlmReader(CausalLm(str(chat_lm), device="cpu")))
    assert [q["answer"] for q in questions(place / "option")] == [answer.text for answer in system.answer(asked)]
    evaluate(place, "option_own", "plain_llm", more=more)  # its prompt stays
    assert "prompt tiny, " in (place / "option_own" / "report.md").read_text()


@pytest.mark.parametrize("name", ["plain_llm", "drrag_llm", "rerag_llm"])
def test_calls_that_fail_are_recorded_with_each_question(place: Path, name: str) -> None:
    (place / "long.yaml").write_text("user: " + "amber " * 4000 + "${documents} ${question}\ndocument: ${text}\n")
    config = yaml.safe_load((place / f"{name}.yaml").read_text())
    config["system"]["init_args"]["reader"]["init_args"]["prompt"] = str(place / "long.yaml")
    (place / "failing.yaml").write_text(yaml.safe_dump(config))
    evaluate(place, f"failing_{name}", "failing", more=("--limit", "3"), code=SomeFailedError.exit_code)
    assert report(place / f"failing_{name}")["questions"]["failed"].keys() == {"q0", "q1", "q2"}
    for record in questions(place / f"failing_{name}"):
        assert "tokens" in str(record["notes"])
        assert record["costs"]["failed_calls"] >= 1
        assert (record["answer"], record["EM"], record["logprob"]) == ("", 0, None)
        assert not any(text for each in record.get("settings", {}).values() for text in each.values())
