"""The guard of runs that learn from rewards: which validations end a run, and what of it stays."""

from pathlib import Path
from typing import Any

import pytest

from tests.helpers import rewrite_runs
from tests.helpers.runs import fit_here, metrics
from trainers.dmqr import RewriterTrainer
from trainers.run.collapse import CollapseGuard
from trainers.run.durable_checkpoints import read_checkpoint

PLAN: dict[int, dict[str, float]] = {}  # optimizer steps -> measures of the validation after them
# Two epochs of four steps, a validation after every second step
RUN = (
    "--model", "tests.trainers.run.test_collapse.Planned",
    "--trainer.val_check_interval", "2", "--checkpoint.monitor", "val/reward", "--checkpoint.mode", "max",
    "--early_stopping.mode", "max", "--trainer.callbacks", "trainers.run.collapse.CollapseGuard",
)  # fmt: skip


class Planned(RewriterTrainer):
    """One whose validations give planned measures, too."""

    metric_names = ("reward", "loss_nats")

    def summarize(self, results: list[Any]) -> dict[str, float]:
        return super().summarize(results) | PLAN[self.trainer.global_step]


@pytest.fixture
def place(tmp_path: Path, checkpoints: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("sys.argv", ["train.py"])  # Lightning warns of others
    rewrite_runs.write_run(tmp_path, checkpoints["t5"])
    PLAN.clear()
    return tmp_path


def limit(**limits: object) -> list[str]:
    return [part for name, value in limits.items() for part in (f"--trainer.callbacks.init_args.{name}", str(value))]


def validations(place: Path, name: str) -> list[int]:
    """The optimizer steps after which there was a validation."""
    return [row["step"] + 1 for row in metrics(place, name) if "val/reward" in row]


def test_a_run_that_goes_too_far_ends_and_keeps_its_best_checkpoint(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Though the reward of the validation that ends it is the highest."""
    PLAN.update({step: {"reward": step / 10, "kl": float(step)} for step in range(0, 10, 2)})
    fit_here(place, "--name", "far", *RUN, *limit(max_kl_nats=5))
    line = "ended early: the rewriter has collapsed: val/kl 6 at step 6 is above max_kl_nats, 5."
    assert line in capsys.readouterr().out
    folder = place / "checkpoints/far"
    assert validations(place, "far") == [0, 2, 4, 6]
    assert read_checkpoint(folder / "best.ckpt")["global_step"] == 4
    assert read_checkpoint(folder / "last.ckpt")["global_step"] == 6
    assert (folder / "serving/serving.json").is_file()

    fit_here(place, "--name", "far", *RUN, *limit(max_kl_nats=5), "--resume", "auto")
    assert line in capsys.readouterr().out
    assert read_checkpoint(folder / "last.ckpt")["global_step"] == 6
    fit_here(place, "--name", "far", *RUN, *limit(max_kl_nats=50), "--resume", "auto")
    assert read_checkpoint(folder / "last.ckpt")["global_step"] == 8
    assert validations(place, "far") == [0, 2, 4, 6, 8]


def test_a_run_that_only_loses_ends_with_the_model_that_it_began_with(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    PLAN.update({0: {"reward": 0.5}, 2: {"reward": 0.45}, 4: {"reward": 0.3}, 6: {"reward": 0.9}})
    fit_here(place, "--name", "lost", *RUN, *limit(max_reward_drop=0.1))
    line = "val/reward 0.3 at step 4 is below the start's 0.5 less max_reward_drop, 0.4."
    assert line in capsys.readouterr().out
    assert read_checkpoint(place / "checkpoints/lost/best.ckpt")["global_step"] == 0


@pytest.mark.parametrize("name", ["unchanged_share", "empty_share"])
def test_a_run_whose_rewrites_vanish_ends(place: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    PLAN.update({step: {"reward": 1.0, name: min(1.0, step / 4)} for step in range(0, 10, 2)})
    fit_here(place, "--name", name, *RUN, *limit(**{f"max_{name}": 0.9}))
    assert f"val/{name} 1 at step 4 is above max_{name}, 0.9." in capsys.readouterr().out
    assert validations(place, name) == [0, 2, 4]


def test_a_measure_that_is_no_number_has_collapsed() -> None:
    guard = CollapseGuard(max_kl_nats=1.0)
    guard.load_state_dict({"start": {"val/kl": 0.0}, "last": {"val/kl": float("nan")}, "step": 3})
    assert "val/kl nan at step 3" in guard.collapse
