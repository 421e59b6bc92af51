"""What a run logs and writes down: metrics.jsonl, throughput beside torch's own count of FLOPs, commit, digests."""

import json
import subprocess
from pathlib import Path

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import (
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    PreTrainedModel,
    T5Config,
    T5ForConditionalGeneration,
)

from common.errors import ArtifactError
from common.files import sha256
from models.drrag.triple_classifier import TripleClassifier
from tests.conftest import hotpot_rows
from tests.helpers.runs import fit_here, fit_in_turn, metrics
from tests.trainers.test_drrag import write_config
from trainers.run.environment import commit, data_digests
from trainers.run.loggers import JsonlLogger
from trainers.run.throughput import flops_per_token


def logged(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


@pytest.fixture
def logger(tmp_path) -> JsonlLogger:
    """A file with four optimizer steps and a validation after the second."""
    logger = JsonlLogger(tmp_path / "run")
    for step in range(4):
        logger.log_metrics({"train/loss": 1.0 - step / 10}, step)
        if step == 1:
            logger.log_metrics({"val/em": 50.0}, step)
    return logger


def test_a_cut_keeps_what_was_logged_before_the_checkpoint_without_an_incomplete_last_line(logger, tmp_path) -> None:
    before, inode = logger.path.read_bytes(), logger.path.stat().st_ino
    logger.cut(4)
    assert logger.path.read_bytes() == before
    assert logger.path.stat().st_ino == inode  # nothing was written
    with logger.path.open("ab") as file:
        file.write(b'{"step": 1, "train/lo\xc3')
    JsonlLogger(logger.folder).cut(2)  # the checkpoint of global step 2 was saved after the steps 0 and 1
    assert [row["step"] for row in logged(logger.folder)] == [0, 1, 1]
    assert logged(logger.folder)[-1] == {"step": 1, "val/em": 50.0}  # the validation of step 1
    logger.log_metrics({"train/loss": 0.5}, 2)
    assert [row["step"] for row in logged(logger.folder)] == [0, 1, 1, 2]
    logger.cut(0)
    assert logger.path.read_bytes() == b""
    JsonlLogger(tmp_path / "new").cut(3)
    assert not (tmp_path / "new").exists()


def test_a_line_that_is_no_metrics_is_named(logger) -> None:
    logger.finalize("stopped")
    logger.path.write_text('{"step": 0}\nsomething else\n{"step": 1}\n')
    with pytest.raises(ArtifactError, match=r"metrics\.jsonl:2: not a line of metrics"):
        logger.cut(1)
    assert logger.path.read_text().count("\n") == 3


def test_values_that_are_no_numbers_are_null(tmp_path) -> None:
    logger = JsonlLogger(tmp_path)
    logger.log_metrics({"a": float("nan"), "b": torch.tensor(float("inf")), "c": -float("inf"), "d": 1}, 0)

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    (line,) = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert json.loads(line, parse_constant=refuse) == {"step": 0, "a": None, "b": None, "c": None, "d": 1.0}


def git(folder: Path, *arguments: str) -> str:
    name = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    return subprocess.run(
        ["git", *name, *arguments], cwd=folder, capture_output=True, text=True, check=True
    ).stdout.strip()


def test_the_commit_is_that_of_the_checkout_itself(tmp_path) -> None:
    inside = tmp_path / "env/site-packages/lightning_rag/source"
    inside.mkdir(parents=True)
    assert commit(inside) == "unknown"
    git(tmp_path, "init", "-q")
    (tmp_path / "file").write_text("a")
    git(tmp_path, "add", "file")
    git(tmp_path, "commit", "-qm", "another project")
    head = git(tmp_path, "rev-parse", "HEAD")
    assert commit(inside) == "unknown"
    assert commit(tmp_path) == head
    (tmp_path / "file").write_text("b")
    assert commit(tmp_path) == f"{head}+changes"


def test_the_digest_of_a_split_is_that_of_its_file(tmp_path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("x")
    sources = [str(file), f"{file}:TEST", "hf:squad:train"]
    assert [*data_digests(sources).values()] == [sha256(file), sha256(file), "hub"]


def counted(network: PreTrainedModel, **inputs: torch.Tensor) -> int:
    """What torch counts of a forward and a backward pass, attention scores included."""
    with FlopCounterMode(display=False) as counter:
        network(**inputs).logits.sum().backward()
    return counter.get_total_flops()


@pytest.mark.parametrize("tied", [True, False])
def test_flops_of_an_encoder_decoder(tied) -> None:
    sizes = {"vocab_size": 500, "d_model": 64, "d_kv": 16, "d_ff": 256, "num_layers": 3, "num_heads": 4}
    config = T5Config(**sizes, decoder_start_token_id=0, tie_word_embeddings=tied)
    network = T5ForConditionalGeneration(config)
    per_input, per_target = flops_per_token(network)
    for tokens, targets in ((8, 2), (8, 8)):  # short rows: attention's scores are left out of the estimate
        ids = torch.ones(16, tokens, dtype=torch.long)
        flops = counted(network, input_ids=ids, decoder_input_ids=ids[:, :targets])
        # the decoder's keys and values of the input are counted at its targets
        assert 16 * (per_input * tokens + per_target * targets) == pytest.approx(
            flops, rel=0.25 if targets < 8 else 0.05
        )


def test_flops_of_an_encoder_and_of_frozen_weights(checkpoints) -> None:
    network = AutoModelForSequenceClassification.from_pretrained(checkpoints["bert"])
    per_input, per_target = flops_per_token(network)
    ids = torch.ones(16, 4, dtype=torch.long)
    assert 16 * 4 * per_input == pytest.approx(counted(network, input_ids=ids), rel=0.15)
    assert per_target == 0
    t5 = AutoModelForSeq2SeqLM.from_pretrained(checkpoints["t5"])
    whole = flops_per_token(t5)
    t5.requires_grad_(False)
    assert [6 * frozen for frozen in flops_per_token(t5)] == [4 * trained for trained in whole]


def rates(folder: Path, name: str) -> list[dict[str, float]]:
    return [row for row in metrics(folder, name) if "train/device/items_per_sec" in row]


@pytest.mark.whole_run
def test_rates_are_logged_at_every_logged_step(tmp_path, checkpoints) -> None:
    (tmp_path / "hotpot.json").write_text(json.dumps(hotpot_rows(40)))
    write_config(tmp_path, checkpoints["bert"], tmp_path / "hotpot.json")
    options = ("--trainer.log_every_n_steps", "2", "--trainer.val_check_interval", "3", "--trainer.max_epochs")
    fit_here(tmp_path, "--name", "one", *options, "1")
    accumulated = ("--trainer.accumulate_grad_batches", "2", "--trainer.val_check_interval", "6")
    fit_here(tmp_path, "--name", "several", *options, "1", *accumulated)
    fit_in_turn(tmp_path, [["--name", "two", *options, "1"]])
    fit_here(tmp_path, "--name", "resumed", *options, "2", "--ckpt_path", str(tmp_path / "checkpoints/one/last.ckpt"))
    per_token, _ = flops_per_token(TripleClassifier.build(str(checkpoints["bert"]), 96).network)
    steps = json.loads((tmp_path / "checkpoints/one/audit.json").read_text())["steps_per_epoch"]
    for name in ("one", "several", "two", "resumed"):
        rows = rates(tmp_path, name)
        # a rate needs two batches, which the first step of the resumed run does not have
        begin, last = (steps + 2, 2 * steps) if name == "resumed" else (1, steps)
        logged = [s - 1 for s in range(begin, last + 1) if s % 2 == 0 or s == last]
        assert [row["step"] for row in rows] == logged, name
        for row in rows:
            tokens = row["train/device/items_per_sec"]
            assert 0 < row["train/device/samples_per_sec"] < tokens
            assert row["train/device/flops_per_sec"] == pytest.approx(per_token * tokens)
        assert any("train/grad_norm" in row for row in metrics(tmp_path, name))
        assert any("val/auc" in row for row in metrics(tmp_path, name))
        assert not [key for row in metrics(tmp_path, name) for key in row if key.startswith("validate")]
    assert "train/items_per_sec" in rates(tmp_path, "two")[0]  # of both ranks
    last = rates(tmp_path, "one")[-1]
    assert last["train/lengths"] > last["train/samples"] > last["train/batches"] > 0
