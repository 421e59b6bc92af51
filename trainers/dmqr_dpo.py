"""Trains DMQR-RAG's generative rewriters further, on the rewards of sampled rewrites, by DPO.

Shape legend: G groups (a question and strategy with its candidates), N candidates of a group (padded), C candidates of
all groups.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from common.ranges import DropoutRate
from common.records import clean
from datamodules.dmqr_candidates import CandidateGroup, PreferenceBatch
from datamodules.examples.step_loader import chunks
from models.dmqr.candidates import candidates_logp
from models.lora import Lora
from trainers.dmqr_dpo_loss import DpoLoss, Groups, better_pairs, expected_reward, forward_kl
from trainers.dmqr_dpo_reference import scored_by_ranks, tell_difference
from trainers.dmqr_dpo_validation import DpoValidation, WrittenRewrites, summary
from trainers.dmqr_rewriter_module import LOWER, RewriterModule
from trainers.dmqr_validation import is_question
from trainers.run.optimizers import Optimizer


class DpoTrainer(RewriterModule):
    """Direct preference optimization of a trained rewriter, which is the reference.

    The reference's log-probabilities are computed before the first step by the starting model itself, with new adapters
    that change nothing yet; a resumed run computes the same.

    Args:
        pretrained: The model to start from, as of `RewriterModule`: the serving folder of the rewriter that the
            candidates were sampled from.
        loss: DPO's loss, with imitation beside it as in RPO.
        lora: The adapter.
        dropout: Dropout rate of a T5.
        optimizer: AdamW.
        options: The others of `RewriterModule`.

    Raises:
        UserError: If options of `RewriterModule` contradict each other.
    """

    learned: ClassVar = "on the rewards of sampled rewrites, by direct preference optimization"
    scores: ClassVar = "rewards in the units of the preferences, KL in nats"
    lower: ClassVar = LOWER.format("data.candidates, data.groups_per_step")

    def __init__(
        self,
        pretrained: str,
        loss: DpoLoss = DpoLoss(),
        lora: Lora = Lora(16),
        dropout: DropoutRate | None = 0.0,
        optimizer: Optimizer = Optimizer(),
        **options: Any,
    ) -> None:
        super().__init__(pretrained=pretrained, lora=lora, dropout=dropout, optimizer=optimizer, **options)
        self.loss = loss

    def setup(self, stage: str) -> None:
        """Also compute the reference's log-probabilities, before a checkpoint replaces the weights of `pretrained`."""
        super().setup(stage)
        data = self.trainer.datamodule
        groups: list[CandidateGroup] = [*data.groups, *data.held_out]
        self._score_reference(groups)
        tell_difference(
            self.trainer,
            [
                (reference, each.log_probability, each.times)
                for group in groups
                for reference, each in zip(group.reference, group.example.candidates, strict=True)
            ],
        )

    def _score_reference(self, groups: Sequence[CandidateGroup]) -> None:
        """Store the log-probability of every candidate by the present weights."""
        data = self.trainer.datamodule
        order = sorted(range(len(groups)), key=lambda row: -groups[row].length)
        batches = [[order[place] for place in each] for each in chunks(len(order), data.groups_per_validation_batch)]

        def score(rows: list[int]) -> dict[int, list[float]]:
            logp = iter(self(self.trainer.strategy.batch_to_device(data.batch(groups, rows))).tolist())
            return {row: [next(logp) for _ in groups[row].targets] for row in rows}

        for row, reference in scored_by_ranks(
            self, batches, score, "scoring candidates with the starting model"
        ).items():
            groups[row].reference = reference

    def forward(self, batch: PreferenceBatch) -> Tensor:
        """Log-probability (C,) of every candidate with its end, nats, fp32."""
        return candidates_logp(
            self.rewriter, batch.ids_PT, batch.attention_PT, batch.labels_CA, batch.input_C, batch.strategies
        )

    def scored(self, batch: PreferenceBatch) -> tuple[Tensor, Groups]:
        """Log-probabilities (G, N) of the candidates, 0 for padding, and their rewards and reference."""
        known = batch.candidates
        logp_GN = torch.zeros_like(batch.reference_GN).masked_scatter(batch.there_GN, self(batch))
        groups = Groups(known.rewards_GN, known.known_GN, batch.reference_GN, known.times_GN, known.tokens_GN)
        return logp_GN, groups

    def training_step(self, batch: PreferenceBatch, batch_index: int) -> Tensor:
        """This rank's share of the step's loss, scaled to undo Lightning's mean over ranks and accumulated batches."""
        logp_GN, groups = self.scored(batch)
        step = batch.step_candidates
        pairs = better_pairs(step.rewards_GN, step.known_GN, self.loss.min_gap)
        share = self.loss(logp_GN, groups, float(pairs.sum()))
        per_input, per_target = self.flops_per_token
        self.flops_per_batch = per_input * batch.ids_PT.numel() + per_target * batch.labels_CA.numel()
        count, real_G = len(step.known_GN), groups.known_GN.any(dim=1)
        self.add_shares(
            {
                "train/loss": share,
                "train/kl_nats": (forward_kl(logp_GN.detach(), groups) * real_G).sum() / count,
                "train/expected_reward": (expected_reward(logp_GN.detach(), groups) * real_G).sum() / count,
            }
        )
        return self._scaled(share, batch.strategies, batch.step_strategies)

    def validation_step(self, batch: PreferenceBatch, batch_index: int) -> None:
        """Collect each group's results, and those of the greedy rewrites of the questions that are rewritten."""
        logp_GN, groups = self.scored(batch)
        expected_G, kl_G = expected_reward(logp_GN, groups), forward_kl(logp_GN, groups)
        pairs_G = better_pairs(groups.rewards_GN, groups.known_GN, self.loss.min_gap).sum(dim=(1, 2))
        rows = batch.rows_G.tolist()
        written = self._written([row for row in rows if row in self.trainer.datamodule.generated])
        for place, row in enumerate(rows):
            one = slice(place, place + 1)
            alone = Groups(*(tensor[one] for tensor in vars(groups).values()))
            self.validated[row] = DpoValidation(
                float(self.loss(logp_GN[one], alone, 1.0)), float(pairs_G[place]), float(expected_G[place]),
                float(kl_G[place]), written.get(row),
            )  # fmt: skip

    def _written(self, rows: Sequence[int]) -> dict[int, WrittenRewrites]:
        """The greedy rewrites of validation groups, and the rewards of those whose questions are known."""
        if not rows:
            return {}
        data = self.trainer.datamodule
        chosen = {row: data.held_out[row] for row in rows}
        texts = self.rewriter.write(
            [each.input for each in chosen.values()], [each.example.strategy for each in chosen.values()]
        )
        lengths = map(len, self.rewriter.encode.targets(texts))
        queries = {
            row: self.rewriter.queries(text, each.example.strategy)
            for (row, each), text in zip(chosen.items(), texts, strict=True)
        }
        searched = [row for row in rows if row in data.gold]
        rewards = {}
        if searched:
            asked = [queries[row] or (clean(chosen[row].example.question),) for row in searched]
            rewards = dict(zip(searched, data.rewarded([data.gold[row] for row in searched], asked), strict=True))
        return {
            row: WrittenRewrites(
                length, is_question(queries[row], each.example.question), not queries[row], rewards.get(row),
                each.example.question_reward,
            )
            for (row, each), length in zip(chosen.items(), lengths, strict=True)
        }  # fmt: skip

    @property
    def metric_names(self) -> tuple[str, ...]:
        """See `RunModule`; the reward of greedy rewrites is measured where the data module has a reward."""
        reward = ("reward",) if self.trainer.datamodule.gold else ()
        return *reward, "expected_reward", "loss", "kl"

    def nats(self, result: DpoValidation) -> float:
        """See `RunModule`."""
        return result.loss

    def summarize(self, results: list[DpoValidation]) -> dict[str, float]:
        """See `trainers.dmqr_dpo_validation.summary`."""
        return summary(results)

    @property
    def learned_from(self) -> dict[str, Any]:
        """The round and the preferences, for the manifest."""
        manifests = self.trainer.datamodule.manifests
        return {"round": max(each["round"] for each in manifests), "preferences": manifests}

    def export_difference(self, folder: Path, batch: PreferenceBatch) -> float:
        """Largest difference of a token's log-probability, nats, to the exported files; see `trainers.dmqr_export`."""
        return self._difference(folder, self.trainer.datamodule.plain_batch(batch.rows_G.tolist()))
