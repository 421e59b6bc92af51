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
PACKED = {"class_path": "harness.readers.t5.PackedReader", "init_args": {"serving": "no-such-folder"}}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, checkpoints: dict[str, Path], chat_lm: Path) -> Path:
    """Questions that the tiny language model can answer, an index of their passages, served models, and configs."""
    root = tmp_path_factory.mktemp("llm")
    write_rows(root / "dev.json", count=8)
    passages = [p for question in read_questions("hotpotqa", str(root / "dev.json")) for p in question.passages]
    build_bm25(passages, root / "index")
    prompt = str(write_prompt(root))
    write_serving(checkpoints["t5"], root / "both", max_tokens=96, temperature=3.0)  # of its generator alone
    llm = {"class_path": LLM, "init_args": {"model": str(chat_lm), "device": "cpu"}}
    (root / "llm.yaml").write_text(yaml.safe_dump(llm))
    reader = {"class_path": "harness.readers.llm.LlmReader", "init_args": {"llm": llm, "prompt": prompt}}
    plain = {"retriever": BM25, "k": 2}
    configs = {
        "plain": system("retrieve_read.RetrieveRead", **plain, reader=PACKED),
        "plain_llm": system("retrieve_read.RetrieveRead", **plain, reader=reader),
        "rerag_llm": system("rerag.ReRag", retriever=None, serving="both", contexts=3, device="cpu", reader=reader),
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


def test_rerag_with_a_language_model_reports_table_6_and_costs_what_the_system_costs(
    place: Path, chat_lm: Path
) -> None:
    """With as many contexts as candidates the study reads what the system reads."""
    evaluate(place, "out", "rerag_llm", more=("--layout", "hotpotqa", "--paper", "nq", "--system.contexts", "4"))
    told, found = report(place / "out"), questions(place / "out")
    assert f"prompt tiny, {Prompt.load(str(place / 'tiny.yaml')).hash}" in str(told["models"])
    rows = {row for table, row, _ in cells(place / "out") if table == "language model"}
    assert rows == {"LLM w/ RE", "LLM w/ retriever", "RE - retriever"}
    asked = list(read_questions("hotpotqa", str(place / "dev.json")))
    values = {passage.title: passage.text.split()[-2] for each in asked for passage in each.passages}
    written = {c["title"]: c["written"] for q in found for c in q["candidates"] if c["written"] is not None}
    assert sum(written[title] == values[title] for title in written) > 0.8 * len(written)
    assert told["study"]["relevance_temperature"] == 1
    assert found[0]["settings"].keys() == {"Baseline", "RE score", "RE context", "RE context, score"}
    assert found[0]["settings"]["Baseline"].keys() == {"generated", "fast"}
    reader = LlmReader(CausalLm(str(chat_lm), device="cpu"), str(place / "tiny.yaml"))
    system = ReRag(None, place / "both", contexts=4, device="cpu", reader=reader)
    for record, answer in zip(found, system.answer(asked), strict=True):
        for name in ("tokens", "reply_tokens", "model_calls"):
            assert record["costs"][name] == pytest.approx(answer.costs[name]), name
            assert record["costs"][name] > 0


def test_the_option_takes_the_reader_s_place_whatever_the_strategy(place: Path, chat_lm: Path) -> None:
    """It equals the system with an LlmReader in its config; its other reader is neither needed nor loaded."""
    more = ("--llm", "llm.yaml", "--limit", "2")  # the prompt is unknown to the model, which writes to the end
    evaluate(place, "option", "plain", "plain_llm", more=more)
    first, own = ((place / "option" / name / "report.md").read_text() for name in ("plain", "plain_llm"))
    assert "prompt drrag, " in first
    assert "prompt tiny, " in own  # stays
    asked = list(read_questions("hotpotqa", str(place / "dev.json")))[:2]
    system = RetrieveRead(Bm25Retriever(place / "index"), 2, LlmReader(CausalLm(str(chat_lm), device="cpu")))
    found = [record["answer"] for record in questions(place / "option/plain")]
    assert found == [answer.text for answer in system.answer(asked)]
    assert cells(place / "option")["costs", "plain", "reply tokens"] > 0


@pytest.mark.parametrize("name", ["plain_llm", "rerag_llm"])
def test_calls_that_fail_are_recorded_with_each_question(place: Path, name: str) -> None:
    (place / "long.yaml").write_text("user: " + "amber " * 4000 + "${documents} ${question}\ndocument: ${text}\n")
    more = ("--limit", "3", "--system.init_args.reader.init_args.prompt", str(place / "long.yaml"))
    evaluate(place, f"failing_{name}", name, more=more, code=SomeFailedError.exit_code)
    assert report(place / f"failing_{name}")["questions"]["failed"].keys() == {"q0", "q1", "q2"}
    for record in questions(place / f"failing_{name}"):
        assert "tokens" in str(record["notes"])
        assert record["costs"]["failed_calls"] >= 1
        assert (record["answer"], record["EM"], record["logprob"]) == ("", 0, None)
        assert not any(text for each in record.get("settings", {}).values() for text in each.values())
