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
from trainers.run.precision import refuse_precision

from common.errors import UserError
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


def test_a_trainer_made_in_python_is_refused_too(checkpoints: dict[str, Path]) -> None:
    trainer = pl.Trainer(accelerator="cpu", precision="bf16-true", logger=False, enable_checkpointing=False)
    with pytest.raises(UserError, match=r"trainer\.precision is bf16-true"):
        trainer.fit(SpanCorruptionTrainer(str(checkpoints["t5"])), [0])
