"""bf16 training on the CPU and on a GPU, from checkpoints saved in bf16.

Every trainer learns, keeps fp32 weights, and exports what it trained.
"""

import math
from pathlib import Path
from statistics import mean

import pytest
import torch

from tests.helpers import rewrite_runs
from tests.helpers.devices import cpu_and_gpu, training_options
from tests.helpers.half import saved_in_bf16
from tests.helpers.runs import fit_here, metrics, weights
from tests.helpers.tiny_runs import served
from tests.trainers import test_drrag, test_rerag_training

PRECISION = ("--trainer.precision", "bf16-mixed")
BF16_ROUNDING = 2.0**-9


def prepare(system: str, folder: Path, checkpoints: dict[str, Path], hotpot_file: Path) -> tuple[str, list[str]]:
    """Writes the system's tiny config; the name of its training loss, and options that let it learn in few steps."""
    if system == "drrag":
        test_drrag.write_config(folder, checkpoints["big_bird"], hotpot_file, dropout=0.0)
        return "train/loss_nats", ["--trainer.max_epochs", "10", "--trainer.check_val_every_n_epoch", "10"]
    if system == "rerag":
        test_rerag_training.write_config(folder, checkpoints["t5"], dropout=0.0)
        return "train/loss", ["--trainer.max_epochs", "3", "--trainer.check_val_every_n_epoch", "3"]
    rewrite_runs.write_run(folder, checkpoints["t5"])
    schedule = ["--model.optimizer.schedule", "inverse_sqrt"]
    return "train/loss_nats", ["--trainer.max_epochs", "3", "--model.dropout", "0", *schedule]


@cpu_and_gpu("bf16 training of every trainer, and its export")
@pytest.mark.parametrize("system", ["drrag", "rerag", pytest.param("rewriter", marks=pytest.mark.numeric)])
def test_a_bf16_run_learns_and_exports_what_it_trained(
    system, device, tmp_path, checkpoints, hotpot_file, capsys
) -> None:
    family = "big_bird" if system == "drrag" else "t5"
    half = {family: saved_in_bf16(checkpoints[family], tmp_path / family)}
    loss, options = prepare(system, tmp_path, half, hotpot_file)
    options += training_options(device)
    fit_here(tmp_path, "--name", "plain", "--trainer.max_steps", "1", *options)
    capsys.readouterr()
    fit_here(tmp_path, *PRECISION, *options)
    out = capsys.readouterr().out
    losses = [row[loss] for row in metrics(tmp_path) if loss in row]
    assert len(losses) > 6
    assert all(math.isfinite(each) for each in losses)
    assert mean(losses[-4:]) < mean(losses[:4])
    # the first step is the fp32 run's but for bf16's rounding: it is not the same, nor another
    (fp32,) = [row for row in metrics(tmp_path, "plain") if loss in row]
    bf16 = next(row for row in metrics(tmp_path) if loss in row)
    for name in (loss, "train/grad_norm"):  # sums of a thousand terms err by sqrt(1000) roundings
        assert bf16[name] == pytest.approx(fp32[name], rel=64 * BF16_ROUNDING), name
    assert bf16["train/grad_norm"] != fp32["train/grad_norm"]

    state = weights(tmp_path, "tiny", "best.ckpt")
    assert {value.dtype for value in state.values() if value.is_floating_point()} == {torch.float32}
    assert any((value != value.bfloat16()).any() for value in state.values())  # trained in fp32, not rounded
    exported = served(tmp_path / "checkpoints/tiny/serving")
    assert exported
    for name, value in exported.items():
        part, _, inner = name.partition(".")
        (trained,) = (each for key, each in state.items() if key.startswith(part) and key.endswith(f"network.{inner}"))
        if trained.shape != value.shape:  # the served classifier has one label: label 1 minus label 0
            trained = trained[1:] - trained[:1]
        torch.testing.assert_close(value, trained, rtol=0, atol=0)
    (said,) = [line for line in out.splitlines() if "largest difference to the module" in line]
    assert float(said.rsplit("module", 1)[1].split()[0].strip(" :,")) < 1e-4, said
