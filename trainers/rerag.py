"""Train RE-RAG's relevance estimator and generator, jointly or one of them (Section 2.3, Appendix B).

Shape legend: B questions, N contexts per question, M rows of a bucket.
"""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor
from torch.optim import AdamW
from transformers import get_constant_schedule_with_warmup, get_linear_schedule_with_warmup

from common.errors import UserError
from datamodules.examples.context_sets import ContextBatch
from models.rerag.context_tokenizer import ContextEncoder, ContextFormat
from models.rerag.estimator import RelevanceEstimator
from models.rerag.generator import Generator
from models.rerag.model import ReRagModel
from models.t5.word_neighbours import nearest_words
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
from trainers.rerag_validation import QuestionScores, score_questions, summarize
from trainers.run.memory_estimate import memory_plan
from trainers.run.model_card import rerag_card
from trainers.run.module import RunModule
from trainers.run.optimizers import decay_groups, total_steps
from trainers.run.preflight_checks import refuse_absent_metric, refuse_fp16
from trainers.run.throughput import flops_per_token


class ReRagTrainer(RunModule):
    """L = L_gen + kl_weight L_re + token_weight L_tok (Eq. 12), and label_weight times a supervised term.

    All terms are sums over the questions of the global batch divided by their number (L_tok: by question-context pairs),
    so a weight means the same at any batch size, accumulation and world size.  Without an estimator, relevance is uniform
    (a plain reader); without a generator, labels alone train the estimator (a reranker, or the released code's warm-up).

    Args:
        estimator: Folder or hub id to start the relevance estimator from: the T5 family, or an encoder-only model of the
            BERT/BigBird family; null for none.
        generator: Folder or hub id of the T5 to start the generator from; null for none.
        protocol: Sets the options below that are null: `ours`, `released` (the published code, which produced the paper's
            figures) or `paper` (as printed).
        text_format: How question and context are written: fid, re_rag_train, re_rag_release; `packed` trains a reader of
            all documents in one call, without an estimator.
        max_tokens: Longest question with context, in tokens; the context is cut, never the question.
        max_answer_tokens: Longest answer, in tokens, learnt and written.
        answer_prefix: Text before every answer; the released code's is "Answer: ".
        repetition_penalty: Of answers that are written; travels in the generator's generation_config.json.
        fit_temperature: Whether validation answers are marginalized `thorough`, and the temperature of P_RE is chosen under
            which most are right, which is exported; else `fast`, temperature 1.
        gen_form: `marginal` or `per_context`, L_gen.
        kl_direction: `generator_to_estimator` or `estimator_to_generator`, L_re.
        kl_weight: The paper's alpha_1.
        token_weight: The paper's alpha_2; when null 1, but 0 for an encoder-only estimator, which has no such term, and where
            labels alone train.
        label_weight: Weight of the supervision of the estimator by the data module's labels.
        label_form: `pointwise`, `listwise`, or `vocabulary` (the released warm-up; a T5 alone has one).
        label_false_weight: Weight of an irrelevant context; not listwise.
        estimator_layers: Keep the first so many layers of an encoder-only estimator; all when null.
        freeze_embeddings: Leave the token embeddings of both models as they are: words that no training question holds
            keep their place among those that one does.
        dropout: Of both models; the checkpoints' own when null.
        learning_rate: AdamW's, per optimizer step.
        estimator_learning_rate: The estimator's own; the same when null.
        weight_decay: AdamW's, on matrices only.
        warmup_steps: Optimizer steps of linear warm-up.
        schedule: `constant` (the paper) or `linear` decay to 0.
        validation_contexts: Contexts, best by the estimator, that validation answers are read from.
        gradient_checkpointing: Recompute activations within the models: less memory, about a third more time.
        bucket_checkpointing: Keep activations of one bucket of contexts at a time, recomputing each in the backward pass.

    Raises:
        UserError: If the options contradict each other.
    """

    checkpoint_keys = ("validation_facts", "served")

    def __init__(
        self,
        estimator: str | None = "google-t5/t5-base",
        generator: str | None = "google-t5/t5-base",
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
        freeze_embeddings: bool = False,
        dropout: float | None = None,
        learning_rate: float = 1e-4,
        estimator_learning_rate: float | None = None,
        weight_decay: float = 1e-3,
        warmup_steps: int = 0,
        schedule: Literal["constant", "linear"] = "constant",
        validation_contexts: int = 10,
        gradient_checkpointing: bool = False,
        bucket_checkpointing: bool = False,
    ) -> None:
        super().__init__()
        given: dict[str, Any] = {
            "gen_form": gen_form, "kl_direction": kl_direction, "text_format": text_format, "answer_prefix": answer_prefix,
            "repetition_penalty": repetition_penalty, "fit_temperature": fit_temperature,
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
                "text_format packed reads all documents at once, so there is nothing to estimate: set estimator null."
            )
        if generator is None and not label_weight > 0:
            raise UserError("an estimator without a generator learns from labels alone: set label_weight above 0.")
        self.save_hyperparameters()
        self.estimator = self.generator = None
        if estimator is not None:
            self.estimator = RelevanceEstimator.build(
                estimator, max_tokens, text_format, dropout, gradient_checkpointing, estimator_layers
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
                f"{estimator} has no vocabulary to speak from, so there is no L_tok: set token_weight to 0."
            )
        if label_weight and label_form == "vocabulary" and not has_tokens:
            raise UserError(
                f"{estimator} has no vocabulary to speak from: set label_form to pointwise or listwise, or name a T5."
            )
        self.token_weight = (
            (float(generator is not None) if token_weight is None else token_weight) if has_tokens else 0.0
        )
        self.flops_per_token = [flops_per_token(part.network) for part in self.parts]
        self.chosen_reading = 0
        self.served: dict[str, Any] = {}
        self.train()

    @property
    def parts(self) -> list[Generator | RelevanceEstimator]:
        """The generator, then the estimator, as far as there are."""
        return [part for part in (self.generator, self.estimator) if part is not None]

    @property
    def encoders(self) -> list[ContextEncoder]:
        """Who tokenizes: one encoder where estimator and generator read the same tokens, else generator's, estimator's."""
        encoders = [part.encode for part in self.parts]
        return encoders[:1] if len(encoders) == 2 and encoders[0].same_as(encoders[1]) else encoders

    def answer_labels(self, answers: list[str]) -> Tensor:
        """Token ids (B, A) of answers; (B, 0) without a generator."""
        if self.generator is None:
            return torch.zeros(len(answers), 0, dtype=torch.long)
        return self.generator.labels(answers, self.hparams.max_answer_tokens)

    def nearest_words(self) -> dict[str, list[str]]:
        """For words, the words nearest by the embeddings of the generator, or of the estimator where there is none."""
        part = self.parts[0]
        return nearest_words(part.encode.tokenizer, part.network.get_input_embeddings().weight)

    def on_fit_start(self) -> None:
        """Refuse fp16 and a checkpoint metric that will not be there, and say what memory a step takes."""
        refuse_fp16(self.trainer)
        parts = {"estimator": self.estimator, "generator": self.generator}
        refuse_absent_metric(self.trainer, parts)
        if self.trainer.is_global_zero:
            data, hparams = self.trainer.datamodule, self.hparams
            questions = -(-data.questions_per_step // self.backward_passes)
            plan = memory_plan(
                {name: part.network for name, part in parts.items() if part is not None},
                rows=questions * (1 if self.packed else data.contexts),
                rows_per_bucket=max(1, data.tokens_per_bucket // hparams.max_tokens),
                tokens=hparams.max_tokens,
                answer_tokens=hparams.max_answer_tokens,
                half=str(self.trainer.precision).startswith("bf16"),
                one_bucket=hparams.bucket_checkpointing,
                device=self.trainer.strategy.root_device,
            )
            print("\n".join(plan), flush=True)

    def forward(self, batch: ContextBatch) -> ContextScores:
        """What both models say of every context."""
        return score_contexts(batch, self.estimator, self.generator, self.hparams.bucket_checkpointing)

    def losses(self, batch: ContextBatch) -> dict[str, Tensor]:
        """This batch's share of every term of the step's loss, unweighted; their weighted sum is what is minimized."""
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
        """This rank's share of the step's loss, scaled against Lightning's averaging over ranks and accumulation."""
        terms = self.losses(batch)
        self.flops_per_batch = self._flops(batch)
        weights = {
            "gen": 1.0, "re": self.hparams.kl_weight, "tok": self.token_weight, "label": self.hparams.label_weight,
        }  # fmt: skip
        loss = torch.stack([weights[name] * term for name, term in terms.items()]).sum()
        units = {"gen": "gen_nats", "re": "re_nats", "tok": "tok", "label": "label_nats"}
        self.log("train/loss", loss.detach() * self.backward_passes, prog_bar=True)
        self.log_dict({f"train/{units[name]}": term.detach() * self.backward_passes for name, term in terms.items()})
        return loss * self.backward_passes

    def _flops(self, batch: ContextBatch) -> int:
        """Estimated FLOPs of a training step on a batch; the estimator writes one token per row, the generator answers."""
        total = 0
        for part, (per_input, per_target) in zip(self.parts, self.flops_per_token, strict=True):
            own = part is self.estimator
            buckets = (own and batch.estimator_buckets) or batch.buckets
            tokens, rows = sum(bucket.ids_MT.numel() for bucket in buckets), batch.examples
            total += per_input * tokens + per_target * rows * (1 if own else batch.answers_BA.shape[1])
        return total

    def validation_step(self, batch: ContextBatch, batch_index: int) -> None:
        """Collect what each question's contexts are worth and the answer read from the best of them."""
        data = self.trainer.datamodule
        sets = [data.validation_sets[row] for row in batch.rows_B.tolist()]
        with torch.inference_mode():
            scores = self(batch)
            gen_nats_B = None
            if self.generator is not None:
                gen_nats_B = generation_loss(scores.relevance_BN, scores.answer_logp_BN, batch.real_BN)
        scored = score_questions(
            batch.rows_B.tolist(), sets, scores.relevance_BN, gen_nats_B, self.generator, self.packed,
            self.estimator is not None, self.hparams.validation_contexts, self.hparams.max_answer_tokens,
            self.choices.fit_temperature,
        )  # fmt: skip
        self.validated |= {question.row: question for question in scored}

    test_step = validation_step

    def summarize(self, results: list[QuestionScores]) -> dict[str, float]:
        """Metrics; also the calibration, threshold and temperature that an export stores."""
        self.last_validated = results
        summary = summarize(results, self.estimator is not None, self.trainer.is_global_zero)
        self.served, self.figures, self.chosen_reading = summary.served, summary.figures, summary.chosen
        return summary.facts

    def examples(self, count: int) -> tuple[list[str], list[list[Any]]]:
        """Columns and rows of a table that shows the first so many validation questions."""
        sets = self.trainer.datamodule.validation_sets
        rows = []
        for one in self.last_validated[:count]:
            best = max(range(len(one.scores)), key=one.scores.__getitem__)
            question, passage = sets[one.row].question, sets[one.row].passages[best]
            text = one.read[self.chosen_reading].text if one.read else ""
            rows.append([question.text, text, "; ".join(question.answers), passage.title, one.scores[best]])
        return ["question", "answer", "gold", "best context", "relevance (nats)"], rows

    def configure_optimizers(self) -> dict[str, Any]:
        """AdamW; biases, norms and other vectors are not decayed; constant after warm-up, or linear decay to 0."""
        groups: list[dict[str, Any]] = []
        for part in self.parts:
            rate = self.hparams.learning_rate
            if part is self.estimator and self.hparams.estimator_learning_rate is not None:
                rate = self.hparams.estimator_learning_rate
            groups += decay_groups(part.parameters(), rate, self.hparams.weight_decay)
        optimizer = AdamW(groups)
        if self.hparams.schedule == "constant":
            schedule = get_constant_schedule_with_warmup(optimizer, self.hparams.warmup_steps)
        else:
            steps = total_steps(self.trainer, self.hparams.warmup_steps)
            schedule = get_linear_schedule_with_warmup(optimizer, self.hparams.warmup_steps, steps)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def model(self) -> ReRagModel:
        """What is served: the parts with the calibration, threshold and temperature of the last validation."""
        return ReRagModel.of(self.estimator, self.generator, self.served, self.hparams.max_answer_tokens)

    def export(self, folder: Path, facts: dict[str, Any]) -> None:
        """Write the serving folder's content: the parts, a model card, the sealed manifest.

        Args:
            folder: An empty folder.
            facts: Versions, commit and data digests, stored as they are.
        """
        (folder / "README.md").write_text(
            rerag_card({**self.hparams, **asdict(self.choices)}, self.validation_facts, self.served, facts),
            encoding="utf-8",
        )
        self.model().save(folder, validation=self.validation_facts, **facts)

    def proves(self, folder: Path, batch: ContextBatch) -> float:
        """Largest difference in relevance and answer log-probability (nats) between this module and what `folder` loads."""
        self.eval().cpu().float()
        served = ReRagModel.load(folder, "cpu")
        with torch.inference_mode():
            here, there = self(batch), score_contexts(batch, served.estimator, served.generator)
        relevance = (here.relevance_BN - there.relevance_BN).abs().max()
        return float(torch.maximum(relevance, (here.answer_logp_BN - there.answer_logp_BN).abs().max()))
