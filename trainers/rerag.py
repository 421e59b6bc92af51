"""Trains RE-RAG's relevance estimator and generator, jointly or one alone (RE-RAG, Section 2.3, Appendix B).

Shape legend: B questions, N contexts per question, M rows of a bucket.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor

from common.checks import check_above, check_at_least, check_dropout
from common.errors import UserError
from datamodules.examples.context_sets import ContextBatch
from models.rerag.context_tokenizer import MIN_TOKENS, ContextEncoder, ContextFormat, answer_labels, no_labels
from models.rerag.estimator import TRUE_FALSE, RelevanceEstimator
from models.rerag.generator import Generator
from models.rerag.model import Relevance
from models.t5.word_neighbours import nearest_words
from trainers.rerag_export import ReRagExport
from trainers.rerag_forward import ContextScores, score_contexts
from trainers.rerag_losses import (
    GenForm,
    KlDirection,
    LabelForm,
    estimator_loss,
    generation_loss,
    label_loss,
    token_loss,
)
from trainers.rerag_protocols import PROTOCOLS, Protocol
from trainers.rerag_relevance import chosen_relevance, fit_retriever_temperature
from trainers.run.optimizers import decay_groups, scheduled_adamw, total_steps
from trainers.run.throughput import flops_per_token


class ReRagTrainer(ReRagExport):
    """L = L_gen + kl_weight L_re + token_weight L_tok (Eq. 12) + label_weight L_label (supervision by labels).

    Every term is the mean over the questions of an optimizer step (L_tok: over question-context pairs), so the weights
    do not depend on batch size, accumulation or world size. Without an estimator, relevance is uniform (a plain reader)
    or the retriever's (Eq. 1-2); without a generator, labels alone train the estimator (a reranker, or the released
    code's warm-up).

    Args:
        estimator: Folder or hub id to start the relevance estimator from: the T5 family, or an encoder-only model of
            the BERT/BigBird family; null for none.
        generator: Folder or hub id of the T5 to start the generator from; null for none.
        relevance: What weights the contexts: `estimator`; without one `retriever`, P_R = softmax(score / T) of the
            scores that the data files give (the baseline of the paper's Table 7), or `uniform`. When null: the
            estimator if there is one, else uniform.
        retriever_temperature: T of P_R; fitted on training questions when null.
        protocol: Sets the options below that are null: `ours`, `released` (the published code, which produced the
            paper's figures) or `paper` (as printed).
        text_format: Text of question and context: fid, re_rag_train, re_rag_release; `packed` trains a reader of all
            documents in one call, without an estimator.
        max_tokens: Longest question with context, in tokens; the context is truncated, never the question.
        max_answer_tokens: Longest answer, in tokens, in training and generation.
        answer_prefix: Text before every answer; "Answer: " in the released code.
        repetition_penalty: Of generation; exported in the generator's generation_config.json.
        fit_temperature: Whether validation marginalizes answers by `thorough` and exports the temperature of P_RE with
            the highest exact match; otherwise `fast` with temperature 1.
        gen_form: Form of L_gen: `marginal` or `per_context`.
        kl_direction: Direction of L_re: `generator_to_estimator` or `estimator_to_generator`.
        kl_weight: alpha_1 of the paper.
        token_weight: alpha_2 of the paper. When null: 1; 0 without a generator or with an encoder-only estimator, which
            has no L_tok.
        label_weight: Weight of L_label.
        label_form: Form of L_label: `pointwise`, `listwise`, or `vocabulary` (the released warm-up; T5 estimators
            only).
        label_false_weight: Weight of an irrelevant context in L_label, except `listwise`.
        estimator_layers: Keep the first n layers of an encoder-only estimator; all when null.
        true_word: What a T5 estimator says of a relevant context: a word that is one token of its vocabulary.
        false_word: What it says of an irrelevant one. In mT5's vocabulary "false" is two tokens: take yes and no there.
        freeze_embeddings: Do not train the token embeddings, so that words missing in the training questions keep their
            position relative to the other words.
        dropout: Dropout rate of both models; the checkpoints' when null.
        learning_rate: Peak learning rate, per optimizer step.
        estimator_learning_rate: The estimator's peak learning rate, 0 to freeze it; `learning_rate` when null.
        weight_decay: Weight decay of AdamW, on matrices only.
        warmup_steps: Optimizer steps of linear warm-up.
        schedule: `constant` (the paper) or `linear` decay to 0.
        validation_contexts: Number of the estimator's best contexts that validation answers are generated from.
        refusal_contexts: Number of the estimator's best contexts that the refusal threshold is chosen for: a validation
            question is answerable if one of them is relevant.  Set it to the `contexts` of serving; 25 in the paper.
        refusal_cost: Cost of refusing an answerable question, if answering an unanswerable one costs 1. The exported
            threshold has the lowest cost on validation: (refusal_cost * answerable questions refused + unanswerable
            questions answered) / questions. When null, the paper's: of 0.5, 0.6, ..., 0.9 the one with the best F1. The
            share of unanswerable questions counts: where it is v in validation and s in serving, multiply by (1 - s) v
            / (s (1 - v)).
        gradient_checkpointing: Recompute activations within the models: less memory, about a third slower.
        bucket_checkpointing: Keep the activations of one bucket of contexts at a time; recompute them in the backward
            pass.

    Raises:
        UserError: If a value is out of range, or the options contradict each other.
    """

    lower = (
        "lower data.questions_per_step, data.contexts or model.max_tokens, raise trainer.accumulate_grad_batches, or "
        "set model.bucket_checkpointing"
    )

    def __init__(
        self,
        estimator: str | None = "google-t5/t5-base",
        generator: str | None = "google-t5/t5-base",
        relevance: Relevance | None = None,
        retriever_temperature: float | None = None,
        protocol: Protocol = "ours",
        max_tokens: int = 256,
        max_answer_tokens: int = 32,
        text_format: ContextFormat | None = None,
        answer_prefix: str | None = None,
        repetition_penalty: float | None = None,
        fit_temperature: bool | None = None,
        gen_form: GenForm | None = None,
        kl_direction: KlDirection | None = None,
        kl_weight: float = 1.0,
        token_weight: float | None = None,
        label_weight: float = 0.0,
        label_form: LabelForm = "pointwise",
        label_false_weight: float = 0.125,
        estimator_layers: int | None = None,
        true_word: str = TRUE_FALSE[0],
        false_word: str = TRUE_FALSE[1],
        freeze_embeddings: bool = False,
        dropout: float | None = None,
        learning_rate: float = 1e-4,
        estimator_learning_rate: float | None = None,
        weight_decay: float = 1e-3,
        warmup_steps: int = 0,
        schedule: Literal["constant", "linear"] = "constant",
        validation_contexts: int = 10,
        refusal_contexts: int = 25,
        refusal_cost: float | None = None,
        gradient_checkpointing: bool = False,
        bucket_checkpointing: bool = False,
    ) -> None:
        self.check_options(
            max_tokens, max_answer_tokens, repetition_penalty, kl_weight, token_weight, label_weight,
            label_false_weight, estimator_layers, dropout, learning_rate, estimator_learning_rate, weight_decay,
            warmup_steps, validation_contexts, refusal_contexts, refusal_cost, retriever_temperature,
        )  # fmt: skip
        super().__init__()
        given: dict[str, Any] = {
            "gen_form": gen_form, "kl_direction": kl_direction, "text_format": text_format,
            "answer_prefix": answer_prefix, "repetition_penalty": repetition_penalty,
            "fit_temperature": fit_temperature,
        }  # fmt: skip
        self.choices = replace(
            PROTOCOLS[protocol], **{name: value for name, value in given.items() if value is not None}
        )
        text_format = self.choices.text_format
        self.packed = text_format == "packed"
        if estimator is None and generator is None:
            raise UserError("both estimator and generator are null: name at least one.")
        if self.packed and estimator is not None:
            raise UserError(
                f"text_format {text_format} reads all documents at once, so there is nothing to estimate: set "
                "estimator null."
            )
        self.relevance = chosen_relevance(relevance, estimator, self.packed, retriever_temperature)
        self.retriever_temperature = retriever_temperature  # None but for relevance `retriever`, where `setup` fits it
        if generator is None and not label_weight > 0:
            raise UserError("an estimator without a generator learns from labels alone: set label_weight above 0.")
        self.save_hyperparameters()
        self.estimator = self.generator = None
        if estimator is not None:
            self.estimator = RelevanceEstimator.build(
                estimator,
                max_tokens,
                text_format,
                dropout,
                gradient_checkpointing,
                estimator_layers,
                (true_word, false_word),
            )
        if generator is not None:
            self.generator = Generator.build(
                generator, max_tokens, text_format, self.choices.answer_prefix, dropout, gradient_checkpointing
            )
            self.generator.network.generation_config.repetition_penalty = self.choices.repetition_penalty
        if freeze_embeddings:
            for part in self.parts:
                part.network.get_input_embeddings().requires_grad_(False)
        has_tokens = self.estimator is not None and self.estimator.generative
        if token_weight and self.estimator is not None and not has_tokens:
            raise UserError(
                f"{estimator} is encoder-only and has no LM head, so L_tok is undefined: set token_weight to 0."
            )
        if (true_word, false_word) != TRUE_FALSE and not has_tokens:
            cause = "there is no estimator" if estimator is None else f"{estimator} is encoder-only"
            raise UserError(f"true_word and false_word are for a T5 estimator, but {cause}: leave them out.")
        if refusal_cost is not None and estimator is None:
            raise UserError("refusal_cost is for the threshold of an estimator, but there is none: leave it out.")
        if label_weight and label_form == "vocabulary" and not has_tokens:
            raise UserError(
                f"{estimator} is encoder-only and has no LM head: set label_form to pointwise or listwise, or name a "
                "T5."
            )
        self.token_weight = (
            (float(generator is not None) if token_weight is None else token_weight) if has_tokens else 0.0
        )
        self.flops_per_token = [flops_per_token(part.network) for part in self.parts]
        self.train()

    @staticmethod
    def check_options(
        max_tokens: int, max_answer_tokens: int, repetition_penalty: float | None, kl_weight: float,
        token_weight: float | None, label_weight: float, label_false_weight: float, estimator_layers: int | None,
        dropout: float | None, learning_rate: float, estimator_learning_rate: float | None, weight_decay: float,
        warmup_steps: int, validation_contexts: int, refusal_contexts: int, refusal_cost: float | None,
        retriever_temperature: float | None,
    ) -> None:  # fmt: skip
        """Raise UserError if a value is out of range."""
        check_at_least(MIN_TOKENS, ", for a question and a passage", max_tokens=max_tokens)
        check_at_least(
            1, max_answer_tokens=max_answer_tokens, estimator_layers=estimator_layers,
            validation_contexts=validation_contexts, refusal_contexts=refusal_contexts,
        )  # fmt: skip
        check_at_least(
            0, kl_weight=kl_weight, token_weight=token_weight, label_weight=label_weight,
            label_false_weight=label_false_weight, weight_decay=weight_decay, warmup_steps=warmup_steps,
            estimator_learning_rate=estimator_learning_rate,
        )  # fmt: skip
        check_above(
            0, learning_rate=learning_rate, repetition_penalty=repetition_penalty, refusal_cost=refusal_cost,
            retriever_temperature=retriever_temperature,
        )  # fmt: skip
        check_dropout(dropout=dropout)

    @property
    def parts(self) -> list[Generator | RelevanceEstimator]:
        """The generator and the estimator, in this order, if present."""
        return [part for part in (self.generator, self.estimator) if part is not None]

    @property
    def encoders(self) -> list[ContextEncoder]:
        """Tokenizers of the contexts.

        One if both models read the same tokens, else the generator's and the estimator's.
        """
        encoders = [part.encode for part in self.parts]
        return encoders[:1] if len(encoders) == 2 and encoders[0].same_as(encoders[1]) else encoders

    @property
    def answer_labels(self) -> Callable[[Sequence[str]], Tensor]:
        """Makes token ids (B, A) of answers; (B, 0) without a generator."""
        if self.generator is None:
            return no_labels
        generator = self.generator
        return partial(
            answer_labels, generator.encode.tokenizer, generator.answer_prefix, self.hparams.max_answer_tokens
        )

    def nearest_words(self) -> dict[str, list[str]]:
        """The nearest words of each word in the generator's embeddings, or without one in the estimator's."""
        part = self.parts[0]
        return nearest_words(part.encode.tokenizer, part.network.get_input_embeddings().weight)

    def setup(self, stage: str) -> None:
        """Fit the retriever's temperature, and check the precision."""
        super().setup(stage)
        if self.relevance == "retriever" and self.hparams.retriever_temperature is None:
            self.retriever_temperature = fit_retriever_temperature(self.trainer.datamodule.first_sets)
            if self.trainer.is_global_zero:
                print(
                    f"relevance  softmax(retriever score / {self.retriever_temperature:.4g}), fitted on training "
                    "questions"
                )

    def forward(self, batch: ContextBatch) -> ContextScores:
        """Scores of every context by both models."""
        return score_contexts(
            batch, self.estimator, self.generator, self.hparams.bucket_checkpointing, self.retriever_temperature
        )

    def losses(self, batch: ContextBatch) -> dict[str, Tensor]:
        """This batch's share of every term of the step's loss, unweighted."""
        scores, real_BN, questions = self(batch), batch.real_BN, batch.step_questions
        relevance_BN, logp_BN = scores.relevance_BN, scores.answer_logp_BN
        terms: dict[str, Tensor] = {}
        if self.generator is not None:
            terms["gen"] = generation_loss(relevance_BN, logp_BN, real_BN, self.choices.gen_form).sum() / questions
        if self.estimator is not None and self.generator is not None:
            terms["re"] = estimator_loss(relevance_BN, logp_BN, real_BN, self.choices.kl_direction).sum() / questions
        if self.token_weight:
            terms["tok"] = token_loss(scores.other_logit_BN.sigmoid(), real_BN).sum() / batch.step_pairs
        if self.hparams.label_weight and self.estimator is not None:
            form, false_weight = self.hparams.label_form, self.hparams.label_false_weight
            other_BN = scores.other_logit_BN if self.estimator.generative else None
            label_B = label_loss(relevance_BN, batch.labels_BN, real_BN, form, false_weight, other_BN)
            terms["label"] = label_B.sum() / questions
        return {name: term * batch.weight for name, term in terms.items()}

    def training_step(self, batch: ContextBatch, batch_index: int) -> Tensor:
        """This rank's share of the step's loss, scaled to undo Lightning's mean over ranks and accumulated batches."""
        terms = self.losses(batch)
        self.flops_per_batch = self._flops(batch)
        weights = {
            "gen": 1.0, "re": self.hparams.kl_weight, "tok": self.token_weight, "label": self.hparams.label_weight,
        }  # fmt: skip
        loss = torch.stack([weights[name] * term for name, term in terms.items()]).sum()
        units = {"gen": "gen_nats", "re": "re_nats", "tok": "tok", "label": "label_nats"}
        self.add_shares({"train/loss": loss, **{f"train/{units[name]}": term for name, term in terms.items()}})
        return loss * self.backward_passes

    def _flops(self, batch: ContextBatch) -> int:
        """Estimated FLOPs of training on a batch.

        One target token per row for the estimator, the answer for the generator.
        """
        total = 0
        for part, (per_input, per_target) in zip(self.parts, self.flops_per_token, strict=True):
            own = part is self.estimator
            buckets = (own and batch.estimator_buckets) or batch.buckets
            tokens, rows = sum(bucket.ids_MT.numel() for bucket in buckets), batch.examples
            total += per_input * tokens + per_target * rows * (1 if own else batch.answers_BA.shape[1])
        return total

    def configure_optimizers(self) -> dict[str, Any]:
        """AdamW without weight decay on vectors; after warm-up constant, or linear decay to 0."""
        groups: list[dict[str, Any]] = []
        for part in self.parts:
            rate = self.hparams.learning_rate
            if part is self.estimator and self.hparams.estimator_learning_rate is not None:
                rate = self.hparams.estimator_learning_rate
            groups += decay_groups(part.parameters(), rate, self.hparams.weight_decay)
        warmup, schedule = self.hparams.warmup_steps, self.hparams.schedule
        steps = total_steps(self.trainer, warmup) if schedule == "linear" else None
        return scheduled_adamw(groups, schedule, warmup, steps)
