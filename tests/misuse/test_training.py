"""Mistakes with train.py: one line, the right exit code, nothing written or lost."""

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from transformers import T5Config, T5ForConditionalGeneration

from common.files import digests
from tests.conftest import save_t5
from tests.helpers.commands import command, refused
from tests.helpers.runs import ROOT, assert_repeated, fit, fit_here, metrics, weights
from tests.trainers import test_t5

FIT = ("fit", "--config", "config.yaml")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, checkpoints: dict[str, Path]) -> Path:
    """A folder with a config and a finished run, `whole`."""
    place = tmp_path_factory.mktemp("misuse")
    test_t5.write_corpus(place / "corpus.jsonl")
    test_t5.write_config(place, checkpoints["t5"])
    fit_here(place, "--name", "whole")
    shutil.copytree(place / "checkpoints/whole", place / "checkpoints/torn")
    (place / "checkpoints/torn/last.ckpt.sha256").write_text("{}")
    (place / "checkpoints/torn/.tmp-1-best.ckpt").write_bytes(b"")
    (place / "torn.jsonl").write_text('{"title": "a", "text": "b"}\n{"title": ')
    return place


@pytest.mark.parametrize(
    ("options", "code", "parts"),
    [
        (["--trainer.accelerator", "cuda"], 2, ["CUDA", "not available"]),
        (["--trainer.accelerator", "quantum"], 2, ["quantum"]),
        (["--trainer.devices", "0"], 2, ["devices"]),
        (["--trainer.precision", "64-false"], 2, ["precision"]),
        (["--checkpoint.monitor", "val/los"], 2, ["type --checkpoint.monitor val/loss_nats (others: val/accuracy)"]),
        (["--checkpoint.every_minutes=-1"], 2, ["every_minutes must be at least 0"]),
        (["--checkpoint.every_n_train_steps", "0"], 2, ["every_n_train_steps must be at least 1"]),
        (["--checkpoint.mode", "best"], 2, ["mode"]),
        (["--trainer.accumulate_grad_batches", "0"], 2, ["trainer.accumulate_grad_batches must be at least 1"]),
        (["--trainer.gradient_clip_val=-1"], 2, ["trainer.gradient_clip_val must be at least 0"]),
        (["--resume", "yes"], 2, ["resume"]),
        (["--resume", "auto", "--ckpt_path", "x.ckpt"], 66, ["x.ckpt does not exist"]),
        (["--name", "whole/second"], 2, ["lies within the run checkpoints/whole"]),
        (["--name", "new/serving"], 2, ["lies within the run checkpoints/new"]),
        (["--ckpt_path", "checkpoints/whole/lst.ckpt"], 66,
            ["checkpoints in that folder: checkpoints/whole/best.ckpt"]),
        (["--ckpt_path", "checkpoints/torn/nothing.ckpt"], 66, ["checkpoints/torn/last.ckpt."]),
        (["--ckpt_path", "checkpoints/torn/last.ckpt"], 74, ["last.ckpt.sha256 is corrupt"]),
        (["--ckpt_path", "config.yaml"], 74, ["cannot be read"]),
        (["--data.corpora", "[{layout: jsonl, path: torn.jsonl}]"], 65, ["torn.jsonl"]),
        (["--data.corpora", "[{layout: jsonl, path: gone.jsonl}]"], 66, ["gone.jsonl"]),
        (["--trainer.max_steps", "2", "--model.warmup_steps", "2"], 2, ["within warmup_steps"]),
        (["--trainer.val_check_interval", "7"], 2, ["val_check_interval is 7, but an epoch has 4 batches"]),
        (["--trainer.val_check_interval", "3", "--trainer.limit_train_batches", "2"], 2, ["is 3, but an epoch has 2"]),
        (["--trainer.accumulate_grad_batches", "2", "--trainer.val_check_interval", "3"], 2,
            ["is 3 (3 batches)", "multiple"]),
        (["--trainer.accumulate_grad_batches", "2", "--trainer.val_check_interval", "0.4"], 2, ["is 0.4 (3 batches)"]),
        (["--trainer.accumulate_grad_batches", "2", "--trainer.val_check_interval", "00:00:01:00"], 2, ["a duration"]),
    ],
)  # fmt: skip
def test_a_refused_run_is_one_line_and_does_not_take_the_name(
    place: Path, options: list[str], code: int, parts: list[str]
) -> None:
    before = digests(place)
    refused(command(place, "train.py", *FIT, "--name", "new", *options), code, *parts)
    assert digests(place) == before
    assert not (place / "checkpoints/new").exists()


def test_validating_a_run_without_a_checkpoint_is_refused(place: Path) -> None:
    ended = command(place, "train.py", "validate", "--config", "config.yaml", "--name", "new", "--resume", "auto")
    refused(ended, 66, "checkpoints/new holds no checkpoint to validate")


def test_a_run_without_a_name_is_refused_in_plain_words(tmp_path: Path) -> None:
    assert "compute_fn" not in refused(command(tmp_path, "train.py", "fit"), 2, "name")


def test_a_checkpoint_of_another_model_is_refused(place: Path, checkpoints: dict[str, Path], tmp_path: Path) -> None:
    save_t5(tmp_path / "other")
    config = T5Config.from_pretrained(tmp_path / "other", d_model=16)
    T5ForConditionalGeneration(config).save_pretrained(tmp_path / "other")
    before = digests(place)
    ended = command(
        place, "train.py", *FIT, "--name", "whole", "--resume", "auto", "--model.pretrained", str(tmp_path / "other")
    )
    refused(ended, 74, "the checkpoint holds another model", "size mismatch", "resume with the config.yaml")
    assert digests(place) == before


def test_a_taken_name_is_refused_until_it_is_resumed(place: Path) -> None:
    before = digests(place / "checkpoints/whole")
    for foreign in ([], ["--ckpt_path", "checkpoints/torn/best.ckpt"]):
        ended = command(place, "train.py", *FIT, "--name", "whole", *foreign)
        refused(ended, 2, "already holds a run", "continue it with --resume auto")
    assert digests(place / "checkpoints/whole") == before


@pytest.mark.whole_run
def test_the_same_name_cannot_be_trained_twice_at_once(place: Path) -> None:
    first = subprocess.Popen([sys.executable, str(ROOT / "train.py"), *FIT, "--name", "shared", "--trainer.max_epochs",
        "2000"],
                             cwd=place, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # fmt: skip
    try:
        folder = place / "checkpoints/shared"
        while first.poll() is None and not (folder / "metrics.jsonl").is_file():
            time.sleep(0.02)
        line = refused(
            command(place, "train.py", *FIT, "--name", "shared"), 2, "is in use by process", "another --name"
        )
        assert str(first.pid) in line
        refused(command(place, "train.py", *FIT, "--name", "shared", "--resume", "auto"), 2, "is in use by process")
    finally:
        first.send_signal(signal.SIGINT)
        out, _ = first.communicate(timeout=120)
    assert first.returncode == 130, out[-2000:]
    assert b"press it again" in out


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1])
def test_a_signal_to_one_rank_stops_all_after_the_same_step(place: Path, rank: int) -> None:
    name = f"ranks-{rank}"
    stop = ("--trainer.callbacks", "tests.helpers.signal_at.SignalAt", "--trainer.callbacks.init_args.hook",
            "on_train_batch_start", "--trainer.callbacks.init_args.step", "4", "--trainer.callbacks.init_args.rank",
            str(rank))  # fmt: skip
    run = fit(place, "--name", name, *stop, torchrun=2)
    assert run.returncode != 0  # torchrun's own code
    assert "last.ckpt holds step 5" in run.stderr
    assert run.stderr.count("train.py: stopped by SIGTERM") == 1
    assert fit(place, "--name", name, "--resume", "auto", torchrun=2).returncode == 0
    if rank == 0:
        assert fit(place, "--name", "both", torchrun=2).returncode == 0
    assert_repeated(weights(place, name), weights(place, "both"))
    steps = [row["step"] for row in metrics(place, name) if "train/loss_nats" in row]
    assert steps == list(range(8))
