"""Runs that a scheduler starts again (SLURM, torchrun).

Resumed from last.ckpt, started over without one, else refused.
"""

import shutil
from pathlib import Path

import pytest
import torch

from common.errors import UserError
from common.files import digests
from tests.helpers import rewrite_runs
from tests.helpers.runs import assert_repeated, fit_here, metrics, weights
from trainers.run.cli import RESTARTS


@pytest.fixture(scope="module")
def stopped(tmp_path_factory, checkpoints) -> Path:
    """A folder with a whole run of two epochs, four steps each, and one that was killed after the first epoch."""
    place = tmp_path_factory.mktemp("stopped")
    rewrite_runs.write_run(place, checkpoints["t5"])
    fit_here(place, "--name", "whole")
    # what a kill after the first epoch leaves: the run's folder with the checkpoint of that moment
    fit_here(place, "--checkpoint.every_n_train_steps", "1", "--checkpoint.save_top_k=-1", "--checkpoint.filename",
             "{step}", "--checkpoint.monitor", "train/loss_nats")  # fmt: skip
    folder = place / "checkpoints/tiny"
    for suffix in ("", ".sha256"):
        shutil.copy(folder / f"step=4.ckpt{suffix}", folder / f"last.ckpt{suffix}")
    for extra in folder.glob("step=*"):
        extra.unlink()
    shutil.rmtree(folder / "serving", ignore_errors=True)
    (folder / "metrics.jsonl").unlink()
    return place


@pytest.fixture
def workplace(stopped, tmp_path, monkeypatch) -> Path:
    """A copy of it."""
    for name in RESTARTS:
        monkeypatch.delenv(name, raising=False)
    return Path(shutil.copytree(stopped, tmp_path / "place"))


def steps_made(folder: Path) -> list[int]:
    """Numbers of the optimizer steps since the restart."""
    return [row["step"] for row in metrics(folder) if "train/loss_nats" in row]


@pytest.mark.parametrize("variable", RESTARTS)
def test_a_restarted_run_goes_on_from_its_last_checkpoint(workplace, variable, monkeypatch) -> None:
    assert torch.load(workplace / "checkpoints/tiny/last.ckpt", weights_only=True)["global_step"] == 4
    monkeypatch.setenv(variable, "2")
    fit_here(workplace)
    assert len(steps_made(workplace)) == 4  # the second epoch's
    assert_repeated(weights(workplace, "tiny"), weights(workplace, "whole"))
    assert (workplace / "checkpoints/tiny/serving/serving.json").is_file()


def test_a_run_restarted_before_its_first_checkpoint_starts_over(workplace, monkeypatch) -> None:
    for suffix in ("", ".sha256"):
        (workplace / f"checkpoints/tiny/last.ckpt{suffix}").unlink()
    monkeypatch.setenv("SLURM_RESTART_COUNT", "1")
    fit_here(workplace)
    assert len(steps_made(workplace)) == 8
    assert_repeated(weights(workplace, "tiny"), weights(workplace, "whole"))


@pytest.mark.parametrize("count", [None, "0"])
def test_a_run_that_nothing_restarted_is_refused(workplace, count, monkeypatch) -> None:
    if count is not None:  # a scheduler's first start
        for name in RESTARTS:
            monkeypatch.setenv(name, count)
    before = (workplace / "checkpoints/tiny/last.ckpt").read_bytes()
    with pytest.raises(
        UserError, match=r"already holds a run: choose another --name, or continue it with --resume auto"
    ):
        fit_here(workplace)
    assert (workplace / "checkpoints/tiny/last.ckpt").read_bytes() == before


def test_a_runs_own_config_resumes_it_again_and_repeats_it(workplace) -> None:
    for _ in range(2):  # the second start reads the config that the first one wrote
        fit_here(workplace, "--config", "checkpoints/tiny/config.yaml", "--resume", "auto")
        assert_repeated(weights(workplace, "tiny"), weights(workplace, "whole"))
    fit_here(workplace, "--config", "checkpoints/tiny/config.yaml", "--name", "anew")
    assert len([row for row in metrics(workplace, "anew") if "train/loss_nats" in row]) == 8
    assert_repeated(weights(workplace, "anew"), weights(workplace, "whole"))


@pytest.mark.parametrize("restarts", ["0", "1"])
def test_a_run_that_began_from_another_run_s_checkpoint_goes_on_from_its_last_one(
    workplace, restarts, monkeypatch
) -> None:
    monkeypatch.setenv("SLURM_RESTART_COUNT", restarts)
    other = str(workplace / "checkpoints/whole/last.ckpt")
    before = digests(workplace)
    if restarts == "0":
        with pytest.raises(UserError, match="already holds a run"):
            fit_here(workplace, "--ckpt_path", other)
        assert digests(workplace) == before
        fit_here(workplace, "--ckpt_path", other, "--name", "new", "--trainer.max_epochs", "3")
        assert [row["step"] for row in metrics(workplace, "new") if "train/loss_nats" in row] == [8, 9, 10, 11]
    else:
        fit_here(workplace, "--ckpt_path", other)
        assert steps_made(workplace) == [4, 5, 6, 7]


def test_a_run_whose_folder_was_moved_keeps_its_best_checkpoint(workplace, tmp_path) -> None:
    # The loss falls: with `max` the first validation's is the best.
    highest = ("--checkpoint.mode", "max", "--early_stopping.mode", "max")
    fit_here(workplace, "--name", "highest", *highest)
    moved = Path(shutil.copytree(workplace, tmp_path / "moved"))
    shutil.rmtree(workplace)
    best = (moved / "checkpoints/highest/best.ckpt").read_bytes()
    fit_here(moved, "--name", "highest", "--resume", "auto", "--trainer.max_epochs", "3", *highest)
    assert (moved / "checkpoints/highest/best.ckpt").read_bytes() == best
    assert (moved / "checkpoints/highest/serving/serving.json").is_file()
