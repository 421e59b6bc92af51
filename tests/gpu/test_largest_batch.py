"""Trying the largest batch of an epoch changes nothing: weights and logs are the same with and without it."""

from pathlib import Path

import pytest
import pytorch_lightning as pl
import torch

from tests.helpers.devices import cpu_and_gpu, training_options
from tests.helpers.runs import fit_here, metrics, trained, weights
from tests.trainers import test_drrag, test_rerag_training
from trainers.run.largest_batch import LargestBatch

TRIED = ("--trainer.callbacks+=trainers.run.largest_batch.LargestBatch", "--trainer.callbacks.on_cpu", "true")
OMITTED = ("--trainer.callbacks+=tests.gpu.test_largest_batch.Omitted",)
EVERY_STEP = ("--checkpoint.every_n_train_steps", "1", "--checkpoint.save_top_k=-1", "--checkpoint.filename", "{step}")


class Omitted(pl.Callback):
    """Takes out the callback that every run has, which on a GPU tries the batch."""

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        trainer.callbacks[:] = [each for each in trainer.callbacks if not isinstance(each, LargestBatch)]


@pytest.mark.numeric
@pytest.mark.whole_run
@cpu_and_gpu("that trying the largest batch leaves the weights as they are, on a GPU")
@pytest.mark.parametrize("system", ["drrag", "rerag"])
def test_trying_the_largest_batch_changes_nothing(
    system: str, device: str, tmp_path: Path, checkpoints: dict[str, Path], hotpot_file: Path,
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # without it cuBLAS may add in another order
    loss = "train/loss_nats" if system == "drrag" else "train/loss"
    if system == "drrag":
        test_drrag.write_config(tmp_path, checkpoints["bert"], hotpot_file, dropout=0.1)
    else:
        test_rerag_training.write_config(tmp_path, checkpoints["t5"], dropout=0.1)
    common = [*training_options(device), "--trainer.deterministic", "warn", "--trainer.accumulate_grad_batches", "2"]
    fit_here(tmp_path, "--name", "plain", *common, *OMITTED)
    assert "largest batch" not in capsys.readouterr().out
    fit_here(tmp_path, "--name", "tried", *common, *TRIED, *EVERY_STEP, "--checkpoint.monitor", loss)
    assert "memory  the epoch's largest batch fits" in capsys.readouterr().out
    kept = tmp_path / "checkpoints/tried/step=2.ckpt"
    epoch, steps = (torch.load(kept, weights_only=True)[name] for name in ("epoch", "global_step"))
    logged = trained(metrics(tmp_path, "plain"))
    assert (epoch, steps) == (0, 2)
    assert sum(row["epoch"] == 0 for row in metrics(tmp_path, "plain") if loss in row) > 2  # resumed within an epoch
    fit_here(tmp_path, "--name", "resumed", *common, *TRIED, "--ckpt_path", str(kept))
    assert "memory  the epoch's largest batch fits" in capsys.readouterr().out
    whole = weights(tmp_path, "plain")
    for name in ("tried", "resumed"):
        ours = weights(tmp_path, name)
        assert ours.keys() == whole.keys()
        assert all(torch.equal(ours[key], whole[key]) for key in whole), name
    assert trained(metrics(tmp_path, "tried")) == logged
    assert trained(metrics(tmp_path, "resumed")) == logged[2:]
