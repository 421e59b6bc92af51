"""The configs of the papers' settings: parsed with their base, built, and with the memory that their headers name."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from models.lora import add_adapter
from tests.docs.documents import OVERLAYS, ROOT, parser_of, with_base
from tests.helpers.official_models import official
from trainers.drrag import DrRagTrainer
from trainers.rerag import ReRagTrainer
from trainers.run.memory_estimate import memory_plan

RE_RAG_NQ = ROOT / "configs/train/rerag_nq.yaml"
REWRITERS = [config for config in OVERLAYS if config.stem.startswith("dmqr_")]  # of no paper's table
PAPERS = [
    RE_RAG_NQ,
    ROOT / "configs/train/rerag_nq_baseline.yaml",
    *(each for each in OVERLAYS if each not in REWRITERS),
]
GPUS = 8
named = {"ids": lambda config: config.stem}


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def parsed(config: Path) -> dict[str, Any]:
    """The options of a run with this config."""
    configs = with_base(config) if config in OVERLAYS else ["--config", str(config)]
    return parser_of("train").parse_args(["fit", *configs]).fit.as_dict()


def test_every_model_of_the_papers_tables_has_a_config() -> None:
    options = [parsed(config)["model"]["init_args"] for config in PAPERS]
    assert {(each["estimator"], each["generator"]) for each in options if "estimator" in each} == {
        ("google-t5/t5-base", "google-t5/t5-base"),
        (None, "google-t5/t5-base"),  # the baseline of Table 7
        ("google-t5/t5-large", "google-t5/t5-base"),
        ("google-t5/t5-large", "google-t5/t5-large"),
    }
    assert {each["pretrained"] for each in options if "pretrained" in each} == {
        "google/bigbird-roberta-base", "google/bigbird-roberta-large", "allenai/longformer-base-4096",
    }  # fmt: skip


@pytest.mark.parametrize("config", PAPERS, **named)
def test_a_run_is_named_as_its_config_and_makes_all_its_epochs(config: Path) -> None:
    options = parsed(config)
    assert options["name"] == config.stem.replace("_", "-")
    assert options["early_stopping"]["patience"] is None
    if options["model"]["class_path"].endswith("ReRagTrainer"):
        assert options["trainer"]["max_epochs"] == 20
        assert options["model"]["init_args"]["max_answer_tokens"] == 25


@pytest.mark.parametrize("config", PAPERS, **named)
def test_its_trainer_is_built(config: Path, checkpoints: dict[str, Path]) -> None:
    options = parsed(config)["model"]["init_args"]
    if "estimator" in options:
        parts = {part: str(checkpoints["t5"]) for part in ("estimator", "generator") if options[part]}
        module: Any = ReRagTrainer(**{**options, **parts})
        assert module.relevance == ("estimator" if "estimator" in parts else "retriever")
        assert module.generator.encode.max_tokens == 256
        return
    family = "longformer" if "longformer" in options["pretrained"] else "bert"
    small = {"max_tokens": 96} if family == "longformer" else {}
    module = DrRagTrainer(**{**options, "pretrained": str(checkpoints[family]), **small})
    assert module.classifier.network.config.hidden_dropout_prob == 0.1


@pytest.mark.parametrize("config", PAPERS, **named)
def test_its_header_names_the_planned_memory(config: Path) -> None:
    header = re.sub(r"\n#\s*", " ", config.read_text().partition("\nname:")[0])
    found = re.search(r"Memory +(\d+) GiB on each (?:of 8 )?GPUs? for (.*?): estimated .*?, not measured", header)
    assert found, header
    options = parsed(config)
    model, data = options["model"]["init_args"], options["data"]["init_args"]
    if "estimator" in model:
        networks = {part: official(model[part]) for part in ("estimator", "generator") if model[part]}
        questions = data["questions_per_step"] // GPUS // options["trainer"]["accumulate_grad_batches"]
        assert found[2] == {1: "one question at a time", 2: "two questions at a time"}[questions]
        tokens = model["max_tokens"]
        rows, per_bucket = questions * data["contexts"], data["tokens_per_bucket"] // tokens
        batches = [(min(per_bucket, rows - done), tokens) for done in range(0, rows, per_bucket)]
    else:
        networks = {"classifier": official(model["pretrained"])}
        rows, tokens = map(int, re.findall(r"\d+", found[2])[:2])
        assert rows * tokens == pytest.approx(data["tokens_per_step"] / GPUS, rel=0.02)
        batches = [(rows, tokens)]
    half = options["trainer"]["precision"] == "bf16-mixed"
    answers = {"estimator": 1, "generator": model.get("max_answer_tokens", 0)}
    _, planned = memory_plan(networks, batches, answers, half, False, torch.device("cuda"), GPUS)
    assert int(found[1]) == pytest.approx(planned / 2**30, rel=0.03, abs=0.5)  # a whole number of GiB


@pytest.mark.parametrize("config", REWRITERS, **named)
def test_the_header_of_a_rewriter_names_the_planned_memory(config: Path) -> None:
    header = re.sub(r"\n#\s*", " ", config.read_text().partition("\nname:")[0])
    found = re.search(
        r"Memory +(\d+) GiB for (\d+) \w+ of (\d+) tokens(?: with rewrites of (\d+))?[^:]*: estimated", header
    )
    assert found, header
    options = parsed(config)
    assert options["name"] == config.stem.replace("_", "-")
    model = options["model"]["init_args"]
    assert int(found[2]) == options["data"]["init_args"]["rewrites_per_step"]
    network = official(model["pretrained"])
    with torch.device("meta"):
        add_adapter(
            network, model["pretrained"], model["lora_rank"], model["lora_alpha"], model["lora_dropout"],
            model["lora_targets"]
        )  # fmt: skip
    batches, answers = [(int(found[2]), int(found[3]))], {"rewriter": int(found[4] or 0)}
    _, planned = memory_plan({"rewriter": network}, batches, answers, True, False, torch.device("cuda"))
    assert int(found[1]) == pytest.approx(planned / 2**30, rel=0.03, abs=0.5)  # a whole number of GiB
