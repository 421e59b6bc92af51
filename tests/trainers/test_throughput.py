"""Throughput against the clock and torch's own count of FLOPs.

Rows in metrics.jsonl under accumulation and validation.
"""

import json
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

from models.drrag.triple_classifier import TripleClassifier
from tests.conftest import hotpot_rows
from tests.helpers.runs import fit_here, fit_in_turn, metrics
from tests.trainers.test_drrag import write_config
from trainers.run.throughput import flops_per_token


def counted(network: PreTrainedModel, **inputs: torch.Tensor) -> int:
    """What torch counts of a forward and a backward pass, attention scores included."""
    with FlopCounterMode(display=False) as counter:
        network(**inputs).logits.sum().backward()
    return counter.get_total_flops()


@pytest.mark.parametrize("tied", [True, False])
def test_flops_of_an_encoder_decoder(tied) -> None:
    config = T5Config(
        vocab_size=500, d_model=64, d_kv=16, d_ff=256, num_layers=3, num_heads=4, decoder_start_token_id=0,
        tie_word_embeddings=tied,
    )  # fmt: skip
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
    options = ("--trainer.log_every_n_steps", "2", "--trainer.val_check_interval", "3", "--trainer.max_epochs", "1")
    fit_here(tmp_path, "--name", "one", *options)
    fit_here(tmp_path, "--name", "several", "--trainer.accumulate_grad_batches", "2",
             *options[:2], "--trainer.val_check_interval", "6", "--trainer.max_epochs", "1")  # fmt: skip
    fit_in_turn(tmp_path, [["--name", "two", *options]])
    fit_here(tmp_path, "--name", "resumed", *options[:4], "--trainer.max_epochs", "2",
             "--ckpt_path", str(tmp_path / "checkpoints/one/last.ckpt"))  # fmt: skip
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
