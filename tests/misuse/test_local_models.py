"""Local language models on the command line.

What is refused, in one line, before anything is loaded.
"""

import json
from pathlib import Path

import pytest

from harness.retrievers.bm25 import build_bm25
from harness.strategies.rerag import ReRag
from tests.helpers.commands import command
from tests.helpers.rerag_world import corpus, questions, write_serving

CAUSAL, GENERATOR = "harness.llm.local.CausalLm", "harness.llm.exported_generator.ExportedGenerator"
CONFIG = """strategy:
  class_path: harness.strategies.rerag.ReRag
  init_args: {retriever: {class_path: harness.retrievers.bm25.Bm25Retriever, init_args: {index: bm25}}, serving: both, \
device: cpu}
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, checkpoints: dict[str, Path], plain_lm: Path) -> Path:
    root = tmp_path_factory.mktemp("local")
    build_bm25(corpus(), root / "bm25")
    write_serving(checkpoints["t5"], root / "both")
    write_serving(checkpoints["t5"], root / "estimator", generator=None)
    (root / "t5").symlink_to(checkpoints["t5"])
    (root / "lm").symlink_to(plain_lm)
    (root / "rerag.yaml").write_text(CONFIG)
    return root


def test_the_systems_own_generator_as_language_model_answers_as_the_system(place: Path) -> None:
    """The same answers as harness.readers.t5's, with the prompt that the generator names."""
    from harness.llm.exported_generator import ExportedGenerator
    from harness.readers.llm import LlmReader

    asked = questions(corpus())
    llm = ExportedGenerator(place / "both", "cpu", "fp32")
    plain, plugged = (
        ReRag(None, place / "both", contexts=4, device="cpu", precision="fp32", reader=reader).answer(asked)
        for reader in (None, LlmReader(llm, marginal="thorough"))
    )
    assert [answer.text for answer in plugged] == [answer.text for answer in plain]
    assert [answer.logprob for answer in plugged] == [pytest.approx(answer.logprob, abs=1e-4) for answer in plain]
    shown = command(
        place, "infer.py", "ask", "--config", "rerag.yaml", "--question", "where was name1 born", "--json", "true",
        "--llm", GENERATOR, "--llm.serving", "both", "--llm.device", "cpu",
    )  # fmt: skip
    assert shown.code == 0, shown.err
    assert json.loads(shown.out)["text"]
