"""The trainer's precision: `auto` follows the hardware and says so; what cannot be exported is refused."""

from pathlib import Path

import pytest
import pytorch_lightning as pl

from common.errors import UserError
from tests.helpers.commands import command, refused
from tests.trainers import test_t5
from trainers.run.trainer import RunTrainer, refuse_precision
from trainers.t5 import SpanCorruptionTrainer

QUIET = {"logger": False, "accelerator": "cpu", "enable_progress_bar": False}


@pytest.mark.parametrize(
    ("flags", "precision", "said"),
    [
        (["amx_bf16", "avx512_bf16"], "bf16-mixed", "this CPU has amx_bf16 and avx512_bf16; for fp32 type"),
        ([], "32-true", "precision 32-true: this CPU has no bf16 instructions"),
    ],
)
def test_auto_follows_the_cpu(flags, precision, said, monkeypatch, capsys) -> None:
    monkeypatch.setattr("models.devices.bf16_flags", lambda: flags)
    monkeypatch.delenv("LIGHTNING_RAG_PRECISION")
    assert RunTrainer(precision="auto", **QUIET).precision == precision
    assert said in capsys.readouterr().out


@pytest.mark.parametrize("given", [None, "32-true"])
def test_fp32_is_the_default(given, capsys) -> None:
    assert RunTrainer(precision=given, **QUIET).precision == "32-true"
    assert "precision" not in capsys.readouterr().out


@pytest.mark.parametrize("precision", ["16-mixed", "16-true", "bf16-true", "64-true", "transformer-engine"])
def test_what_has_not_been_shown_is_refused(precision: str) -> None:
    with pytest.raises(UserError, match=f"trainer.precision is {precision}, .* type --trainer.precision bf16-mixed"):
        refuse_precision(precision)


def test_a_precision_plugin_is_refused_too(tmp_path: Path, checkpoints: dict[str, Path]) -> None:
    test_t5.write_corpus(tmp_path / "corpus.jsonl")
    test_t5.write_config(tmp_path, checkpoints["t5"])
    plugin = ("--trainer.plugins", "pytorch_lightning.plugins.HalfPrecision",
              "--trainer.plugins.init_args.precision", "bf16-true")  # fmt: skip
    ended = command(tmp_path, "train.py", "fit", "--config", "config.yaml", *plugin)
    refused(ended, 2, "trainer.precision is bf16-true")
    assert not (tmp_path / "checkpoints").exists()


def test_a_trainer_made_in_python_is_refused_too(checkpoints: dict[str, Path]) -> None:
    trainer = pl.Trainer(accelerator="cpu", precision="bf16-true", logger=False, enable_checkpointing=False)
    with pytest.raises(UserError, match=r"trainer\.precision is bf16-true"):
        trainer.fit(SpanCorruptionTrainer(str(checkpoints["t5"])), [0])
