"""Every precision that Lightning allows is either trained in or refused in one line, before a model is loaded."""

from pathlib import Path
from typing import get_args

import pytest
import pytorch_lightning as pl
from lightning_fabric.plugins.precision.precision import (
    _PRECISION_INPUT_INT,
    _PRECISION_INPUT_STR,
    _PRECISION_INPUT_STR_ALIAS,
)

from common.errors import UserError
from tests.helpers.commands import command, refused
from tests.trainers import test_t5
from trainers.run.precision import refuse_precision
from trainers.t5 import SpanCorruptionTrainer

LIGHTNINGS = {
    str(name) for kind in (_PRECISION_INPUT_INT, _PRECISION_INPUT_STR, _PRECISION_INPUT_STR_ALIAS)
    for name in get_args(kind)
}  # fmt: skip
TRAINED = {"32", "32-true", "bf16", "bf16-mixed"}  # tests/trainers/test_bf16.py trains in the last; all others in fp32
REASONS = {
    "16": "overflows in T5's", "16-true": "overflows in T5's", "16-mixed": "overflows in T5's",
    "bf16-true": "keeps the weights in bf16",
    "64": "doubles memory", "64-true": "doubles memory",
    "transformer-engine": "Transformer Engine", "transformer-engine-float16": "Transformer Engine",
}  # fmt: skip


def test_every_precision_of_lightning_is_decided() -> None:
    assert TRAINED | REASONS.keys() == LIGHTNINGS
    for name in TRAINED:
        refuse_precision(name)
    refuse_precision(None)
    refuse_precision(32)
    with pytest.raises(UserError, match="is 16, which overflows"):
        refuse_precision(16)


@pytest.mark.parametrize("system", ["fit", "validate"])
@pytest.mark.parametrize("precision", REASONS)
def test_a_refused_precision_is_one_line_before_anything_is_loaded(tmp_path: Path, precision: str, system: str) -> None:
    test_t5.write_corpus(tmp_path / "corpus.jsonl")
    test_t5.write_config(tmp_path, tmp_path / "no-such-model")  # would be named if models were loaded first
    before = sorted(tmp_path.iterdir())
    ended = command(
        tmp_path, "train.py", system, "--config", "config.yaml", "--name", "new", "--trainer.precision", precision
    )
    line = refused(ended, 2, f"trainer.precision is {precision}, which {REASONS[precision]}"[:40], REASONS[precision])
    assert "type --trainer.precision bf16-mixed" in line
    assert sorted(tmp_path.iterdir()) == before


def test_a_precision_plugin_is_refused_too(tmp_path: Path, checkpoints: dict[str, Path]) -> None:
    test_t5.write_corpus(tmp_path / "corpus.jsonl")
    test_t5.write_config(tmp_path, checkpoints["t5"])
    plugin = ("--trainer.plugins", "pytorch_lightning.plugins.HalfPrecision", "--trainer.plugins.init_args.precision",
        "bf16-true")  # fmt: skip
    refused(
        command(tmp_path, "train.py", "fit", "--config", "config.yaml", *plugin), 2, "trainer.precision is bf16-true"
    )
    assert not (tmp_path / "checkpoints").exists()


def test_a_trainer_made_in_python_is_refused_too(checkpoints: dict[str, Path]) -> None:
    trainer = pl.Trainer(accelerator="cpu", precision="bf16-true", logger=False, enable_checkpointing=False)
    with pytest.raises(UserError, match=r"trainer\.precision is bf16-true"):
        trainer.fit(SpanCorruptionTrainer(str(checkpoints["t5"])), [0])
