"""Train a T5 on plain text by span corruption: from scratch, or to adapt a pretrained one to a domain.

Shape legend: P sequences, T input tokens, A target tokens, V vocabulary.
"""

from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.optim import AdamW
from transformers import (
    AutoConfig,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    PreTrainedModel,
    get_inverse_sqrt_schedule,
    get_linear_schedule_with_warmup,
)

from common.errors import UserError
from datamodules.t5 import SpanBatch
from models.length_batching import IGNORE
from models.pretrained import dropout_options, resolve
from models.serving_manifest import write_manifest
from models.t5.span_corruption import TEXT_FORMAT
from trainers.run.model_card import t5_card
from trainers.run.module import RunModule
from trainers.run.optimizers import decay_groups, total_steps
from trainers.run.preflight_checks import refuse_fp16
from trainers.run.throughput import flops_per_token

KIND = "t5"
PART = "t5"
Schedule = Literal["inverse_sqrt", "linear"]


class SpanCorruptionTrainer(RunModule):
    """Cross-entropy of the target tokens, averaged over those of the whole optimizer step; AdamW; warm-up, then decay.

    Args:
        pretrained: Folder (python -m trainers.t5_from_scratch writes one) or hub id of the T5 to start from.
        learning_rate: Peak learning rate, per optimizer step.
        warmup_steps: Optimizer steps of linear warm-up.
        schedule: After it: inverse_sqrt (T5's; needs no end) or linear, to 0 at the end of training.
        weight_decay: AdamW's, on matrices only.
        dropout: The checkpoint's own when None; T5 was pretrained with none.
        gradient_checkpointing: Recompute activations in the backward pass: less memory, about a third more time.

    Raises:
        MissingInputError: If there is no such model on this machine.
        UserError: If it is no encoder-decoder, or a number is out of its range.
    """

    def __init__(
        self,
        pretrained: str = "google-t5/t5-base",
        learning_rate: float = 1e-3,
        warmup_steps: int = 100,
        schedule: Schedule = "inverse_sqrt",
        weight_decay: float = 0.01,
        dropout: float | None = 0.0,
        gradient_checkpointing: bool = False,
    ) -> None:
        super().__init__()
        if warmup_steps < 1:
            raise UserError(f"warmup_steps must be at least 1, got {warmup_steps}.")
        if learning_rate <= 0:
            raise UserError(f"learning_rate must be above 0, got {learning_rate}.")
        self.save_hyperparameters()
        folder = str(resolve(pretrained))
        config = AutoConfig.from_pretrained(folder)
        if not config.is_encoder_decoder:
            raise UserError(f"pretrained {pretrained} is a {config.model_type!r}: name a T5-family model.")
        options = {} if dropout is None else dropout_options(True, dropout)
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.network: PreTrainedModel = AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=torch.float32, **options)
        if gradient_checkpointing:
            self.network.activation_checkpointing_enable({"use_reentrant": False})
        self.flops_per_token = flops_per_token(self.network)
        self.train()

    def setup(self, stage: str) -> None:
        """Refuse fp16 before the data is read."""
        refuse_fp16(self.trainer)

    def forward(self, batch: SpanBatch) -> Tensor:
        """Logits of every target token, (P, A, V)."""
        return self.network(
            input_ids=batch.ids_PT,
            attention_mask=batch.attention_PT,
            decoder_input_ids=self.network.prepare_decoder_input_ids_from_labels(batch.labels_PA),
            use_cache=False,
        ).logits

    def training_step(self, batch: SpanBatch, batch_index: int) -> Tensor:
        """This rank's share of the step's loss, scaled against Lightning's averaging over ranks and accumulation."""
        share = (token_nll(self(batch), batch.labels_PA).sum(dim=1) * batch.weights_P).sum() / batch.step_tokens
        per_input, per_target = self.flops_per_token
        self.flops_per_batch = per_input * batch.ids_PT.numel() + per_target * batch.labels_PA.numel()
        self.log("train/loss_nats", share.detach() * self.backward_passes, prog_bar=True)
        return share * self.backward_passes

    def validation_step(self, batch: SpanBatch, batch_index: int) -> None:
        """Collect sums; metrics follow once all ranks have theirs."""
        logits_PAV = self(batch)
        real_PA = batch.labels_PA != IGNORE
        right_PA = (logits_PAV.argmax(dim=-1) == batch.labels_PA) & real_PA
        nll_P = token_nll(logits_PAV, batch.labels_PA).double().sum(dim=1)
        sums = zip(nll_P.tolist(), right_PA.sum(dim=1).tolist(), real_PA.sum(dim=1).tolist(), strict=True)
        self.validated |= zip(batch.rows_P.tolist(), sums, strict=True)

    test_step = validation_step

    def summarize(self, results: list[tuple[float, int, int]]) -> dict[str, float]:
        """Loss and accuracy per target token, from the loss, right tokens and tokens of every validation sequence."""
        nll, right, tokens = (float(np.sum(column, dtype=np.float64)) for column in zip(*results, strict=True))
        return {"loss_nats": nll / tokens, "accuracy": right / tokens, "target_tokens": tokens}

    def configure_optimizers(self) -> dict[str, Any]:
        """AdamW, norms not decayed; linear warm-up, then the schedule."""
        optimizer = AdamW(
            decay_groups(self.network.parameters(), self.hparams.learning_rate, self.hparams.weight_decay)
        )
        warmup = self.hparams.warmup_steps
        if self.hparams.schedule == "inverse_sqrt":
            schedule = get_inverse_sqrt_schedule(optimizer, warmup)
        else:
            schedule = get_linear_schedule_with_warmup(optimizer, warmup, total_steps(self.trainer, warmup))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def export(self, folder: Path, facts: dict[str, Any]) -> None:
        """Write the serving folder's content: `t5/`, for a trainer's `pretrained`, a model card, the sealed manifest.

        Args:
            folder: An empty folder.
            facts: Versions, commit and data digests, stored as they are.
        """
        self.network.save_pretrained(folder / PART)
        self.tokenizer.save_pretrained(folder / PART)
        (folder / "README.md").write_text(t5_card(self.hparams, self.validation_facts, facts), encoding="utf-8")
        max_tokens = self.trainer.datamodule.max_tokens
        write_manifest(folder, KIND, TEXT_FORMAT, max_tokens, validation=self.validation_facts, **facts)

    def proves(self, folder: Path, batch: SpanBatch) -> float:
        """Largest difference of a target token's loss (nats) between this module and what `folder` loads, in fp32."""
        self.eval().cpu().float()
        with torch.inference_mode():
            here_PA = token_nll(self(batch), batch.labels_PA)
            trained, self.network = self.network, AutoModelForSeq2SeqLM.from_pretrained(folder / PART).float().eval()
            there_PA = token_nll(self(batch), batch.labels_PA)
            self.network = trained
        return float((here_PA - there_PA).abs().max())


def token_nll(logits_PAV: Tensor, labels_PA: Tensor) -> Tensor:
    """-log P of every target token, (P, A), nats, fp32; 0 where there is none."""
    return F.cross_entropy(logits_PAV.float().transpose(1, 2), labels_PA, ignore_index=IGNORE, reduction="none")
