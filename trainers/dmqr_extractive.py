"""Trains DMQR-RAG's extractive rewriter.

The model predicts which words of a question stay in a query and which words of passages join it (not in the paper).

Shape legend: P pairs, T tokens, L labels (0 stays, 1 joins), W words.
"""

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import PreTrainedModel

from common.errors import UserError
from common.ranges import DropoutRate, NonNegativeFloat
from datamodules.dmqr_extractive import HELPFUL, UNLABELLED, WordBatch
from models.dmqr.word_selector import JOINS, KIND, LABELS, PART, STAYS, WordSelector
from models.dmqr.word_tokenizer import TEXT_FORMAT, PairTokens
from models.metrics import auroc
from models.serving_manifest import write_manifest
from trainers.run.classification_metrics import average_precision
from trainers.run.encoder_module import EncoderModule
from trainers.run.learning import EXPLAINED, explained
from trainers.run.optimizers import HeadOptimizer
from trainers.run.starting_weights import StartOption


def word_loss(
    log_odds_PTL: Tensor, targets_PTL: Tensor, weights_P: Tensor, step_words_L: tuple[int, int], stays_weight: float
) -> Tensor:
    """Binary cross-entropy per word: one rank's share of a step's loss, nats.

        loss = mean over the step's labelled words of passages  +  stays_weight * mean over those of questions

    The sum over ranks and accumulated batches is the step's loss, however the step was split.

    Args:
        log_odds_PTL: Scores.
        targets_PTL: 0 to 1, or UNLABELLED.
        weights_P: 1.0, or 0.0 for a pair to ignore.
        step_words_L: Labelled words of the whole step, by label; a label without words adds nothing.
        stays_weight: Weight of the question's words.
    """
    known_PTL = (targets_PTL != UNLABELLED) * weights_P[:, None, None]
    loss_PTL = F.binary_cross_entropy_with_logits(log_odds_PTL, targets_PTL.clamp(min=0), known_PTL, reduction="none")
    sums_L = loss_PTL.sum(dim=(0, 1))
    stays, joins = (max(1, words) for words in step_words_L)
    return sums_L[JOINS] / joins + stays_weight * sums_L[STAYS] / stays


class ExtractiveTrainer(EncoderModule):
    """Binary cross-entropy per word on labels of retrieval with and without it; AdamW with linear warm-up and decay.

    Args:
        pretrained: What to start from: folder or hub id of an encoder such as MiniLM, BERT, ModernBERT, DeBERTa; or the
            serving folder or a checkpoint of an earlier run.
        max_tokens: Maximum length of question and passage, in tokens; the passage is truncated, then the question.
        dropout: Dropout rate of hidden states and attention; the checkpoint's when null.
        stays_weight: Weight of the loss on the question's words, beside 1 for the passages' words.
        optimizer: AdamW.
        freeze_embeddings: Do not train the token embeddings: half of a small model's optimizer states are not needed.
        gradient_checkpointing: Recompute activations in the backward pass: less memory, about a third slower.
    """

    starts: ClassVar = {"pretrained": StartOption("selector", {KIND: PART})}

    def __init__(
        self,
        pretrained: str = "sentence-transformers/all-MiniLM-L6-v2",
        max_tokens: PairTokens = 256,
        dropout: DropoutRate | None = None,
        stays_weight: NonNegativeFloat = 0.1,
        optimizer: HeadOptimizer = HeadOptimizer(2e-4),
        freeze_embeddings: bool = False,
        gradient_checkpointing: bool = False,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.optimizer = optimizer

    def build(self) -> None:
        """See `RunModule`."""
        given = self.hparams
        self.selector = WordSelector.build(self.start("pretrained"), given.max_tokens, given.dropout)
        self.prepare()

    @property
    def network_to_shard(self) -> PreTrainedModel:
        """See `RunModule`."""
        return self.selector.network

    def forward(self, batch: WordBatch) -> Tensor:
        """Log-odds (nats, fp32) of every token, (P, T, 2)."""
        return self.selector(batch.ids_PT, batch.types_PT, batch.attention_PT)

    def training_step(self, batch: WordBatch, batch_index: int) -> Tensor:
        """This rank's share of the step's loss, scaled to undo Lightning's mean over ranks and accumulated batches."""
        share = word_loss(
            self(batch), batch.targets_PTL, batch.weights_P, batch.step_words_L, self.hparams.stays_weight
        )
        self.flops_per_batch = self.flops_per_token * batch.tokens
        self.add_shares({"train/loss_nats": share})
        return share * self.backward_passes

    def validation_step(self, batch: WordBatch, batch_index: int) -> None:
        """Collect log-odds and targets of all labelled words; `summarize` computes the metrics over all ranks."""
        log_odds_PTL = self(batch)
        for place, row in enumerate(batch.rows_P.tolist()):
            found = []
            for label in range(len(LABELS)):
                targets_T = batch.targets_PTL[place, :, label]
                known_T = targets_T != UNLABELLED
                found.append((log_odds_PTL[place, :, label][known_T].tolist(), targets_T[known_T].tolist()))
            self.validated[row] = found

    @property
    def metric_names(self) -> tuple[str, ...]:
        """See `RunModule`."""
        return "average_precision", "stays_auc", "loss_nats"

    def summarize(self, results: list[list[tuple[list[float], list[float]]]]) -> dict[str, float]:
        """Average precision of the passages' words that help; AUC of the question's words that should stay; the loss.

        Raises:
            UserError: If validation saw no word that helps, or only such words.
        """
        log_odds_LW, targets_LW = (
            [np.array([value for each in results for value in each[label][part]]) for label in range(len(LABELS))]
            for part in (0, 1)
        )
        helps_W = targets_LW[JOINS] >= HELPFUL
        if helps_W.all() or not helps_W.any():
            raise UserError("validation saw words of one kind only: raise --trainer.limit_val_batches.")
        losses = [_mean_loss(*pair) for pair in zip(log_odds_LW, targets_LW, strict=True)]
        stays = {"stays_auc": auroc(log_odds_LW[STAYS], targets_LW[STAYS] > 0)} if len(targets_LW[STAYS]) else {}
        return {
            "average_precision": average_precision(1 / (1 + np.exp(-log_odds_LW[JOINS])), helps_W.astype(float)),
            **stays,
            "loss_nats": losses[JOINS] + self.hparams.stays_weight * losses[STAYS],
            EXPLAINED: explained([(log_odds_LW[JOINS], helps_W), (log_odds_LW[STAYS], targets_LW[STAYS] > 0)]),
            "helping_share": float(helps_W.mean()),
            "words": float(len(helps_W)),
        }

    def next_step(self, serving: Path) -> str:
        """See `RunModule`."""
        rewriter, asked = "--system.init_args.rewriter", f"--questions FILE --out reports/{serving.parent.name}"
        if retriever := self.retriever_options(""):
            evaluate = (
                f"python infer.py evaluate --config configs/infer/dmqr_extractive.yaml {rewriter}.init_args.serving"
            )
            return f"{evaluate} {serving} {retriever}{asked}"
        ask = f"python infer.py ask --config FILE {rewriter} harness.rewriters.extractive.ExtractiveRewriter {rewriter}"
        return f"search with it: {ask}.init_args.serving {serving} --system.init_args.strategies '[par, hop]'"

    def export(self, folder: Path, provenance: dict[str, Any]) -> None:
        """Write the selector, a model card and the manifest into an empty serving folder.

        Args:
            folder: The folder.
            provenance: Versions, commit and data digests, stored unchanged.
        """
        self.selector.save(folder)
        max_tokens = self.selector.encode.max_tokens
        values = {"text_format": TEXT_FORMAT, "max_tokens": max_tokens}
        self.write_card(folder, Path(__file__).with_name("dmqr_extractive_card.md"), values, provenance)
        write_manifest(folder, KIND, TEXT_FORMAT, max_tokens, validation=self.validation_metrics, **provenance)

    def export_difference(self, folder: Path, batch: WordBatch) -> float:
        """Largest difference in a word's log-odds (nats) between this module and the selector in `folder`, in fp32."""
        loaded = WordSelector.load(folder, "cpu", "fp32")
        inputs = batch.ids_PT, batch.types_PT, batch.attention_PT
        decided_PT = (batch.targets_PTL != UNLABELLED).any(dim=2)
        with torch.inference_mode():
            here, there = (selector(*inputs)[decided_PT] for selector in (self.selector.eval().cpu().float(), loaded))
        return float((here - there).abs().max())


def _mean_loss(log_odds_W: np.ndarray, targets_W: np.ndarray) -> float:
    """Mean binary cross-entropy in nats; 0 without words."""
    return float((np.logaddexp(0, log_odds_W) - targets_W * log_odds_W).mean()) if len(targets_W) else 0.0
