"""Trains the adaptive choice of DMQR-RAG for local models.

The model predicts which strategies' rewrites will add relevant passages to a question's search (the paper's Section
2.2.2 asks an LLM).

Shape legend: P questions, T tokens, S strategies.
"""

from itertools import combinations
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F
from transformers import PreTrainedModel

from common.errors import UserError
from common.ranges import DropoutRate, Share
from datamodules.dmqr_adaptive import StrategyClassifierBatch
from models.dmqr.strategy_classifier import KIND, PART, TEXT_FORMAT, StrategyClassifier
from models.metrics import auroc
from models.serving_manifest import write_manifest
from models.text_formats import InputTokens
from trainers.run.classification_metrics import average_precision
from trainers.run.encoder_module import EncoderModule
from trainers.run.learning import EXPLAINED, explained
from trainers.run.optimizers import HeadOptimizer
from trainers.run.starting_weights import Start, StartOption

Floats = NDArray[np.float64]


def choice_loss(log_odds_PS: Tensor, targets_PS: Tensor, weights_P: Tensor, step_targets: int) -> Tensor:
    """Binary cross-entropy per (question, strategy): one rank's share of a step's loss, nats.

    The sum over ranks and accumulated batches is the mean over the step's known targets, however the step was split.

    Args:
        log_odds_PS: Scores.
        targets_PS: 1.0, 0.0, or NaN where there is no rewrite.
        weights_P: 1.0, or 0.0 for a question to ignore.
        step_targets: Known targets of the whole step.
    """
    known_PS = (~targets_PS.isnan()) * weights_P[:, None]
    targets_PS = targets_PS.nan_to_num()
    return F.binary_cross_entropy_with_logits(log_odds_PS, targets_PS, known_PS, reduction="sum") / max(1, step_targets)


def kept_gains(chosen_PS: NDArray[np.bool_], gains_PS: Floats) -> Floats:
    """The gain of the chosen strategies for each question, (P,): the best of their gains, at least 0.

    Args:
        chosen_PS: Whether a strategy is chosen.
        gains_PS: NaN where there is no rewrite.
    """
    return np.where(chosen_PS & (gains_PS > 0), gains_PS, 0.0).max(axis=1)  # NaN > 0 is false


def choose_threshold(probabilities_PS: Floats, gains_PS: Floats, kept_gain: float) -> float:
    """The highest threshold whose choices keep a share of the questions' best gains.

    It is the midpoint between the probability of the last chosen (question, strategy) and the next lower one, so that
    it does not depend on a probability's last digit.

    Args:
        probabilities_PS: Of the model.
        gains_PS: NaN where there is no rewrite; one must be above 0.
        kept_gain: Share of the sum of the best gains, in [0, 1].
    """
    best = kept_gains(np.ones_like(gains_PS, dtype=bool), gains_PS).sum()
    levels = np.unique(probabilities_PS)[::-1]  # from the highest down
    low, high = 0, len(levels) - 1  # more are chosen at a lower level, so the kept gain never falls: bisection
    while low < high:
        middle = (low + high) // 2
        kept = kept_gains(probabilities_PS >= levels[middle], gains_PS).sum()
        low, high = (low, middle) if kept >= kept_gain * best - 1e-9 * best else (middle + 1, high)
    below = levels[low + 1] if low + 1 < len(levels) else levels[low]
    return float((levels[low] + below) / 2)


def fixed_choice(gains_PS: Floats, kept_gain: float) -> int:
    """The smallest number of strategies that keep a share of the best gains if every question gets the same ones.

    Args:
        gains_PS: NaN where there is no rewrite.
        kept_gain: Share of the sum of the best gains, in [0, 1].
    """
    count = gains_PS.shape[1]
    best = kept_gains(np.ones_like(gains_PS, dtype=bool), gains_PS).sum()
    for size in range(count):
        for places in combinations(range(count), size):
            chosen_PS = np.zeros_like(gains_PS, dtype=bool)
            chosen_PS[:, places] = True
            if kept_gains(chosen_PS, gains_PS).sum() >= kept_gain * best - 1e-9 * best:
                return size
    return count


class StrategyClassifierTrainer(EncoderModule):
    """Binary cross-entropy per strategy on whether its rewrite gained; AdamW with linear warm-up and decay.

    Threshold from validation.

    Args:
        strategies: Names of the strategies to choose from; the preferences must have rewrites by each.
        pretrained: What to start from: folder or hub id of an encoder such as MiniLM, BERT, RoBERTa; or the serving
            folder or a checkpoint of an earlier run with these strategies.
        max_tokens: Maximum length of a question with its earlier turns, in tokens; the oldest turns are truncated,
            then the question.
        kept_gain: Share of the validation questions' best gains that the exported threshold must keep; the
            highest such threshold is taken.
        dropout: Dropout rate of hidden states and attention; the checkpoint's when null.
        optimizer: AdamW.
        freeze_embeddings: Do not train the token embeddings: half of a small model's optimizer states are not needed.
        gradient_checkpointing: Recompute activations in the backward pass: less memory, about a third slower.

    Raises:
        UserError: If a strategy stands twice, or there is none.
    """

    starts: ClassVar = {"pretrained": StartOption("chooser", {KIND: PART})}

    def __init__(
        self,
        strategies: list[str],
        pretrained: str = "sentence-transformers/all-MiniLM-L6-v2",
        max_tokens: InputTokens = 256,
        kept_gain: Share = 0.95,
        dropout: DropoutRate | None = None,
        optimizer: HeadOptimizer = HeadOptimizer(),
        freeze_embeddings: bool = False,
        gradient_checkpointing: bool = False,
    ) -> None:
        super().__init__()
        if not strategies or len(set(strategies)) < len(strategies):
            raise UserError(f"strategies is {list(strategies)}; it must name at least one, each once.")
        self.save_hyperparameters()
        self.optimizer = optimizer

    def build(self) -> None:
        """See `RunModule`."""
        given, pretrained = self.hparams, self.start("pretrained")
        self.chooser = StrategyClassifier.build(pretrained, given.strategies, given.max_tokens, given.dropout)
        self.prepare()

    def begin_from(self, option: str, start: Start) -> None:
        """See `RunModule`.

        Raises:
            UserError: If the checkpoint chooses among other strategies.
        """
        theirs = list(start.options["strategies"])
        if theirs != list(self.hparams.strategies):
            raise UserError(f"{start.file} chooses among {theirs}: set model.strategies to these, in this order.")
        super().begin_from(option, start)

    @property
    def network_to_shard(self) -> PreTrainedModel:
        """See `RunModule`."""
        return self.chooser.network

    def training_step(self, batch: StrategyClassifierBatch, batch_index: int) -> Tensor:
        """This rank's share of the step's loss, scaled to undo Lightning's mean over ranks and accumulated batches."""
        log_odds_PS = self.chooser(batch.ids_PT, batch.attention_PT)
        share = choice_loss(log_odds_PS, batch.targets_PS, batch.weights_P, batch.step_targets)
        self.flops_per_batch = self.flops_per_token * batch.tokens
        self.add_shares({"train/loss_nats": share})
        return share * self.backward_passes

    def validation_step(self, batch: StrategyClassifierBatch, batch_index: int) -> None:
        """Collect log-odds, targets and gains; `summarize` computes the metrics over all ranks."""
        log_odds_PS = self.chooser(batch.ids_PT, batch.attention_PT)
        results = zip(log_odds_PS.tolist(), batch.targets_PS.tolist(), batch.gains_PS.tolist(), strict=True)
        self.validated |= zip(batch.rows_P.tolist(), results, strict=True)

    @property
    def metric_names(self) -> tuple[str, ...]:
        """See `RunModule`."""
        return "average_precision", "auc", "loss_nats", "rewrites"

    def summarize(self, results: list[tuple[list[float], list[float], list[float]]]) -> dict[str, float]:
        """Average precision over all (question, strategy); AUC as the mean over the strategies.

        Also the threshold, the share of the best gains that it keeps, and its rewrites per question, beside the number
        that a fixed set of strategies needs for that share.

        Raises:
            UserError: If validation saw rewrites that gain only, or none.
        """
        log_odds_PS, targets_PS, gains_PS = (np.array(column) for column in zip(*results, strict=True))
        known_PS = ~np.isnan(targets_PS)
        helps_N, log_odds_N = targets_PS[known_PS] > 0, log_odds_PS[known_PS]
        best_P = kept_gains(known_PS, gains_PS)
        if helps_N.all() or not helps_N.any() or not best_P.any():
            raise UserError("validation saw rewrites of one kind only: raise --trainer.limit_val_batches.")
        probabilities_PS = 1 / (1 + np.exp(-log_odds_PS))
        threshold = choose_threshold(probabilities_PS, gains_PS, self.hparams.kept_gain)
        self.chooser.threshold = threshold
        chosen_PS = probabilities_PS >= threshold
        of_strategies = [
            (log_odds_PS[known, place], targets_PS[known, place] > 0) for place, known in enumerate(known_PS.T)
        ]
        areas = [
            auroc(log_odds_P, helps_P) for log_odds_P, helps_P in of_strategies if 0 < helps_P.sum() < len(helps_P)
        ]
        signs_N = np.where(helps_N, -log_odds_N, log_odds_N)
        return {
            "average_precision": average_precision(probabilities_PS[known_PS], helps_N.astype(float)),
            **({"auc": float(np.mean(areas))} if areas else {}),
            "loss_nats": float(np.logaddexp(0, signs_N).mean()),
            EXPLAINED: explained(of_strategies),
            "threshold": threshold,
            "kept_gain": float(kept_gains(chosen_PS, gains_PS).sum() / best_P.sum()),
            "rewrites": float(chosen_PS.sum(axis=1).mean()),
            "fixed_rewrites": float(fixed_choice(gains_PS, self.hparams.kept_gain)),
            "helping_share": float(helps_N.mean()),
            "questions": float(len(gains_PS)),
        }

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Restore the validation results and the threshold."""
        super().on_load_checkpoint(checkpoint)
        self.chooser.threshold = self.validation_metrics.get("threshold", 0.5)

    def next_step(self, serving: Path) -> str:
        """See `RunModule`."""
        return (
            "choose with it: in a config of harness.systems.dmqr.Dmqr put the rewriter into the place `rewriter` of "
            f"harness.rewriters.adaptive.AdaptiveRewriter, with serving {serving}"
        )

    def export(self, folder: Path, provenance: dict[str, Any]) -> None:
        """Write the network, a model card and the manifest into a serving folder.

        Args:
            folder: An empty folder.
            provenance: Versions, commit and data digests, stored unchanged.
        """
        self.chooser.save(folder)
        values = {"chooser": self.chooser, "text_format": TEXT_FORMAT}
        self.write_card(folder, Path(__file__).with_name("dmqr_adaptive_card.md"), values, provenance)
        write_manifest(
            folder, KIND, TEXT_FORMAT, self.chooser.encode.max_tokens,
            strategies=list(self.chooser.strategies), threshold=self.chooser.threshold,
            kept_gain=self.hparams.kept_gain, min_gain=self.trainer.datamodule.min_gain,
            targets=self.trainer.datamodule.kind, preferences=self.trainer.datamodule.manifests,
            validation=self.validation_metrics, **provenance,
        )  # fmt: skip

    def export_difference(self, folder: Path, batch: StrategyClassifierBatch) -> float:
        """Largest difference in log-odds (nats) between this module and the model in `folder`, in fp32."""
        loaded = StrategyClassifier.load(folder, "cpu", "fp32")
        with torch.inference_mode():
            here_PS = self.chooser.eval().cpu().float()(batch.ids_PT, batch.attention_PT)
            there_PS = loaded(batch.ids_PT, batch.attention_PT)
        return float((here_PS - there_PS).abs().max())
