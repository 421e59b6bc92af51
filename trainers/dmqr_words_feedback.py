"""Trains DMQR-RAG's extractive rewriter further, on the rewards of sampled choices of words (not in the paper).

Shape legend: P pairs, T tokens, L labels (0 stays, 1 joins), G groups (a question with its candidates), N candidates
(padded), D decisions on words (padded).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from torch import Tensor

from common.checks import check_above, check_at_least, check_choice, check_dropout, check_share
from common.words import words_of
from datamodules.examples.word_feedback import WordFeedbackBatch, WordGroup
from models.dmqr.word_choices import joining, log_odds_of, queries_of, staying
from models.dmqr.word_policy import decisions_logp, divergence, entropy, pooled
from models.dmqr.word_selector import WordSelector, scored_words
from trainers.dmqr_feedback_validation import Validated, Written, summary
from trainers.dmqr_selector_module import SelectorModule
from trainers.feedback_losses import FeedbackObjective, Groups, Objective, expected_reward
from trainers.feedback_reference import scored_by_ranks, tell_difference
from trainers.run.model_card import WORDS_FEEDBACK_CARD


class Policies(NamedTuple):
    """The trained policy and the reference on the decisions of a batch."""

    logits_GD: Tensor
    reference_GD: Tensor
    padding_GD: Tensor
    logp_GN: Tensor  # of the candidates, by the trained policy; 0 for padding
    ratio_GND: Tensor | None  # log-ratio of each decision to the reference; None if a choice has one importance weight
    groups: Groups


class ValidatedWords(NamedTuple):
    """The results of one validation question."""

    validated: Validated
    entropy_nats: float
    joining: int  # words that join in the most probable choice
    left_out: int


class WordFeedbackTrainer(SelectorModule):
    """Learns from the rewards of sampled choices of words; starts from a trained selector, which is the reference.

    AdamW with linear warm-up and decay.

    The probability of a choice is that of `models.dmqr.word_policy`, with the policy that the files of feedback name.

    Args:
        pretrained: Serving folder of the selector to start from, with its head: that which the candidates were sampled
            from.
        objective: best_of_n, dpo, ranking or policy_gradient: see `trainers.feedback_losses`.
        beta: Of dpo: how strongly it holds to the reference.
        least_gap: Least difference of rewards of a pair of candidates, for dpo and ranking.
        margin: Of ranking: margin per place in the order.
        imitation_weight: Of dpo and ranking: weight of the imitation of the best candidate, per token; 0 and 0.01 when
            null.
        clip: Of policy_gradient: importance weights are clipped to [1 - clip, 1 + clip].
        kl_weight: Of policy_gradient: weight of the divergence from the reference.
        weights: Of policy_gradient: one importance weight for each of the `words` decided on, relative to the
            reference, which must be the sampler; or one for the whole `choice`, relative to its stored log-probability.
            That of a choice of many words is soon beyond the clip.
        dropout: Dropout rate of hidden states and attention; that of `pretrained` when null.
        learning_rate: Peak learning rate of the encoder, per optimizer step.
        head_learning_rate: Peak learning rate of the classification head.
        weight_decay: Weight decay of AdamW, on matrices only.
        warmup_fraction: Share of all optimizer steps spent on linear warm-up, in [0, 1].
        freeze_embeddings: Do not train the token embeddings: half of a small model's optimizer states are not needed.
        gradient_checkpointing: Recompute activations in the backward pass: less memory, about a third slower.

    Raises:
        MissingInputError: If the serving folder is not there.
        ArtifactError: If it is corrupt, or of another kind or text format.
        UserError: If the objective is unknown, or a number is out of range.
    """

    shardable = False  # the reference is computed before the weights are divided
    size_option = "questions_per_step"

    def __init__(
        self,
        pretrained: str,
        objective: Objective = "policy_gradient",
        beta: float = 0.1,
        least_gap: float = 0.0,
        margin: float = 0.1,
        imitation_weight: float | None = None,
        clip: float = 0.2,
        kl_weight: float = 0.01,
        weights: Literal["words", "choice"] = "words",
        dropout: float | None = None,
        learning_rate: float = 2e-5,
        head_learning_rate: float = 1e-4,
        weight_decay: float = 0.01,
        warmup_fraction: float = 0.1,
        freeze_embeddings: bool = False,
        gradient_checkpointing: bool = False,
    ) -> None:
        check_choice(("words", "choice"), weights=weights)
        self.check_options(dropout, learning_rate, head_learning_rate, weight_decay, warmup_fraction)
        self.objective = FeedbackObjective(
            objective, beta, least_gap, margin, imitation_weight, clip, kl_weight
        )  # checks its numbers before anything is loaded
        super().__init__()
        self.save_hyperparameters()
        self.take(WordSelector.start(Path(pretrained), dropout), freeze_embeddings, gradient_checkpointing)

    @staticmethod
    def check_options(
        dropout: float | None, learning_rate: float, head_learning_rate: float, weight_decay: float,
        warmup_fraction: float
    ) -> None:  # fmt: skip
        """Raise UserError if a value is out of range."""
        check_at_least(0, weight_decay=weight_decay)
        check_above(0, learning_rate=learning_rate, head_learning_rate=head_learning_rate)
        check_dropout(dropout=dropout)
        check_share(warmup_fraction=warmup_fraction)

    def setup(self, stage: str) -> None:
        """Also compute the scores of the reference, before a checkpoint's weights replace those of `pretrained`."""
        super().setup(stage)
        data = self.trainer.datamodule
        groups: list[WordGroup] = [*data.groups, *data.held_out]
        self._score_reference(groups)
        tell_difference(
            self.trainer,
            [
                (reference, each.log_probability, each.times)
                for group in groups
                for reference, each in zip(group.reference_logp(data.policy), group.feedback.candidates, strict=True)
            ],
        )

    def _score_reference(self, groups: Sequence[WordGroup]) -> None:
        """Store z of every decision by the present weights."""
        data = self.trainer.datamodule

        def score(rows: list[int]) -> dict[int, Tensor]:
            batch = self.trainer.strategy.batch_to_device(data.batch(groups, rows))
            z_GD, _, _ = pooled(self(batch), batch.groups.decisions, batch.groups.pairs)
            return dict(zip(rows, z_GD.cpu(), strict=True))

        found = scored_by_ranks(self, data.batches_of(groups), score, "scoring words with the starting model")
        for row, z_D in found.items():
            groups[row].reference_D = z_D[: len(groups[row].decisions)].clone()

    def policies(self, batch: WordFeedbackBatch, log_odds_PTL: Tensor) -> Policies:
        """The trained policy's and the reference's log-odds and log-probabilities, from the batch's token scores."""
        policy = self.trainer.datamodule.policy
        z_GD, joins_GD, padding_GD = pooled(log_odds_PTL, batch.groups.decisions, batch.groups.pairs)
        logits_GD, reference_GD = policy.logits(z_GD, joins_GD), policy.logits(batch.reference_GD, joins_GD)
        known = batch.candidates

        no_GND = padding_GD[:, None] | ~known.known_GN[:, :, None]
        logp_GND, before_GND = (
            decisions_logp(of_GD[:, None], batch.chosen_GND, no_GND) for of_GD in (logits_GD, reference_GD)
        )
        groups = Groups(
            known.rewards_GN, known.known_GN, before_GND.sum(dim=2), known.sampled_GN, known.times_GN, known.tokens_GN
        )
        ratio_GND = logp_GND - before_GND if self.hparams.weights == "words" else None
        return Policies(logits_GD, reference_GD, padding_GD, logp_GND.sum(dim=2), ratio_GND, groups)

    def training_step(self, batch: WordFeedbackBatch, batch_index: int) -> Tensor:
        """This rank's share of the step's loss, scaled to undo Lightning's mean over ranks and accumulated batches."""
        logits_GD, reference_GD, padding_GD, logp_GN, ratio_GND, groups = self.policies(batch, self(batch))
        step = batch.step_candidates
        whole = Groups(step.rewards_GN, step.known_GN, step.sampled_GN, step.sampled_GN, step.times_GN, step.tokens_GN)
        kl_G = divergence(logits_GD, reference_GD, padding_GD) * batch.weights_G
        share = self.objective(logp_GN, groups, float(self.objective.units(whole)), kl_G, ratio_GND)
        self.flops_per_batch = self.flops_per_token * batch.tokens
        count = len(step.known_GN)
        entropy_G = entropy(logits_GD.detach(), padding_GD) * batch.weights_G
        weighed_GND = (logp_GN - groups.sampled_GN)[:, :, None] if ratio_GND is None else ratio_GND
        outside_GND = weighed_GND.detach().exp().sub(1).abs() > self.objective.clip
        weights_of_GN = 1 if ratio_GND is None else groups.tokens_GN
        outside_GN = outside_GND.sum(dim=2) / weights_of_GN
        self.add_shares(
            {
                "train/loss": share,
                "train/kl_nats": kl_G.sum() / count,
                "train/entropy_nats": entropy_G.sum() / count,
                "train/clipped_share": (outside_GN * groups.times_GN).sum() / step.times_GN.sum().clamp(min=1),
            }
        )
        return share * self.backward_passes

    def validation_step(self, batch: WordFeedbackBatch, batch_index: int) -> None:
        """Collect each question's results; `summarize` computes the metrics over all ranks."""
        log_odds_PTL = self(batch)
        logits_GD, reference_GD, padding_GD, logp_GN, ratio_GND, groups = self.policies(batch, log_odds_PTL)
        kl_G, entropy_G = divergence(logits_GD, reference_GD, padding_GD), entropy(logits_GD, padding_GD)
        expected_G = expected_reward(logp_GN, groups)
        rows = batch.rows_G.tolist()
        written = self._written(rows, log_odds_PTL)
        for place, row in enumerate(rows):
            one = slice(place, place + 1)
            ratio = None if ratio_GND is None else ratio_GND[one]
            alone = Groups(*(tensor[one] for tensor in vars(groups).values()))
            decisions = batch.groups.decisions[place]
            used_D = logits_GD[place, : len(decisions)] >= 0
            validated = Validated(
                float(self.objective(logp_GN[one], alone, 1.0, kl_G[one], ratio)), float(self.objective.units(alone)),
                float(expected_G[place]), float(kl_G[place]), written[place],
            )  # fmt: skip
            words = decisions.question_words
            self.validated[row] = ValidatedWords(
                validated, float(entropy_G[place]), int(used_D[words:].sum()), int((~used_D[:words]).sum())
            )

    def _written(self, rows: Sequence[int], log_odds_PTL: Tensor) -> list[Written]:
        """Validation questions' queries as the rewriter would make them, and the rewards where gold is known."""
        data, made = self.trainer.datamodule, []
        policy, scores = data.policy, iter(log_odds_PTL.tolist())
        for group in (data.held_out[row] for row in rows):
            read = [scored_words(pair, next(scores)) for pair in group.pairs]
            stays = staying(read, log_odds_of(policy.stay_probability))
            joins = joining(read, log_odds_of(policy.join_probability), data.join_words)
            question = group.feedback.question
            queries = queries_of(question, self.selector.encode.text(question), stays, joins, data.core_share)
            made.append(tuple(dict.fromkeys(queries[name] for name in policy.strategies if queries.get(name))))
        rewards: dict[int, float] = {}
        if searched := [place for place, row in enumerate(rows) if row in data.gold]:
            questions = [data.gold[rows[place]] for place in searched]
            asked = [made[place] or (data.held_out[rows[place]].feedback.question,) for place in searched]
            rewards = dict(zip(searched, data.rewarded(questions, asked), strict=True))
        written = []
        for place, (row, queries_of_row) in enumerate(zip(rows, made, strict=True)):
            feedback = data.held_out[row].feedback
            words = [[word.text for word in words_of(query)] for query in queries_of_row]
            same = [each == [word.text for word in words_of(feedback.question)] for each in words]
            written.append(
                Written(
                    sum(map(len, words)), all(same), not words, rewards.get(place),
                    feedback.question_reward,
                )
            )  # fmt: skip
        return written

    @property
    def metric_names(self) -> tuple[str, ...]:
        """See `RunModule`; the reward of greedy rewrites is measured where the data module has a reward."""
        reward = ("reward",) if self.trainer.datamodule.gold else ()
        return *reward, "expected_reward", "loss", "kl"

    def summarize(self, results: list[ValidatedWords]) -> dict[str, float]:
        """See `trainers.dmqr_feedback_validation.summary`.

        `length` is in words of all queries of a question, `kl` is exact.

        Also the policy's entropy, and how many words join and are left out in the most probable choices.
        """
        count = len(results)
        return {
            **summary([each.validated for each in results]),
            "entropy_nats": sum(each.entropy_nats for each in results) / count,
            "joining_words": sum(each.joining for each in results) / count,
            "left_out_words": sum(each.left_out for each in results) / count,
        }

    def export(self, folder: Path, provenance: dict[str, Any]) -> None:
        """See `SelectorModule.save_serving`; the manifest also says which feedback the selector has learned from."""
        manifests = self.trainer.datamodule.manifests
        facts = {"round": max(each["round"] for each in manifests), "feedback": manifests}
        self.save_serving(folder, WORDS_FEEDBACK_CARD, provenance, **facts)

    def log_odds_of_words(self, log_odds_PTL: Tensor, batch: WordFeedbackBatch) -> Tensor:
        """See `SelectorModule`."""
        return pooled(log_odds_PTL, batch.groups.decisions, batch.groups.pairs)[0]
