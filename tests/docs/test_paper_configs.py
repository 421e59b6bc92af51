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
NO_TABLE = ("dmqr_", "packed_", "reranker_", "drrag_m", RE_RAG_CAUSAL.stem)  # of no paper's table
PAPERS = [["--config", str(TRAIN / f"{name}.yaml")] for name in ("rerag_nq", "rerag_nq_baseline")]
PAPERS += [run for each in OVERLAYS if not each.stem.startswith(NO_TABLE) for run in runs_of(each)]


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def parsed(run: list[str]) -> dict[str, Any]:
    """The options of a run."""
    return parser_of("train").parse_args(["fit", *run]).fit.as_dict()


def test_every_model_of_the_papers_tables_has_a_config_and_its_trainer_is_built(checkpoints: dict[str, Path]) -> None:
    models = set()
    for whole in map(parsed, PAPERS):
        options = whole["model"]["init_args"]
        assert whole["early_stopping"]["patience"] is None  # all epochs
        if "estimator" in options:
            models.add((options["estimator"], options["generator"]))
            assert (whole["trainer"]["max_epochs"], options["text"]["max_answer_tokens"]) == (20, 25)
            parts = {part: str(checkpoints["t5"]) for part in ("estimator", "generator") if options[part]}
            module: Any = instantiate_module(ReRagTrainer, {**options, **parts}).load()
            assert module.relevance == ("estimator" if "estimator" in parts else "retriever")
            assert module.generator.encode.max_tokens == 256
        else:
            models.add(options["pretrained"])
            small = {"pretrained": str(checkpoints["bert"])}
            if "longformer" in options["pretrained"]:
                small = {"pretrained": str(checkpoints["longformer"]), "max_tokens": 96}
            module = instantiate_module(DrRagTrainer, {**options, **small}).load()
            assert module.classifier.network.config.hidden_dropout_prob == 0.1
    base, large = "google-t5/t5-base", "google-t5/t5-large"
    assert models == {
        (base, base), (None, base), (large, base), (large, large),  # of no estimator: the baseline of Table 7
        "google/bigbird-roberta-base", "google/bigbird-roberta-large", "allenai/longformer-base-4096",
    }  # fmt: skip
    assert len(PAPERS) == 9


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
