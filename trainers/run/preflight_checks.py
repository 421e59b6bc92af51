"""Runs that cannot end well, refused before the first step."""

from collections.abc import Mapping

import pytorch_lightning as pl

from common.errors import UserError


def refuse_fp16(trainer: pl.Trainer) -> None:
    """Refuse half precision for the T5 family.

    Raises:
        UserError: With 16-mixed or 16-true.
    """
    if str(trainer.precision).startswith("16"):
        raise UserError(
            f"precision {trainer.precision} overflows in T5's feed-forward layers, whose activations pass fp16's 65,504: "
            "type --trainer.precision bf16-mixed (GPUs since Ampere) or 32-true."
        )


NEEDING = {  # what RE-RAG's validation has only with that part
    "generator": ("val/em", "val/f1", "val/gen_nats"),
    "estimator": ("val/recall_1", "val/recall_5", "val/recall_10", "val/recall_20", "val/mrr", "val/context_auroc"),
}


def refuse_absent_metric(trainer: pl.Trainer, parts: Mapping[str, object]) -> None:
    """Refuse to choose checkpoints by what validation will not measure.

    Args:
        trainer: With its checkpoint callback.
        parts: The estimator and the generator, None where there is none.

    Raises:
        UserError: If the metric needs a part that is None.
    """
    monitor = getattr(trainer.checkpoint_callback, "monitor", None)
    for lacking, other in (("generator", "val/recall_1"), ("estimator", "val/em")):
        if parts[lacking] is None and monitor in NEEDING[lacking]:
            raise UserError(
                f"checkpoint.monitor is {monitor}, but {lacking} is null: type --checkpoint.monitor {other}."
            )
