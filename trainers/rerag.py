"""Trains RE-RAG's relevance estimator and generator, jointly or one alone (RE-RAG, Section 2.3, Appendix B).

Shape legend: B questions, N contexts per question, M rows of a bucket.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.optim import Optimizer

from common.errors import ArtifactError, UserError
from common.ranges import DropoutRate, PositiveFloat, PositiveInt
from datamodules.examples.context_sets import ContextBatch
from models.causal_lm import check_room
from models.causal_part import reads_prompts
from models.context_tokenizer import ContextEncoder, is_packed, no_labels
from models.cross_encoder import ESTIMATOR, KIND, TRUE_FALSE, RelevanceEstimator
from models.lora import Lora
from models.pair_export import SENTENCE_TRANSFORMERS
from models.pretrained import base_model
from models.prompt_tokenizer import QWEN3_RERANKER, YES_NO, PromptEncoder
from models.rerag.causal_generator import CausalGenerator
from models.rerag.generator import Generator
from models.rerag.model import GENERATOR, Relevance, ReRagModel
from models.rerag.parts import load_adapted_lms, load_generator
from models.t5.word_neighbours import nearest_words
from models.text_formats import InputTokens
from trainers.rerag_forward import ContextScores, score_contexts
from trainers.rerag_frozen import FrozenGenerator
from trainers.rerag_losses import estimator_loss, generation_loss, label_loss, teacher_loss, token_loss
from trainers.rerag_options import Abstention, JointOptimizer, Loss, PresetName, Text, Validation, preset_of, refuse
from trainers.rerag_relevance import chosen_relevance, fit_retriever_temperature
from trainers.rerag_validation import QuestionScores, Summary, examples, metric_names, score_questions, summarize
from trainers.run.controls import asked_otherwise, scored
from trainers.run.module import BASES, RunModule
from trainers.run.optimizers import decay_groups
from trainers.run.starting_weights import Start, StartOption
from trainers.run.throughput import flops_per_token

OPTIMIZER = JointOptimizer(weight_decay=1e-3, schedule="constant")  # the paper's
LORA = Lora(16, dropout=0.05)


class ReRagTrainer(RunModule):
    """L = L_gen + kl_weight L_re + token_weight L_tok (Eq. 12) + label_weight L_label + teacher_weight L_teacher.

    The last two are supervision, by labels and by the scores of another model. Every term is the mean over the
    questions of an optimizer step (L_tok: over question-context pairs), so the weights do not depend on batch size,
    accumulation or world size. Without an estimator, relevance is uniform (a plain reader) or the retriever's (Eq.
    1-2); without a generator, supervision alone trains the estimator (a reranker, or the released code's warm-up).

    Args:
        estimator: What to start the relevance estimator from: folder or hub id of a model of the T5 family, of a causal
            LM, or of an encoder such as MiniLM, BERT, ModernBERT; or the serving folder or a checkpoint of an
            earlier run, of which the estimator is taken; null for none.
        generator: The same for the generator: a T5, a causal LM, or an earlier run, of which the generator is taken;
            null for none. If both name the same causal LM, it is loaded once, and each trains an adapter of its own.
        relevance: What weights the contexts: `estimator`; without one `retriever`, P_R = softmax(score / T) of the
            scores that the data files give (the baseline of the paper's Table 7), or `uniform`. When null: the
            estimator if there is one, else uniform.
        retriever_temperature: T of P_R; fitted on training questions when null.
        preset: Sets the options of text, loss and validation that are null: `ours`, `released` (the published code,
            which produced the paper's figures) or `paper` (as printed).
        max_tokens: Longest question with context, in tokens; the context is truncated, and a question that leaves it no
            room.
        text: What the models read and write.
        loss: Forms and weights of the terms.
        optimizer: AdamW for both models.
        validation: How validation reads.
        abstention: How the refusal threshold is chosen.
        estimator_layers: Keep the first n layers of an encoder-only estimator; all when null.
        lora: The adapter of each causal LM; with rank null all its weights are trained, of two models. For causal LMs
            alone.
        dropout: Dropout rate of both models, not of causal LMs; the checkpoints' when null.
        freeze_embeddings: Do not train the token embeddings, so that words missing in the training questions keep their
            position relative to the other words.
        gradient_checkpointing: Recompute activations within the models: less memory, about a third slower.
        bucket_checkpointing: Keep the activations of one bucket of contexts at a time; recompute them in the backward
            pass.

    Raises:
        UserError: If the options contradict each other.
    """

    lower = (
        "lower data.questions_per_step, data.contexts or model.max_tokens, raise trainer.accumulate_grad_batches, or "
        "set model.bucket_checkpointing"
    )
    checkpoint_keys: ClassVar[dict[str, str]] = {**RunModule.checkpoint_keys, "served": "fitted"}
    starts: ClassVar = {part: StartOption(part, {KIND: part}) for part in (ESTIMATOR, GENERATOR)}

    def __init__(
        self,
        estimator: str | None = "google-t5/t5-base",
        generator: str | None = "google-t5/t5-base",
        relevance: Relevance | None = None,
        retriever_temperature: PositiveFloat | None = None,
        preset: PresetName = "ours",
        max_tokens: InputTokens = 256,
        text: Text = Text(),
        loss: Loss = Loss(),
        optimizer: JointOptimizer = OPTIMIZER,
        validation: Validation = Validation(),
        abstention: Abstention = Abstention(),
        estimator_layers: PositiveInt | None = None,
        lora: Lora = LORA,
        dropout: DropoutRate | None = None,
        freeze_embeddings: bool = False,
        gradient_checkpointing: bool = False,
        bucket_checkpointing: bool = False,
    ) -> None:
        super().__init__()
        self.preset = preset_of(preset, loss, text, validation)
        self.packed = is_packed(self.preset.format)  # whether one reader call takes all contexts
        self.frozen = optimizer.generator_learning_rate == 0  # whether the generator's weights stay as they are
        both, said = estimator is not None and generator is not None, (text.true_word, text.false_word)
        refuse(estimator is None and generator is None, "both estimator and generator are null: name at least one.")
        needless = (
            "text.format packed reads all documents at once, so there is nothing to estimate: set estimator null."
        )
        refuse(self.packed and estimator is not None, needless)
        unlabelled = (
            "an estimator without a generator learns from labels or from a teacher's scores: set loss.label_weight or "
            "loss.teacher_weight above 0."
        )
        refuse(generator is None and not (loss.label_weight or loss.teacher_weight), unlabelled)
        self.learns_scores = loss.teacher_weight > 0
        taught = "loss.teacher_weight lets an estimator learn scores"
        refuse(self.learns_scores and estimator is None, f"{taught}, and there is none: set it to 0.")
        refuse(self.learns_scores and self.frozen, f"{taught}, and a frozen generator teaches it: give one of both.")
        listwise = self.learns_scores and loss.label_weight > 0 and loss.label_form == "listwise"
        refuse(listwise, f"{taught} in the place of labels, and listwise labels compare all: take another label_form.")
        if estimator is None:
            absent = "but there is none: leave"
            refuse(said != TRUE_FALSE, f"text.true_word and text.false_word are for a T5 estimator, {absent} them out.")
            refuse(
                abstention.cost is not None, f"abstention.cost is for the threshold of an estimator, {absent} it out."
            )
        untaught = "model.optimizer.generator_learning_rate 0 trains an estimator by a frozen generator: name both "
        refuse(self.frozen and not both, f"{untaught}model.estimator and model.generator, or leave it out.")
        self.relevance = chosen_relevance(relevance, estimator, self.packed, retriever_temperature)
        self.retriever_temperature = retriever_temperature  # None but for relevance `retriever`, where `setup` fits it
        self.save_hyperparameters()
        self.text, self.loss, self.optimizer, self.abstention = text, loss, optimizer, abstention
        self.validation, self.lora = validation, lora
        self.fitted: dict[str, Any] = {}  # calibration, refusal threshold and temperature of the last validation
        self.last_summary = Summary({})
        self.last_validated: list[QuestionScores] = []
        self._known: FrozenGenerator | None = None  # made at the first batch, when all weights are loaded

    def build(self) -> None:
        """See `RunModule`."""
        given = self.hparams
        max_tokens, dropout, checkpointing = given.max_tokens, given.dropout, given.gradient_checkpointing
        words = self.text.true_word, self.text.false_word
        self.estimator: RelevanceEstimator | None = None
        self.generator: Generator | None = None
        self.sources = {name: self.start(name) for name in (ESTIMATOR, GENERATOR) if given[name] is not None}
        if self.lora.rank is not None and self.lora != LORA and not any(map(reads_prompts, self.sources.values())):
            raise UserError("model.lora is for a causal LM, and neither model is one: leave it out.")
        if self.preset.format == QWEN3_RERANKER:
            unread = "is for an estimator that is a causal LM, and a generator beside it must be one, too."
            causal = given.estimator is not None and all(map(reads_prompts, self.sources.values()))
            refuse(not causal, f"text.format {QWEN3_RERANKER} {unread}")
            unsaid = "says yes and no: leave text.true_word and text.false_word out."
            refuse(words not in (TRUE_FALSE, YES_NO), f"text.format {QWEN3_RERANKER} {unsaid}")
            words = YES_NO
        fixed = (GENERATOR,) if self.frozen else ()
        adapted = load_adapted_lms(self.sources, self.lora, fixed, dropout, checkpointing)
        if lm := adapted.get(ESTIMATOR):
            self.estimator = RelevanceEstimator.of_lm(lm, max_tokens, words, self.preset.format)
        elif given.estimator is not None:
            self.estimator = RelevanceEstimator.build(
                self.sources[ESTIMATOR], max_tokens, self.preset.format, dropout, checkpointing, given.estimator_layers,
                words,
            )  # fmt: skip
        has_tokens = self.estimator is not None and self.estimator.generative
        if self.estimator is not None and not has_tokens:
            loss, only = self.loss, f"{given.estimator} is encoder-only"
            undefined = f"{only} and has no LM head, so L_tok is undefined: set loss.token_weight to 0."
            refuse(bool(loss.token_weight), undefined)
            unsaid = f"text.true_word and text.false_word are for a T5 estimator, but {only}: leave them out."
            refuse(words != TRUE_FALSE, unsaid)
            unable = f"{only} and has no LM head: set loss.label_form to pointwise or listwise, or name a T5."
            refuse(loss.label_weight > 0 and loss.label_form == "vocabulary", unable)
        if lm := adapted.get(GENERATOR):
            self.generator = CausalGenerator(lm, max_tokens, self.preset.answer_prefix, self.packed)
        elif given.generator is not None:
            trained = (None, False) if self.frozen else (dropout, checkpointing)
            form: Any = self.preset.format  # a T5 has no prompt's
            self.generator = load_generator(
                self.sources[GENERATOR], max_tokens, form, self.preset.answer_prefix, *trained
            )
        for part in self.parts:
            if isinstance(part.encode, PromptEncoder):  # of a causal LM
                said = self.text.max_answer_tokens if part is self.generator else 0
                read = f"max_tokens {max_tokens}" + f" and text.max_answer_tokens {said}" * bool(said)
                check_room(part.network, read, max_tokens + said)
        if self.generator is not None:
            self.generator.network.generation_config.repetition_penalty = self.preset.repetition_penalty
            if self.frozen and self.generator.adapter is None:  # else LoRA has frozen them, and they are shared
                self.generator.requires_grad_(False)
        if given.freeze_embeddings:
            for part in self.parts:
                part.network.get_input_embeddings().requires_grad_(False)
        weight = self.loss.token_weight
        self.token_weight = (float(self.generator is not None) if weight is None else weight) if has_tokens else 0.0
        self.flops_per_token = [flops_per_token(part.network) for part in self.parts]

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
    def reads_answers(self) -> bool:
        """Whether a generator learns from the answers."""
        return self.generator is not None

    @property
    def answer_labels(self) -> Callable[[Sequence[str]], Tensor]:
        """Makes token ids (B, A) of answers; (B, 0) without a generator."""
        if self.generator is None:
            return no_labels
        return self.generator.labeller(self.text.max_answer_tokens)

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
                temperature = f"{self.retriever_temperature:.4g}"
                print(f"relevance  softmax(retriever score / {temperature}), fitted on training questions")

    def forward(self, batch: ContextBatch) -> ContextScores:
        """Scores of every context by both models."""
        return score_contexts(
            batch, self.estimator, self._scorer, self.hparams.bucket_checkpointing, self.retriever_temperature
        )

    @property
    def _scorer(self) -> Generator | FrozenGenerator | None:
        """The generator; a frozen one with the stored results of earlier batches and runs."""
        if not self.frozen or self.generator is None:
            return self.generator
        if self._known is None:
            trainer = self.trainer
            self._known = FrozenGenerator(self.generator, trainer.datamodule.cache, str(trainer.precision))
        return self._known

    def losses(self, batch: ContextBatch) -> dict[str, Tensor]:
        """This batch's share of every term of the step's loss, unweighted."""
        scores, real_BN, questions = self(batch), batch.real_BN, batch.step_questions
        relevance_BN, logp_BN = scores.relevance_BN, scores.answer_logp_BN
        terms: dict[str, Tensor] = {}
        if self.generator is not None:
            terms["gen"] = generation_loss(relevance_BN, logp_BN, real_BN, self.preset.gen_form).sum() / questions
        if self.estimator is not None and self.generator is not None:
            terms["re"] = estimator_loss(relevance_BN, logp_BN, real_BN, self.preset.kl_direction).sum() / questions
        if self.token_weight:
            terms["tok"] = token_loss(scores.other_logit_BN.sigmoid(), real_BN).sum() / batch.step_pairs
        if self.learns_scores:
            teacher_B = teacher_loss(relevance_BN, batch.teacher_BN, real_BN, self.loss.teacher_temperature)
            terms["teacher"] = teacher_B.sum() / questions
        if self.loss.label_weight and self.estimator is not None:
            form, false_weight = self.loss.label_form, self.loss.label_false_weight
            other_BN = scores.other_logit_BN if self.estimator.generative else None
            taught_BN = ~batch.teacher_BN.isnan() & self.learns_scores
            label_B = label_loss(
                relevance_BN, batch.grades_BN.masked_fill(taught_BN, -1.0), real_BN, form, false_weight, other_BN
            )
            terms["label"] = label_B.sum() / questions
        return {name: term * batch.weight for name, term in terms.items()}

    def training_step(self, batch: ContextBatch, batch_index: int) -> Tensor:
        """This rank's share of the step's loss, scaled to undo Lightning's mean over ranks and accumulated batches."""
        terms = self.losses(batch)
        self.flops_per_batch = self._flops(batch)
        given = self.loss
        weights = {"gen": 1.0, "re": given.kl_weight, "tok": self.token_weight, "label": given.label_weight}
        weights |= {"teacher": given.teacher_weight}
        loss = torch.stack([weights[name] * term for name, term in terms.items()]).sum()
        units = {"gen": "gen_nats", "re": "re_nats", "tok": "tok", "label": "label_nats", "teacher": "teacher_nats"}
        self.add_shares({"train/loss": loss, **{f"train/{units[name]}": term for name, term in terms.items()}})
        return loss * self.backward_passes

    def _flops(self, batch: ContextBatch) -> int:
        """Estimated FLOPs of training on a batch.

        One target token per row for the estimator, the answer for the generator.
        """
        total = 0
        for part, (per_input, per_target) in zip(self.parts, self.flops_per_token, strict=True):
            own = part is self.estimator
            if self.frozen and not own:
                continue  # computed once
            buckets = (own and batch.estimator_buckets) or batch.buckets
            tokens, rows = sum(bucket.ids_MT.numel() for bucket in buckets), batch.examples
            total += per_input * tokens + per_target * rows * (1 if own else batch.answers_BA.shape[1])
        return total

    def configure_optimizers(self) -> dict[str, Any]:
        """AdamW without weight decay on vectors; after warm-up constant, or linear decay to 0."""
        groups: list[dict[str, Any]] = []
        for part in self.parts:
            if self.frozen and part is self.generator:
                continue
            given = self.optimizer
            own = given.generator_learning_rate if part is self.generator else given.estimator_learning_rate
            rate = given.learning_rate if own is None else own
            weights = part.parameters() if part.adapter is None else part.adapter.weights
            groups += decay_groups(weights, rate, self.optimizer.weight_decay)
        return self.optimizer.adamw(groups, self.trainer)

    def learning_rates(self, optimizer: Optimizer) -> dict[str, float]:
        """See `RunModule`; the estimator's rate, if it may differ, is that of the last groups."""
        given = self.optimizer.estimator_learning_rate, self.optimizer.generator_learning_rate
        own = self.estimator is not None and given != (None, None)
        rates = {"train/estimator_learning_rate": optimizer.param_groups[-1]["lr"]} if own else {}
        return super().learning_rates(optimizer) | rates

    # Checkpoints

    @cached_property
    def bases(self) -> dict[str, dict[str, Any]]:
        """See `RunModule`: the causal LMs whose own weights are not trained."""
        return {name: base_model(self.sources[name]) for name in self.sources if self._frozen(name)}

    def _frozen(self, name: str) -> set[str]:
        """The weights of a causal LM that are not trained, by their names in a checkpoint."""
        part: Generator | RelevanceEstimator = getattr(self, name)
        if not isinstance(part.encode, PromptEncoder):
            return set()
        weights = part.network.named_parameters(remove_duplicate=False)
        return {f"{name}.network.{inner}" for inner, weight in weights if not weight.requires_grad}

    def kept(self, state: dict[str, Any]) -> dict[str, Any]:
        """See `RunModule`."""
        left_out = {each for name in self.sources for each in self._frozen(name)}
        return {name: value for name, value in state.items() if name not in left_out}

    def begin_from(self, option: str, start: Start) -> None:
        """See `RunModule`; of a causal LM with LoRA these are the adapter's weights."""
        part: Generator | RelevanceEstimator = getattr(self, option)
        if part.adapter is None:
            return super().begin_from(option, start)
        self.check_bases({option: start.facts.get(BASES, {}).get(option, {})})
        theirs = start.part(option)
        own = {name for name in part.state_dict() if f".{option}." in name and ".lora_" in name}
        if not own or not own <= theirs.keys():
            raise ArtifactError(
                f"model.{option}: {start.file} holds no adapter of that part: give model.lora as in its run, or start "
                "from its merged export (infer.py export --form merged)."
            )
        part.load_state_dict({name: theirs[name] for name in own}, strict=False)

    # Validation

    def validation_step(self, batch: ContextBatch, batch_index: int) -> None:
        """Collect every question's relevance scores and the answer generated from its best contexts."""
        data = self.trainer.datamodule
        sets = [data.validation_sets[row] for row in batch.rows_B.tolist()]
        with torch.inference_mode():
            scores = self(batch)
            gen_nats_B = answer_logp_BN = None
            if self.generator is not None:
                answer_logp_BN = scores.answer_logp_BN
                gen_nats_B = generation_loss(scores.relevance_BN, scores.answer_logp_BN, batch.real_BN)
        scored = score_questions(
            batch.rows_B.tolist(), sets, scores.relevance_BN, gen_nats_B,
            self.generator if self.validation.contexts else None, self.packed,
            self.estimator is not None, self.validation.contexts, self.text.max_answer_tokens,
            self.preset.fit_temperature, answer_logp_BN,
        )  # fmt: skip
        self.validated |= {question.row: question for question in scored}

    @property
    def metric_names(self) -> tuple[str, ...]:
        """See `RunModule`; calibration and refusal are measured where both kinds of contexts or questions exist."""
        names = metric_names(reads=self.generator is not None, ranks=self.estimator is not None)
        return names if self.validation.contexts else tuple(name for name in names if name not in ("em", "f1"))

    def nats(self, result: QuestionScores) -> float | None:
        """See `RunModule`."""
        return result.gen_nats

    def summarize(self, results: list[QuestionScores]) -> dict[str, float]:
        """Metrics; also sets the calibration, threshold and temperature that an export stores."""
        told, first = self.last_summary.not_fitted, self.trainer.is_global_zero
        summary = summarize(results, self.estimator is not None, first, self.abstention)
        if summary.not_fitted and not told and first:
            print(f"{summary.not_fitted}: name files with both kinds in data.validation.", flush=True)
        self.last_validated, self.last_summary = results, summary
        self.fitted, self.figures = summary.fitted, summary.figures
        return summary.metrics

    def controls(self) -> dict[str, float]:
        """See `RunModule`: `other_recall_1`, recall_1 if the estimator reads another question's text.

        The contexts of at most 200 validation questions stay their own.
        """
        if (estimator := self.estimator) is None:
            return {}
        data = self.trainer.datamodule
        asked = asked_otherwise("val/other_recall_1", data.validation_questions, data.validation_sets)
        pairs = [(text, passage) for text, one in asked for passage in one.passages]
        scores = iter(scored(estimator, self.trainer, estimator.scores, pairs, data.tokens_per_bucket))
        own = [(tuple(next(scores) for _ in one.labels), one) for _, one in asked]
        ranked = [QuestionScores(0, each, one.labels) for each, one in own if one.labelled]
        return {"other_recall_1": summarize(ranked, True, False).metrics["recall_1"]} if ranked else {}

    def examples(self, count: int) -> tuple[list[str], list[list[Any]]]:
        """Columns and rows of a table of the first `count` validation questions."""
        sets = self.trainer.datamodule.validation_sets
        return examples(self.last_validated[:count], sets, self.last_summary.temperature_index)

    # Export

    def model(self) -> ReRagModel:
        """The model to serve, with the calibration, threshold and temperature of the last validation."""
        chosen = {"relevance": self.relevance, "retriever_temperature": self.retriever_temperature, **self.fitted}
        return ReRagModel.of(self.estimator, self.generator, chosen, self.text.max_answer_tokens)

    def next_step(self, serving: Path) -> str:
        """See `RunModule`."""
        evaluate, report = "python infer.py evaluate", f"--questions FILE --out reports/{serving.parent.name}"
        if self.packed:
            reader = "--config FILE --system.init_args.reader harness.readers.t5.PackedReader --system.init_args.reader"
            return f"read the documents that DR-RAG selects: {evaluate} {reader}.init_args.serving {serving} {report}"
        if self.relevance == "retriever":
            return f"compare it with a RE-RAG: {evaluate} --config FILE --study.baseline_serving {serving} {report}"
        if self.estimator is None:
            fit = "python train.py fit --config FILE"
            return f"train it jointly with an estimator: {fit} --model.generator {serving}/generator"
        system = "--system harness.systems.rerag.ReRag --system.init_args.serving"
        return f"{evaluate} {system} {serving} {self.retriever_options('')}{report}"

    def export(self, folder: Path, provenance: dict[str, Any]) -> None:
        """Write the models, a model card and the manifest into a serving folder.

        Args:
            folder: An empty folder.
            provenance: Versions, commit and data digests, stored unchanged.
        """
        values = {
            "calibration": None, "refusal_threshold": None, "refusal_cost": None, "relevance_temperature": None,
            **self.fitted, "retriever_temperature": self.retriever_temperature, "scorer": self.estimator,
            "text_format": self.preset.format,
        }  # fmt: skip
        model = self.model()
        values |= {"reader": self.generator, "bases": {name: model.base_of(name) for name in (ESTIMATOR, GENERATOR)}}
        template = Path(__file__).with_name("rerag_card.md")
        reranks = self.generator is None
        values["cross_encoder"] = reranks and self.estimator is not None and not self.estimator.generative
        library = SENTENCE_TRANSFORMERS if values["cross_encoder"] else "transformers"
        self.write_card(folder, template, values, provenance, ("estimator", "generator"), library, reranks)
        model.save(folder, validation=self.validation_metrics, **provenance)

    def export_difference(self, folder: Path, batch: ContextBatch) -> float:
        """Largest difference in relevance and answer log-probability (nats) to the models in `folder`, in fp32."""
        self.eval().cpu().float()
        loaded = ReRagModel.load(folder, "cpu")
        with torch.inference_mode():
            there, here = (
                score_contexts(batch, each.estimator, each.generator, False, each.retriever_temperature)
                for each in (loaded, self)
            )
        relevance = (here.relevance_BN - there.relevance_BN).abs().max()
        return float(torch.maximum(relevance, (here.answer_logp_BN - there.answer_logp_BN).abs().max()))
