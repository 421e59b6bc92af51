"""The configs of the papers' settings: parsed with their base, and built."""

from pathlib import Path
from typing import Any

import pytest
from pytorch_lightning.cli import instantiate_module

from tests.docs.documents import OVERLAYS, ROOT, parser_of, runs_of
from trainers.drrag import DrRagTrainer
from trainers.rerag import ReRagTrainer

TRAIN = ROOT / "configs/train"
RE_RAG_CAUSAL = TRAIN / "overlays/rerag_nq_qwen_4b.yaml"
NO_TABLE = ("dmqr_", "packed_", RE_RAG_CAUSAL.stem)  # of no paper's table
PAPERS = [["--config", str(TRAIN / f"{name}.yaml")] for name in ("rerag_nq", "rerag_nq_baseline")]
PAPERS += [run for each in OVERLAYS if not each.stem.startswith(NO_TABLE) for run in runs_of(each)]
NAMES = ["rerag-nq", "rerag-nq-baseline", "drrag-bigbird-base", "drrag-bigbird-large", "drrag-longformer",
    "rerag-nq-large", "rerag-nq-mixed", "rerag-triviaqa", "rerag-triviaqa-large"]  # fmt: skip


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def parsed(run: list[str]) -> dict[str, Any]:
    """The options of a run."""
    return parser_of("train").parse_args(["fit", *run]).fit.as_dict()


def test_every_model_of_the_papers_tables_has_a_config() -> None:
    options = [parsed(run)["model"]["init_args"] for run in PAPERS]
    assert {(each["estimator"], each["generator"]) for each in options if "estimator" in each} == {
        ("google-t5/t5-base", "google-t5/t5-base"),
        (None, "google-t5/t5-base"),  # the baseline of Table 7
        ("google-t5/t5-large", "google-t5/t5-base"),
        ("google-t5/t5-large", "google-t5/t5-large"),
    }
    assert {each["pretrained"] for each in options if "pretrained" in each} == {
        "google/bigbird-roberta-base", "google/bigbird-roberta-large", "allenai/longformer-base-4096",
    }  # fmt: skip


@pytest.mark.parametrize("run", PAPERS, ids=NAMES)
def test_its_trainer_is_built(run: list[str], checkpoints: dict[str, Path]) -> None:
    whole = parsed(run)
    options = whole["model"]["init_args"]
    assert whole["early_stopping"]["patience"] is None  # all epochs
    if "estimator" in options:
        assert (whole["trainer"]["max_epochs"], options["text"]["max_answer_tokens"]) == (20, 25)
        parts = {part: str(checkpoints["t5"]) for part in ("estimator", "generator") if options[part]}
        module: Any = instantiate_module(ReRagTrainer, {**options, **parts}).load()
        assert module.relevance == ("estimator" if "estimator" in parts else "retriever")
        assert module.generator.encode.max_tokens == 256
        return
    family = "longformer" if "longformer" in options["pretrained"] else "bert"
    small = {"max_tokens": 96} if family == "longformer" else {}
    module = instantiate_module(DrRagTrainer, {**options, "pretrained": str(checkpoints[family]), **small}).load()
    assert module.classifier.network.config.hidden_dropout_prob == 0.1


def test_a_causal_lm_is_both_parts_of_re_rag(chat_lm: Path) -> None:
    (run,) = runs_of(RE_RAG_CAUSAL)
    options = parsed(run)
    assert (options["name"], options["trainer"]["max_epochs"]) == ("rerag-nq-qwen-4b", 2)
    parts = {part: str(chat_lm) for part in ("estimator", "generator")}
    # words of a small vocabulary
    words = {"text": {**options["model"]["init_args"]["text"], "true_word": "A", "false_word": "B"}}
    module: Any = instantiate_module(ReRagTrainer, {**options["model"]["init_args"], **parts, **words}).load()
    assert module.estimator.network is module.generator.network
    trained = [name for name, weight in module.named_parameters() if weight.requires_grad]
    assert trained
    assert all(".lora_" in name for name in trained)
