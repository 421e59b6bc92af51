"""Trains the title model by binary cross-entropy."""

from pathlib import Path
from typing import Any

import torch
from expansion.data import TitleBatch
from expansion.model import TitleModel
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from common.ranges import PositiveFloat
from trainers.run.module import RunModule

CARD = Path(__file__).with_name("trainer_card.md")


class TitleTrainer(RunModule):
    """Mean cross-entropy of the passages of an optimizer step; Adam.

    Args:
        learning_rate: Per optimizer step.
    """

    lower = "lower data.passages_per_step"

    def __init__(self, learning_rate: PositiveFloat = 0.1) -> None:
        super().__init__()
        self.save_hyperparameters()

    def build(self) -> None:
        """See `RunModule`."""
        self.network = TitleModel()

    def training_step(self, batch: TitleBatch, batch_index: int) -> Tensor:
        """This rank's share of the step's loss, scaled to undo Lightning's mean over ranks and accumulated batches."""
        logits_B = self.network(batch.features_BF)
        loss = binary_cross_entropy_with_logits(logits_B, batch.gold_B, reduction="sum") / batch.step_passages
        self.add_shares({"train/loss_nats": loss})
        return loss * self.backward_passes

    def validation_step(self, batch: TitleBatch, batch_index: int) -> None:
        """Keep the loss and whether the answer is right, of every passage."""
        logits_B = self.network(batch.features_BF)
        loss_B = binary_cross_entropy_with_logits(logits_B, batch.gold_B, reduction="none")
        right_B = (logits_B > 0) == (batch.gold_B > 0)
        results = zip(loss_B.tolist(), right_B.tolist(), strict=True)
        self.validated |= zip(batch.rows_B.tolist(), results, strict=True)

    @property
    def metric_names(self) -> tuple[str, ...]:
        """See `RunModule`."""
        return "loss_nats", "accuracy"

    def summarize(self, results: list[tuple[float, bool]]) -> dict[str, float]:
        """Means over the validation passages."""
        losses, right = zip(*results, strict=True)
        return {"loss_nats": sum(losses) / len(losses), "accuracy": sum(right) / len(right)}

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Adam."""
        return torch.optim.Adam(self.parameters(), self.hparams.learning_rate)

    def next_step(self, serving: Path) -> str:
        """See `RunModule`."""
        return f"python infer.py ask --config FILE --system.init_args.serving {serving}"

    def export(self, folder: Path, provenance: dict[str, Any]) -> None:
        """Write the model, its card and the manifest."""
        self.write_card(folder, CARD, {}, provenance, starts=())
        self.network.save(folder, validation=self.validation_metrics, **provenance)

    def export_difference(self, folder: Path, batch: TitleBatch) -> float:
        """Largest difference in a logit (nats) between this module and the exported model."""
        with torch.inference_mode():
            ours_B, exported_B = (model(batch.features_BF) for model in (self.network, TitleModel.load(folder)))
        return float((ours_B - exported_B).abs().max())
