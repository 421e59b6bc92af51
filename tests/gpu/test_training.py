"""Training on GPUs by several ranks over NCCL; on the CPU the same body runs over Gloo."""

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.helpers.devices import cpu_and_gpu, training_options
from tests.helpers.runs import done, fit, fit_here, metrics, trained, weights
from tests.trainers import test_drrag, test_rerag_training


def write_config(system: str, folder: Path, checkpoints: dict[str, Path], hotpot_file: Path) -> None:
    if system == "drrag":
        test_drrag.write_config(folder, checkpoints["bert"], hotpot_file, dropout=0.0)
    else:
        test_rerag_training.write_config(folder, checkpoints["t5"], dropout=0.0)


@cpu_and_gpu("training by DDP over NCCL, on two GPUs where there are two", pytest.mark.slow)
@pytest.mark.parametrize("system", ["drrag", "rerag"])
def test_ranks_train_as_one(
    system: str, device: str, tmp_path: Path, checkpoints: dict[str, Path], hotpot_file: Path
) -> None:
    write_config(system, tmp_path, checkpoints, hotpot_file)
    ranks = min(2, torch.cuda.device_count()) if device == "cuda" else 2
    fit_here(tmp_path, "--name", "one", *training_options(device))
    done(fit(tmp_path, "--name", "ranks", *training_options(device, ranks), torchrun=ranks))
    one, several = (trained(metrics(tmp_path, name)) for name in ("one", "ranks"))
    rows: list[tuple[dict[str, Any], dict[str, Any]]] = list(zip(several, one, strict=True))
    assert len(rows) >= 3
    for ours, theirs in rows[
        :2
    ]:  # later steps differ more: AdamW turns a rounding error of a small gradient into a step
        assert ours == pytest.approx(theirs, rel=1e-3), ours["step"]
    assert (tmp_path / "checkpoints/ranks/serving/serving.json").is_file()


@cpu_and_gpu("training by FSDP2 over NCCL, on two GPUs where there are two", pytest.mark.slow)
@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
def test_divided_weights_train_as_whole_ones(
    precision: str, device: str, tmp_path: Path, checkpoints: dict[str, Path], hotpot_file: Path
) -> None:
    write_config("drrag", tmp_path, checkpoints, hotpot_file)
    ranks = min(2, torch.cuda.device_count()) if device == "cuda" else 1
    options = ("--trainer.precision", precision, "--trainer.max_epochs", "1")
    fit_here(tmp_path, "--name", "whole", *options, *training_options(device))
    done(
        fit(tmp_path, "--name", "divided", *options, *training_options(device, ranks), torchrun=ranks, strategy="fsdp2")
    )
    one, several = (trained(metrics(tmp_path, name)) for name in ("whole", "divided"))
    tolerance = 1e-3 if precision == "32-true" else 0.05  # bf16 has 8 significant bits
    for ours, theirs in list(zip(several, one, strict=True))[:2]:
        assert ours == pytest.approx(theirs, rel=tolerance), ours["step"]
    saved, whole = (weights(tmp_path, name) for name in ("divided", "whole"))
    assert {name: value.shape for name, value in saved.items()} == {name: value.shape for name, value in whole.items()}
    assert (tmp_path / "checkpoints/divided/serving/serving.json").is_file()
