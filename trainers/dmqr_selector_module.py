"""What all trainers of DMQR-RAG's extractive rewriter share: the network, its optimizer and its export.

Shape legend: P pairs, T tokens, L labels (0 stays, 1 joins).
"""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from models.dmqr.word_selector import KIND, WordSelector
from models.dmqr.word_tokenizer import TEXT_FORMAT
from models.serving_manifest import write_manifest
from trainers.run.card_usage import selector_usage
from trainers.run.model_card import Card
from trainers.run.module import RunModule
from trainers.run.optimizers import body_and_head_groups, scheduled_adamw, total_steps
from trainers.run.throughput import flops_per_token


class SelectorModule(RunModule):
    """Base class: a subclass's constructor calls `take`.

    Its hyperparameters have the names that `configure_optimizers` reads.
    """

    shardable = True

    def take(self, selector: WordSelector, freeze_embeddings: bool, gradient_checkpointing: bool) -> None:
        """Train this selector."""
        self.selector = selector
        if freeze_embeddings:
            selector.network.get_input_embeddings().requires_grad_(False)
        if gradient_checkpointing:
            selector.network.activation_checkpointing_enable({"use_reentrant": False})
        self.flops_per_token, _ = flops_per_token(selector.network)
        self.train()

    @property
    def network_to_shard(self) -> PreTrainedModel:
        """See `RunModule`."""
        return self.selector.network

    def forward(self, batch: Any) -> Tensor:
        """Log-odds (nats, fp32) of every token, (P, T, 2)."""
        return self.selector(batch.ids_PT, batch.types_PT, batch.attention_PT)

    def configure_optimizers(self) -> dict[str, Any]:
        """AdamW with two learning rates; biases and norms are not decayed; linear warm-up, then linear decay to 0."""
        groups = body_and_head_groups(
            self.selector, self.hparams.learning_rate, self.hparams.head_learning_rate, self.hparams.weight_decay
        )
        steps = total_steps(self.trainer)
        return scheduled_adamw(groups, "linear", round(self.hparams.warmup_fraction * steps), steps)

    def next_step(self, serving: Path) -> str:
        """See `RunModule`."""
        return (
            "search with it: python infer.py ask --config FILE --strategy.init_args.rewriter "
            "harness.rewriters.extractive.ExtractiveRewriter --strategy.init_args.rewriter.init_args.serving "
            f"{serving} --strategy.init_args.strategies '[par, hop]'"
        )

    def save_serving(self, folder: Path, card: Card, provenance: dict[str, Any], **facts: Any) -> None:
        """Write the selector, a model card and the manifest into a serving folder.

        Args:
            folder: An empty folder.
            card: Template of the model card.
            provenance: Versions, commit and data digests, stored unchanged.
            facts: Further ones for the manifest, JSON types only.
        """
        self.selector.save(folder)
        max_tokens = self.selector.encode.max_tokens
        values = {"text_format": TEXT_FORMAT, "max_tokens": max_tokens, "usage": selector_usage(self.selector)}
        self.write_card(folder, card, "token-classification", values, provenance)
        write_manifest(folder, KIND, TEXT_FORMAT, max_tokens, **facts, validation=self.validation_metrics, **provenance)

    def log_odds_of_words(self, log_odds_PTL: Tensor, batch: Any) -> Tensor:
        """The log-odds of those tokens of a batch that are decided on, or what is made of them, in any shape."""
        raise NotImplementedError

    def export_difference(self, folder: Path, batch: Any) -> float:
        """Largest difference in a word's log-odds (nats) between this module and the selector in `folder`, in fp32."""
        loaded = WordSelector.load(folder, "cpu", "fp32")
        inputs = batch.ids_PT, batch.types_PT, batch.attention_PT
        with torch.inference_mode():
            here, there = (
                self.log_odds_of_words(selector(*inputs), batch)
                for selector in (self.selector.eval().cpu().float(), loaded)
            )
        return float((here - there).abs().max())
