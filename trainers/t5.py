"""Trains a T5 on plain text by span corruption (Raffel et al. 2020), from scratch or to adapt it to a domain.

Shape legend: P sequences, T input tokens, A target tokens, V vocabulary.
"""

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import AutoModelForSeq2SeqLM, PreTrainedModel

from common.ranges import DropoutRate
from datamodules.t5 import SpanBatch
from models.full_precision import keep_heads_in_fp32
from models.length_batching import IGNORE
from models.loading import load_network, save_network
from models.pretrained import load_seq2seq
from models.serving_manifest import write_manifest
from models.t5.span_corruption import TEXT_FORMAT
from trainers.run.module import RunModule
from trainers.run.optimizers import Optimizer, decay_groups
from trainers.run.starting_weights import StartOption
from trainers.run.throughput import flops_per_token

KIND = "t5"
PART = "t5"
OPTIMIZER = Optimizer(1e-3, 0.01, 100, "inverse_sqrt")


class SpanCorruptionTrainer(RunModule):
    """Mean cross-entropy of the target tokens of an optimizer step; AdamW with warm-up and decay.

    Args:
        pretrained: What to start from: folder (python -m trainers.t5_from_scratch writes one) or hub id of a T5; or the
            serving folder or a checkpoint of an earlier run.
        optimizer: AdamW.
        dropout: Dropout rate; the checkpoint's when None.  T5 was pretrained without dropout.
        gradient_checkpointing: Recompute activations in the backward pass: less memory, about a third slower.
    """

    lower = (
        "lower data.sequences_per_step or data.max_tokens, raise trainer.accumulate_grad_batches, or set "
        "model.gradient_checkpointing"
    )
    shardable = True
    starts: ClassVar = {"pretrained": StartOption("network", {KIND: PART})}

    def __init__(
        self,
        pretrained: str = "google-t5/t5-base",
        optimizer: Optimizer = OPTIMIZER,
        dropout: DropoutRate | None = 0.0,
        gradient_checkpointing: bool = False,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.optimizer = optimizer

    def build(self) -> None:
        """See `RunModule`."""
        given = self.hparams
        self.network, self.tokenizer = load_seq2seq(
            self.start("pretrained"), "pretrained", given.dropout, given.gradient_checkpointing
        )
        keep_heads_in_fp32(self.network)
        self.flops_per_token = flops_per_token(self.network)

    @property
    def network_to_shard(self) -> PreTrainedModel:
        """See `RunModule`."""
        return self.network

    def forward(self, batch: SpanBatch) -> Tensor:
        """Logits of every target token, (P, A, V), fp32."""
        return self.network(
            input_ids=batch.ids_PT,
            attention_mask=batch.attention_PT,
            decoder_input_ids=self.network.prepare_decoder_input_ids_from_labels(batch.labels_PA),
            use_cache=False,
        ).logits

    def training_step(self, batch: SpanBatch, batch_index: int) -> Tensor:
        """This rank's share of the step's loss, scaled to undo Lightning's mean over ranks and accumulated batches."""
        share = (token_nll(self(batch), batch.labels_PA).sum(dim=1) * batch.weights_P).sum() / batch.step_tokens
        per_input, per_target = self.flops_per_token
        self.flops_per_batch = per_input * batch.ids_PT.numel() + per_target * batch.labels_PA.numel()
        self.add_shares({"train/loss_nats": share})
        return share * self.backward_passes

    def validation_step(self, batch: SpanBatch, batch_index: int) -> None:
        """Collect sums; `summarize` computes the metrics of all ranks' sums."""
        logits_PAV = self(batch)
        real_PA = batch.labels_PA != IGNORE
        correct_PA = (logits_PAV.argmax(dim=-1) == batch.labels_PA) & real_PA
        nll_P = token_nll(logits_PAV, batch.labels_PA).double().sum(dim=1)
        sums = zip(nll_P.tolist(), correct_PA.sum(dim=1).tolist(), real_PA.sum(dim=1).tolist(), strict=True)
        self.validated |= zip(batch.rows_P.tolist(), sums, strict=True)

    @property
    def metric_names(self) -> tuple[str, ...]:
        """See `RunModule`."""
        return "loss_nats", "accuracy"

    def nats(self, result: tuple[float, int, int]) -> float:
        """See `RunModule`."""
        return result[0]

    def summarize(self, results: list[tuple[float, int, int]]) -> dict[str, float]:
        """Loss and accuracy per target token, from every validation sequence's loss, correct tokens and length."""
        nll, correct, tokens = (float(np.sum(column, dtype=np.float64)) for column in zip(*results, strict=True))
        return {"loss_nats": nll / tokens, "accuracy": correct / tokens, "target_tokens": tokens}

    def configure_optimizers(self) -> dict[str, Any]:
        """See `Optimizer`."""
        rate, decay = self.optimizer.learning_rate, self.optimizer.weight_decay
        return self.optimizer.adamw(decay_groups(self.network.parameters(), rate, decay), self.trainer)

    def next_step(self, serving: Path) -> str:
        """See `RunModule`."""
        return f"start a reader from it: python train.py fit --config FILE --model.generator {serving / PART}"

    def export(self, folder: Path, provenance: dict[str, Any]) -> None:
        """Write the network and tokenizer (`t5/`, for a trainer's `pretrained`), a model card and the manifest.

        Args:
            folder: An empty folder.
            provenance: Versions, commit and data digests, stored unchanged.
        """
        save_network(self.network, folder / PART)
        self.tokenizer.save_pretrained(folder / PART)
        self.write_card(folder, Path(__file__).with_name("t5_card.md"), {}, provenance)
        max_tokens = self.trainer.datamodule.max_tokens
        write_manifest(folder, KIND, TEXT_FORMAT, max_tokens, validation=self.validation_metrics, **provenance)

    def export_difference(self, folder: Path, batch: SpanBatch) -> float:
        """Largest difference in a target token's loss (nats) between this module and the T5 in `folder`, in fp32."""
        self.eval().cpu().float()
        with torch.inference_mode():
            trained_PA = token_nll(self(batch), batch.labels_PA)
            trained, loaded = self.network, load_network(AutoModelForSeq2SeqLM, folder / PART, dtype=torch.float32)
            self.network = loaded.eval()
            loaded_PA = token_nll(self(batch), batch.labels_PA)
            self.network = trained
        return float((trained_PA - loaded_PA).abs().max())


def token_nll(logits_PAV: Tensor, labels_PA: Tensor) -> Tensor:
    """Negative log-likelihood of every target token, (P, A), nats, fp32; 0 for padding."""
    return F.cross_entropy(logits_PAV.transpose(1, 2), labels_PA, ignore_index=IGNORE, reduction="none")
