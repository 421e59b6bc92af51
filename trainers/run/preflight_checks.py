"""Checks of a run's configuration before the first step."""

from collections.abc import Mapping

import pytorch_lightning as pl

from common.errors import UserError


def refuse_fp16(trainer: pl.Trainer) -> None:
    """Check that a T5 is not trained in fp16.

    Raises:
        UserError: With precision 16-mixed or 16-true.
    """
    if str(trainer.precision).startswith("16"):
        raise UserError(
            f"precision {trainer.precision} overflows in T5's feed-forward layers, whose activations exceed fp16's 65,504: "
            "type --trainer.precision bf16-mixed (GPUs since Ampere) or 32-true."
        )


METRICS_OF = {  # RE-RAG's validation metrics that need this model
    "generator": ("val/em", "val/f1", "val/gen_nats"),
    "estimator": ("val/recall_1", "val/recall_5", "val/recall_10", "val/recall_20", "val/mrr", "val/context_auroc"),
}


def refuse_absent_metric(trainer: pl.Trainer, models: Mapping[str, object]) -> None:
    """Check that validation measures the metric that checkpoints are chosen by.

    Args:
        trainer: With its checkpoint callback.
        models: By name: estimator, generator; None if absent.

    Raises:
        UserError: If the metric needs a model that is None.
    """
    monitor = getattr(trainer.checkpoint_callback, "monitor", None)
    for absent, other in (("generator", "val/recall_1"), ("estimator", "val/em")):
        if models[absent] is None and monitor in METRICS_OF[absent]:
            raise UserError(
                f"checkpoint.monitor is {monitor}, but {absent} is null: type --checkpoint.monitor {other}."
            )
