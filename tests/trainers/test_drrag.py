"""What users launch: the real command line on a real (tiny) model; resume, DDP, accumulation, refusals."""

import json
import re
import shutil
from pathlib import Path

import pytest
import torch
from transformers import AutoModel

from models.drrag.triple_classifier import TripleClassifier
from tests.helpers import tiny_runs
from tests.helpers.console import strangers
from tests.helpers.recorder import HARDLY, RECORDED, recorded
from tests.helpers.runs import assert_repeated, done, fit, fit_here, metrics, trained, weights

TRAINER = "drrag"


def write_config(folder: Path, model: Path, data: Path, dropout: float = 0.1) -> None:
    """The configuration of a tiny run on a file in HotpotQA's layout."""
    rates = {"learning_rate": 2e-3, "head_learning_rate": 2e-3}
    options = {"pretrained": str(model), "max_tokens": 96, "dropout": dropout, "optimizer": rates}
    train = [{"layout": "hotpotqa", "path": str(data)}]
    questions = {"train": train, "validation_fraction": 0.3, "tokens_per_step": 500}
    tiny_runs.write_config(folder, "drrag.DrRagTrainer", options, "drrag.DrRagData", questions, "val/auc")


def test_a_dry_run_leaves_its_name_free_and_overfitting_repeats_its_batches(
    checkpoints, hotpot_file, tmp_path, monkeypatch, capsys
) -> None:
    write_config(tiny_runs.use(tmp_path, monkeypatch), checkpoints["bert"], hotpot_file, dropout=0.0)
    tiny_runs.fit("tiny", "--trainer.fast_dev_run", "true")
    told = capsys.readouterr().out
    assert "fast_dev_run keeps no checkpoint" in told
    assert "config.yaml" not in told
    hardly = ("--model.optimizer.learning_rate", HARDLY, "--model.optimizer.head_learning_rate", HARDLY)
    folder = tiny_runs.fit("tiny", "--trainer.overfit_batches", "2", *RECORDED, *hardly)
    gradients = [step["gradients"]["classifier.network.classifier.out_proj.weight"] for step in recorded(folder)]
    assert [torch.allclose(gradient, gradients[0], atol=1e-6) for gradient in gradients] == [True, False, True, False]


def test_a_run_learns_exports_and_repeats(workplace) -> None:
    run = fit(workplace, "--trainer.max_epochs", "14", "--trainer.check_val_every_n_epoch", "7",
              "--trainer.enable_progress_bar", "true")  # fmt: skip
    out = done(run)
    assert strangers(run.stderr) == strangers(out) == []
    folder = workplace / "checkpoints/tiny"
    for name in ("config.yaml", "env.json", "audit.json", "best.ckpt", "last.ckpt.sha256", "plots/confusion.png"):
        assert (folder / name).is_file(), name
    assert json.loads((folder / "state.json").read_text())["status"] == "done"
    inputs = json.loads((folder / "env.json").read_text())["inputs"]  # a resumed run compares them
    assert {Path(name).name for name in inputs} >= {"hotpot.json", "bert"}
    assert re.search(r"^positives +54$", out, re.MULTILINE)
    assert "largest difference to the module" in out
    validations = [row for row in metrics(workplace) if "val/auc" in row]
    assert max(row["val/auc"] for row in validations) > 0.8  # chance is 0.5
    assert not list(folder.rglob(".tmp-*"))

    served = TripleClassifier.load(folder / "serving", device="cpu")
    best = max(validations, key=lambda row: row["val/auc"])
    assert served.threshold == pytest.approx(best["val/threshold"], abs=1e-6)
    assert json.loads((folder / "serving/serving.json").read_text())["not_learned"] == []
    assert "not learned" not in (folder / "serving/README.md").read_text()
    shutil.copy(folder / "config.yaml", workplace / "config.yaml")
    fit_here(workplace, "--name", "again")
    assert_repeated(weights(workplace, "again"), weights(workplace, "tiny"))


def test_frozen_embeddings_stay_as_they_were(workplace, checkpoints) -> None:
    fit_here(workplace, "--model.freeze_embeddings", "true", "--trainer.max_epochs", "1")
    served = TripleClassifier.load(workplace / "checkpoints/tiny/serving", device="cpu").network
    before = AutoModel.from_pretrained(checkpoints["bert"])
    assert torch.equal(served.get_input_embeddings().weight, before.get_input_embeddings().weight)
    dense = "encoder.layer.0.output.dense.weight"
    assert not torch.equal(served.bert.get_parameter(dense), before.get_parameter(dense))


@pytest.mark.parametrize("model", ["bert", "longformer"])
def test_an_adapter_is_trained_with_the_head_and_merged_into_the_export(model, workplace, checkpoints) -> None:
    fit_here(workplace, "--model.pretrained", str(checkpoints[model]), "--model.lora.rank", "2", "--trainer.max_epochs",
             "2", "--model.optimizer.learning_rate", "0.05", "--model.gradient_checkpointing", "true")  # fmt: skip
    best = weights(workplace, "tiny", "best.ckpt")
    state = {name.removeprefix("classifier.network."): value for name, value in best.items()}
    served = TripleClassifier.load(workplace / "checkpoints/tiny/serving", device="cpu").network
    before = dict(AutoModel.from_pretrained(checkpoints[model]).state_dict())
    learned = []
    for name, value in served.base_model.state_dict().items():
        if "pooler" in name or name not in before or before[name].shape != value.shape:  # positions are widened
            continue
        stem, _, kind = f"{served.base_model_prefix}.{name}".rpartition(".")
        a, b = (state.get(f"{stem}.lora_{part}.default.weight") for part in "AB")
        if kind == "weight" and a is not None:
            torch.testing.assert_close(state[f"{stem}.base_layer.weight"], before[name], rtol=0, atol=0)
            torch.testing.assert_close(value - before[name], 32 / 2 * b @ a)
            learned.append(bool(b.abs().max() > 0))
        elif model == "bert" and name == "encoder.layer.1.output.LayerNorm.bias":
            assert (value - before[name]).abs().max() > 0.01  # centered for the new head
        else:
            torch.testing.assert_close(value, before[name], rtol=0, atol=0)
    # the last layer of a Longformer attends globally for its head alone: what it has for local attention learns nothing
    assert any(learned) if model == "longformer" else learned and all(learned)


def test_a_run_shorter_than_the_logging_interval_logs_its_first_and_last_step(workplace) -> None:
    fit_here(workplace, "--trainer.log_every_n_steps", "50", "--trainer.max_steps", "5",
             "--trainer.check_val_every_n_epoch", "null", "--trainer.val_check_interval", "2")  # fmt: skip
    rows = metrics(workplace)
    assert [row["step"] for row in trained(rows)] == [0, 4]
    assert [row["step"] for row in rows if "val/auc" in row] == [1, 3]  # after the second and the fourth step
    assert [row["step"] for row in rows if "train/device/samples_per_sec" in row] == [4]
