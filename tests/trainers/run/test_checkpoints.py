"""A run stopped anywhere, killed or started again by a scheduler resumes to the unbroken run's end."""

import json
import shutil
from pathlib import Path

import pytest

from common.errors import ArtifactError, UserError
from common.files import digests
from tests.helpers import rewrite_runs
from tests.helpers.commands import Ended, command, refused
from tests.helpers.runs import assert_repeated, fit_here, logged, metrics, weights
from tests.helpers.signal_at import signal_at
from trainers.run.checkpoints import LAST
from trainers.run.cli import RESTARTS
from trainers.run.durable_checkpoints import DurableCheckpointIO, read_checkpoint
from trainers.run.resume import newest_checkpoint

# Two epochs of six steps, a validation after steps 2, 4, 6, ...
STEPS = ("--data.rewrites_per_step", "8", "--trainer.val_check_interval", "2")


@pytest.fixture(scope="module")
def place(tmp_path_factory, checkpoints) -> Path:
    """A folder with a config, and the unbroken runs: `whole` of two epochs, `ten` of ten steps."""
    place = tmp_path_factory.mktemp("checkpoints")
    rewrite_runs.write_run(place, checkpoints["t5"])
    fit_here(place, "--name", "whole", *STEPS)
    fit_here(place, "--name", "ten", *STEPS, "--trainer.max_steps", "10")
    return place


def fit(place: Path, run: str, *extra: str) -> Ended:
    """A run of that name as a shell would see it."""
    return command(place, "train.py", "fit", "--config", "config.yaml", "--name", run, *STEPS, *extra)


def stopped(place: Path, run: str, code: int, holds: int, *extra: str, **signal: object) -> str:
    """The line of a run that a signal ends; its last checkpoint holds so many steps."""
    ended = fit(place, run, *extra, *signal_at(**signal))
    return refused(ended, code, f"{LAST} holds step {holds}", "--resume auto")


@pytest.mark.parametrize(
    ("hook", "step", "name", "saved"),
    [
        ("on_train_batch_start", 0, "SIGINT", 1),
        ("on_train_batch_start", 4, "SIGTERM", 5),
        ("on_before_optimizer_step", 2, "SIGUSR1", 3),
        ("on_train_batch_end", 3, "SIGTERM", 3),
        ("on_train_batch_end", 4, "SIGINT", 4),  # a validation follows
        ("on_validation_start", 4, "SIGTERM", 4),
        ("on_validation_batch_end", 6, "SIGINT", 6),
        ("on_validation_batch_end", 12, "SIGTERM", 12),  # the last one
        ("on_validation_end", 6, "SIGTERM", 7),
        ("on_train_epoch_end", 6, "SIGINT", 7),
    ],
)
def test_a_run_stopped_anywhere_resumes_exactly(place, hook, step, name, saved) -> None:
    run = f"{hook}-{step}"
    code = 130 if name == "SIGINT" else 75
    line = stopped(place, run, code, saved, hook=hook, step=step, name=name)
    assert ("Ctrl-C" in line) == (code == 130)
    folder = place / "checkpoints" / run
    assert json.loads((folder / "state.json").read_text())["status"] == "preempted"
    assert read_checkpoint(folder / LAST)["global_step"] == saved
    fit_here(place, "--name", run, "--resume", "auto", *STEPS)
    assert_repeated(weights(place, run), weights(place, "whole"))
    assert_repeated(weights(place, run, "best.ckpt"), weights(place, "whole", "best.ckpt"))
    assert logged(place, run) == logged(place, "whole")


def test_a_run_stopped_in_the_validation_after_its_last_step_resumes_exactly(place) -> None:
    ten = ("--trainer.max_steps", "10")
    stopped(place, "late", 75, 10, *ten, hook="on_validation_start", step=10)
    fit_here(place, "--name", "late", "--resume", "auto", *STEPS, *ten)
    assert_repeated(weights(place, "late"), weights(place, "ten"))
    assert logged(place, "late") == logged(place, "ten")
    assert (place / "checkpoints/late/serving/serving.json").is_file()


def test_a_run_that_had_ended_only_exports_again(place) -> None:
    assert fit(place, "ended", *signal_at(hook="on_fit_end", name="SIGINT")).code == 130
    assert not (place / "checkpoints/ended/serving").exists()
    before = (place / "checkpoints/ended/metrics.jsonl").read_text()
    fit_here(place, "--name", "ended", "--resume", "auto", *STEPS)
    assert (place / "checkpoints/ended/serving/serving.json").is_file()
    assert (place / "checkpoints/ended/metrics.jsonl").read_text() == before


def test_a_second_interrupt_stops_at_once_and_a_stop_before_training_leaves_nothing(place) -> None:
    twice = signal_at(hook="on_train_batch_start", step=3, name="KeyboardInterrupt")
    assert fit(place, "twice", *twice).code == 130
    assert read_checkpoint(place / "checkpoints/twice" / LAST)["global_step"] == 2  # after the validation
    stopped(place, "early", 75, 1, hook="on_sanity_check_end")
    assert not list(place.glob("checkpoints/*.lock"))


NEWEST = {
    "steps": (4, 130, ("--checkpoint.every_n_train_steps", "4", "--trainer.val_check_interval", "1.0")),
    "minutes": (5, 130, ("--checkpoint.every_minutes", "0", "--trainer.val_check_interval", "1.0")),
    "end": (5, 0, ("--trainer.val_check_interval", "6", "--trainer.max_steps", "5")),
}


@pytest.mark.parametrize("name", NEWEST)
def test_the_last_checkpoint_is_the_newest_state(place, name) -> None:
    saved, code, options = NEWEST[name]
    stop = signal_at(hook="on_train_batch_start", step=5, name="KeyboardInterrupt") if code else []
    assert fit(place, name, *options, *stop).code == code
    assert read_checkpoint(place / "checkpoints" / name / LAST)["global_step"] == saved


def test_resuming_takes_the_newest_checkpoint_that_verifies(place) -> None:
    stopped(place, "broken", 75, 8, hook="on_train_batch_start", step=7)
    folder = place / "checkpoints/broken"
    last = folder / LAST
    content = bytearray(last.read_bytes())
    content[len(content) // 2] ^= 1  # within a tensor: torch would read it
    last.write_bytes(content)
    said: list[str] = []
    assert newest_checkpoint(folder, said.append) == folder / "best.ckpt"
    assert "last.ckpt" in said[0]
    assert said[0] in fit(place, "broken", "--resume", "auto").out.replace("checkpoints/", f"{place}/checkpoints/")
    assert_repeated(weights(place, "broken"), weights(place, "whole"))
    assert logged(place, "broken") == logged(place, "whole")
    for path in folder.glob("*.ckpt"):
        path.write_bytes(b"")
    with pytest.raises(ArtifactError, match=r"no checkpoint of .* can be read"):
        newest_checkpoint(folder, said.append)
    assert newest_checkpoint(place / "nowhere", said.append) is None


def test_a_run_is_not_resumed_from_weights_alone(place) -> None:
    fit_here(place, "--name", "light", *STEPS, "--checkpoint.save_weights_only", "true")
    best = place / "checkpoints/light/best.ckpt"
    said: list[str] = []
    assert newest_checkpoint(best.parent, said.append) == best.with_name(LAST)
    assert said[0] == f"skipped: {best} holds only weights"
    refused(fit(place, "heavy", "--ckpt_path", str(best)), 74, "best.ckpt")
    assert not (place / "checkpoints/heavy").exists()


def test_a_corrupt_digest_file_does_not_switch_the_check_off(place, tmp_path) -> None:
    path = tmp_path / "some.ckpt"
    path.write_bytes((place / "checkpoints/whole/last.ckpt").read_bytes())
    for text in ("{}", "[]", '["abc"]', "", "not json", "null"):
        (tmp_path / "some.ckpt.sha256").write_text(text)
        with pytest.raises(ArtifactError, match=r"some\.ckpt\.sha256"):
            read_checkpoint(path)


def test_a_loss_that_is_not_finite_stops_the_run_at_once(place) -> None:
    wild = ("--checkpoint.every_n_train_steps", "1", "--model.optimizer.learning_rate", "1e30")
    line = refused(fit(place, "diverged", *wild), 70, "model.optimizer.learning_rate")
    folder = place / "checkpoints/diverged"
    kept = folder / LAST
    if kept.exists():
        assert f"{LAST} holds step {read_checkpoint(kept)['global_step']}" in line
        assert all(value.isfinite().all() for value in read_checkpoint(kept)["state_dict"].values())
    assert json.loads((folder / "state.json").read_text())["status"] == "failed"
    assert "NaN" not in (folder / "metrics.jsonl").read_text()


def test_a_run_that_early_stopping_ended_goes_on_only_with_more_patience(place) -> None:
    rising = ("--checkpoint.mode", "max", "--early_stopping.mode", "max", "--early_stopping.patience")  # the loss falls
    resume: tuple[str, ...] = ()
    # the best after step 2, then two validations; no further; two more; both epochs
    for patience, steps in (("2", 6), ("2", 6), ("4", 10), ("null", 12)):
        fit_here(place, "--name", "early-stopped", *STEPS, *rising, patience, *resume)
        assert read_checkpoint(place / "checkpoints/early-stopped" / LAST)["global_step"] == steps
        resume = ("--resume", "auto")


def test_what_killed_processes_left_does_not_disturb_a_checkpoint(tmp_path) -> None:
    (tmp_path / ".tmp-1-serving").mkdir()  # of an export, which removes it when it is repeated
    (tmp_path / ".tmp-1-step=4.ckpt").write_bytes(b"torn")
    checkpoint = {"global_step": 1, "state_dict": {}, "loops": {}}
    DurableCheckpointIO().save_checkpoint(checkpoint, tmp_path / LAST)
    assert read_checkpoint(tmp_path / LAST) == checkpoint
    assert sorted(path.name for path in tmp_path.iterdir()) == [".tmp-1-serving", LAST, f"{LAST}.sha256"]


KILLED = ("--name", "killed", *STEPS)


@pytest.fixture
def workplace(place, tmp_path, monkeypatch) -> Path:
    """Copies of the config and of two runs: `whole`, and `killed` after the first of two epochs."""
    for name in RESTARTS:
        monkeypatch.delenv(name, raising=False)
    if not (place / "checkpoints/killed").exists():
        at = signal_at(hook="on_train_batch_start", step=6, name="KeyboardInterrupt")
        assert fit(place, "killed", *at).code == 130
    shutil.copy(place / "config.yaml", tmp_path)
    for run in ("whole", "killed"):
        shutil.copytree(place / "checkpoints" / run, tmp_path / "checkpoints" / run)
    (tmp_path / "checkpoints/killed/metrics.jsonl").unlink()
    return tmp_path


def steps_made(folder: Path, name: str = "killed") -> list[int]:
    """Numbers of the optimizer steps since the restart."""
    return [row["step"] for row in metrics(folder, name) if "train/loss_nats" in row]


@pytest.mark.parametrize("variable", RESTARTS)
def test_a_restarted_run_goes_on_from_its_last_checkpoint(workplace, variable, monkeypatch) -> None:
    assert read_checkpoint(workplace / "checkpoints/killed" / LAST)["global_step"] == 6
    monkeypatch.setenv(variable, "2")
    fit_here(workplace, *KILLED)
    assert steps_made(workplace) == [*range(6, 12)]  # the second epoch's
    assert_repeated(weights(workplace, "killed"), weights(workplace, "whole"))
    assert (workplace / "checkpoints/killed/serving/serving.json").is_file()


def test_a_run_restarted_before_its_first_checkpoint_starts_over(workplace, monkeypatch) -> None:
    for file in (workplace / "checkpoints/killed").glob("*.ckpt*"):
        file.unlink()
    monkeypatch.setenv("SLURM_RESTART_COUNT", "1")
    fit_here(workplace, *KILLED)
    assert steps_made(workplace) == [*range(12)]
    assert_repeated(weights(workplace, "killed"), weights(workplace, "whole"))


def test_a_run_that_nothing_restarted_is_refused_also_with_another_run_s_checkpoint(workplace, monkeypatch) -> None:
    before, other = digests(workplace), ("--ckpt_path", str(workplace / "checkpoints/whole/last.ckpt"))
    for count in (None, "0"):
        for name in RESTARTS if count else ():  # a scheduler's first start
            monkeypatch.setenv(name, count)
        for given in ((), other):
            with pytest.raises(UserError, match=r"already holds a run: choose another --name, or .* --resume auto"):
                fit_here(workplace, *KILLED, *given)
            assert digests(workplace) == before
    fit_here(workplace, *STEPS, *other, "--name", "new", "--trainer.max_epochs", "3")
    assert steps_made(workplace, "new") == [*range(12, 18)]
    monkeypatch.setenv("SLURM_RESTART_COUNT", "1")
    fit_here(workplace, *KILLED, *other)  # goes on from its own last one
    assert steps_made(workplace) == [*range(6, 12)]


def test_a_runs_own_config_resumes_it_again_and_repeats_it(workplace) -> None:
    fit_here(workplace, *KILLED, "--resume", "auto")
    own = ("--config", "checkpoints/killed/config.yaml")  # which that start wrote
    fit_here(workplace, *own, "--resume", "auto")
    fit_here(workplace, *own, "--name", "anew")
    assert steps_made(workplace, "anew") == [*range(12)]
    for name in ("killed", "anew"):
        assert_repeated(weights(workplace, name), weights(workplace, "whole"))


def test_a_run_whose_folder_was_moved_keeps_its_best_checkpoint(workplace, tmp_path_factory) -> None:
    # The loss falls: with `max` the first validation's is the best.
    highest = ("--name", "highest", *STEPS, "--checkpoint.mode", "max", "--early_stopping.mode", "max")
    fit_here(workplace, *highest)
    moved = Path(shutil.copytree(workplace, tmp_path_factory.mktemp("moved") / "place"))
    shutil.rmtree(workplace)
    best = (moved / "checkpoints/highest/best.ckpt").read_bytes()
    fit_here(moved, *highest, "--resume", "auto", "--trainer.max_epochs", "3")
    assert (moved / "checkpoints/highest/best.ckpt").read_bytes() == best
    assert (moved / "checkpoints/highest/serving/serving.json").is_file()
