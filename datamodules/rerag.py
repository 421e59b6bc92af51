"""LightningDataModule of RE-RAG: reads official files, selects contexts, and batches questions into optimizer steps."""

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from common.answer_metrics import findable, one_character
from common.errors import DataError, UserError
from common.ranges import NonNegativeInt, OpenShare, PositiveInt, Share
from common.records import Passage, Question
from datamodules.cache.question_lookup import QuestionLookup
from datamodules.cache.questions import CachedQuestions
from datamodules.cache.record_cache import DEFAULT
from datamodules.cache.search_results import Search
from datamodules.cache.splits import Split
from datamodules.examples.context_augmentation import AnswerSubstitutes
from datamodules.examples.context_batches import ContextBatches, ContextRequest, ContextTensors
from datamodules.examples.context_sampling import ContextSampler, check_scores, count_contexts
from datamodules.examples.context_sets import ContextBatch, ContextSampling, ContextSet, Labels
from datamodules.examples.data_files import QuestionDataFile
from datamodules.examples.lazy_sequence import LazySequence
from datamodules.examples.step_loader import chunks, plan_steps
from datamodules.formats.teacher_scores import TeacherScores
from datamodules.question_data import QuestionData
from models.context_tokenizer import FEW_TEXTS, ContextEncoder
from models.rerag.model import Relevance

TOKENS_PER_BUCKET = {"cpu": 8192, "cuda": 32_768}
AUDITED_QUESTIONS = 200  # whose inputs are tokenized to count those that are cut
TEMPERATURE_QUESTIONS = 2000  # on which the temperature of the retriever's scores is fitted
PROOF_QUESTIONS, PROOF_CONTEXTS = 2, 8  # on which an export is compared: on a CPU, in fp32


class ContextModel(Protocol):
    """The part of the LightningModule's interface that the data module uses."""

    packed: bool  # whether all contexts of a question form one input
    relevance: Relevance  # what weights the contexts; `retriever` needs their scores
    reads_answers: bool  # whether a generator learns from them
    learns_scores: bool  # whether the estimator learns a teacher's scores

    @property
    def encoders(self) -> list[ContextEncoder]:
        """The tokenizers of the contexts: a shared one, or the generator's and the estimator's."""

    @property
    def answer_labels(self) -> Callable[[Sequence[str]], torch.Tensor]:
        """Makes the token ids (B, A) of answers; can be pickled."""

    def nearest_words(self) -> dict[str, list[str]]:
        """Nearest words by embedding, for every word that has any."""


class ReRagData(QuestionData):
    """Questions with their candidate contexts, for the relevance estimator, the generator, or both.

    Validation questions come from a fixed hash split of the training files or from separate files; dev files are for
    `infer.py evaluate` only.  A question that occurs in several files is used once; questions without an answer or
    without a suitable context are skipped and counted. An estimator alone that learns from `labels` gold needs no
    answers, and the grades of a file are its targets.

    Args:
        train: Official training files.
        validation: Official validation files; a hash split of the training files when empty.
        validation_fraction: Share of the training questions that the hash split holds out.
        hard_negatives: Files of additional candidates per question, written by `infer.py mine`.
        corpus: Corpus by whose ids questions name their gold passages, of the files that name no other one.
        teacher: Files of a teacher's scores of questions' passages (`datamodules.formats.teacher_scores`), which the
            estimator learns by `model.loss.teacher_weight`.
        search: Retriever that finds further hard negatives before the first training, as by `infer.py mine`.
        contexts: Contexts per question in training, N; with text_format packed, documents per call.
        validation_contexts: Maximum contexts per question in validation; 100 in the paper.
        context_sampling: Training contexts: `ranked` (the retriever's top N, by the scores that the file gives, else in
            file order), `sampled` (gold and random others, again in every epoch) or `gold` (gold only: warm-up of a
            generator).
        validation_context_sampling: Validation contexts, selected once.
        labels: Relevance labels for recall, calibration and supervision: `has_answer` (DPR's rule) or `gold`.
        crop_words: Crop training contexts to windows of this many words, around an answer if present; off when null.
        crop_growth_words: Words added to the window in each epoch.
        substitution: Share of training questions whose answer is replaced in all contexts by the answer of
            a similar question, again in every epoch, so that a generator learns to read instead of memorizing answers.
        word_swaps: Share of lower-case words in training texts that are replaced by one of their nearest
            words by embedding, again in every epoch, so that the model generalizes over wordings.
        questions_per_step: Questions of one optimizer step, over all ranks and accumulated batches.
        tokens_per_bucket: Maximum padded tokens of one forward pass. When null: 8,192 on a CPU, 32,768 on a GPU, which
            waits for the processor in smaller ones.
        questions_per_validation_batch: Questions of one validation batch, per rank.
        sampling_seed: Seed of sampling and ordering.
        cache: Folder in which the questions of files above 32 MiB are stored, for all ranks and later starts; it can be
            deleted at any time. null keeps them in the memory of every rank, and of every process of `workers`.
        strict: Whether unusual rows (empty, null, repeated questions and passages) are an error instead of a line in
            the statistics.
        workers: Processes of each rank that make batches while it trains; 0 makes them in between. When null: 0 on a
            CPU, up to 4 of the rank's cores on a GPU.

    Raises:
        UserError: If there is no training file, or `crop_growth_words` is given without `crop_words`.
    """

    step_option, examples_name = "questions_per_step", "question-context pairs"

    def __init__(
        self,
        train: list[QuestionDataFile],
        validation: list[QuestionDataFile] | None = None,
        validation_fraction: OpenShare = 0.06,
        hard_negatives: list[str] | None = None,
        corpus: str | None = None,
        search: Search | None = None,
        teacher: list[str] | None = None,
        contexts: PositiveInt = 20,
        validation_contexts: PositiveInt = 100,
        context_sampling: ContextSampling = "ranked",
        validation_context_sampling: ContextSampling = "ranked",
        labels: Labels = "has_answer",
        crop_words: PositiveInt | None = None,
        crop_growth_words: NonNegativeInt = 0,
        substitution: Share = 0.0,
        word_swaps: Share = 0.0,
        questions_per_step: PositiveInt = 64,
        tokens_per_bucket: PositiveInt | None = None,
        questions_per_validation_batch: PositiveInt = 16,
        sampling_seed: int = 0,
        cache: str | None = DEFAULT,
        workers: NonNegativeInt | None = None,
        strict: bool = False,
    ) -> None:
        super().__init__()
        if crop_growth_words and crop_words is None:
            raise UserError(f"crop_growth_words {crop_growth_words} needs crop_words: give it, or leave this out.")
        self.cache, self.workers, self.strict = cache, workers, strict
        self._name_question_files(train, validation, validation_fraction, hard_negatives, corpus, search)
        self.teacher_files = teacher or []
        self.contexts, self.validation_contexts = contexts, validation_contexts
        self.context_sampling, self.validation_context_sampling = context_sampling, validation_context_sampling
        self.labels = labels
        self.crop_words, self.crop_growth_words, self.substitution = crop_words, crop_growth_words, substitution
        self.word_swaps = word_swaps
        self.questions_per_step, self.tokens_per_bucket = questions_per_step, tokens_per_bucket
        self.questions_per_validation_batch, self.sampling_seed = questions_per_validation_batch, sampling_seed

    @property
    def files(self) -> list[str]:
        """Paths of all input files."""
        return [*super().files, *self.teacher_files]

    def _load(self, split: Split, mined: QuestionLookup) -> None:
        """Raises DataError if no question has an answer and contexts; UserError if options do not fit the model."""
        module: ContextModel = self.module
        self._weighted = module.relevance == "retriever"
        self._reads_answers = module.reads_answers
        self._answered = self._reads_answers or self.labels == "has_answer"
        if self._mined_files and self._weighted:
            raise UserError(
                "data.hard_negatives names passages without retriever scores, and model.relevance retriever weights "
                "contexts by them: omit data.hard_negatives, or set model.relevance to estimator or uniform."
            )
        self.draws = ContextSampler(
            mined, self.labels, self._weighted, self.sampling_seed, self.crop_words, self.crop_growth_words,
            self.substitution, self.word_swaps, self._read_teacher(),
        )  # fmt: skip
        training, held_out = self._counted(split, mined.name)
        questions, validation = self._with_contexts(split, training, held_out)
        self._learn_changes(questions, module)
        self._name_batches(questions, validation, module)
        self.questions, self.validation_questions = questions, validation
        self.steps_per_epoch = math.ceil(len(questions) / self.questions_per_step)
        self.units_per_step = len(questions) / self.steps_per_epoch
        self.examples_per_unit = 1.0 if module.packed else int(self.counts.sum()) / len(questions)
        self.audit = self._audit(questions, training["relevant"], len(split.training), len(split.held_out))
        self.audit |= self._unusual | self._taught(questions)
        self.audit |= {"copies_of_gold_left_out": int(training["copies"].sum())} if self.hard_negative_files else {}

    def _read_teacher(self) -> TeacherScores | None:
        """Raises UserError if a teacher's scores are given and not learned, or the other way round."""
        if bool(self.teacher_files) != self.module.learns_scores:
            raise UserError(
                "data.teacher and model.loss.teacher_weight belong together: give both, the weight above 0, or neither."
            )
        return TeacherScores(self.teacher_files) if self.teacher_files else None

    def _taught(self, questions: CachedQuestions) -> dict[str, object]:
        """How many training questions the teacher knows; empty without one.

        Raises DataError if it knows none.
        """
        if (teacher := self.draws.teacher) is None:
            return {}
        known = sum(question.text in teacher for question in questions.without_passages())
        if not known:
            raise DataError(f"data.teacher {self.teacher_files}: no score belongs to a training question.")
        return {"questions_with_a_teachers_scores": f"{known} of {len(questions)}"}

    def _counted(self, split: Split, mined: str) -> tuple[dict[str, NDArray[np.int64]], ...]:
        """What `count_contexts` says of training and of validation."""
        names = [self._answered, self.validation_fraction, mined, *(store.name for store in split.stores)]
        parts = (
            (split.training, self.contexts, self.context_sampling, 0),
            (split.held_out, self.validation_contexts, self.validation_context_sampling, -1),
        )
        options = [self.labels, self._weighted, self.sampling_seed]
        return tuple(
            split.stores[0].derived(
                {"sets": [epoch, contexts, how, *options], "of": names},
                partial(self._count, questions, contexts, how, epoch),
            )
            for questions, contexts, how, epoch in parts
        )

    def _with_contexts(
        self, split: Split, training: dict[str, NDArray[np.int64]], held_out: dict[str, NDArray[np.int64]]
    ) -> tuple[CachedQuestions, CachedQuestions]:
        """The questions of training and of validation that have contexts, of which the counts are remembered."""
        if not len(training["place"]) or not len(held_out["place"]):
            needed = "answers and contexts" if self._answered else "gold passages"
            raise DataError(
                f"{len(training['place'])} training and {len(held_out['place'])} validation questions with {needed}, "
                f"from {self._lacking(not len(training['place']))}: give files with passages (or "
                f"data.hard_negatives){self._or_fraction}."
            )
        questions, validation = split.training.select(training["place"]), split.held_out.select(held_out["place"])
        if self._weighted:
            check_scores(questions, training, [source.path for source in self.train_sources])
            check_scores(validation, held_out, [source.path for source in self._validation_files])
        self.counts = training["contexts"]  # the same in every epoch; only the selection changes
        self.validation_counts = held_out["contexts"]
        self.characters = training["characters"]
        return questions, validation

    def _learn_changes(self, questions: CachedQuestions, module: ContextModel) -> None:
        """Give the draws what they change texts by."""
        if self.substitution:
            self.draws.substitutes = AnswerSubstitutes(questions.without_passages())
        if self.word_swaps:
            self.draws.nearest = module.nearest_words()
        if self.word_swaps and not self.draws.nearest:
            raise UserError(
                "data.word_swaps needs a SentencePiece tokenizer with whole words as pieces, and this model has none: "
                "set data.word_swaps to 0."
            )

    def _name_batches(self, questions: CachedQuestions, validation: CachedQuestions, module: ContextModel) -> None:
        """Say how batches are made; the tokenizers forget texts that they cannot remember until the next epoch."""
        for encode in module.encoders:
            if int(self.counts.sum() + self.validation_counts.sum()) > encode.cached_texts:
                encode.cached_texts = FEW_TEXTS
        tokens = self.tokens_per_bucket or TOKENS_PER_BUCKET[self.trainer.strategy.root_device.type]
        tensors = ContextTensors(module.encoders, module.answer_labels, module.packed, tokens)
        batches = partial(ContextBatches, draws=self.draws, tensors=tensors)
        self._training_batches = batches(questions, self.contexts, self.context_sampling)
        self._validation_batches = batches(validation, self.validation_contexts, self.validation_context_sampling)
        self.validation_sets: LazySequence[ContextSet] = LazySequence(
            len(validation), partial(self._validation_batches.drawn, -1), kept=4 * self.questions_per_validation_batch
        )

    @property
    def first_sets(self) -> list[ContextSet]:
        """Of the first training questions, as the files have them.

        The retriever's temperature is fitted on their scores.
        """
        return [
            self.draws.selected(question, self.contexts, self.context_sampling, self.draws.rng_of(question, 0))
            for question in self.questions[:TEMPERATURE_QUESTIONS]
        ]

    def _count(
        self, questions: Sequence[Question], contexts: int, context_sampling: ContextSampling, epoch: int
    ) -> dict[str, NDArray[np.int64]]:
        def select(question: Question) -> ContextSet:
            return self.draws.selected(question, contexts, context_sampling, self.draws.rng_of(question, epoch))

        return count_contexts(questions, select, self._answered, not self._reads_answers)

    def _validation_groups(self) -> list[list[int]]:
        return chunks(len(self.validation_sets), self.questions_per_validation_batch)

    def _validation_request(self, rows: list[int]) -> ContextRequest:
        return ContextRequest(-1, rows, len(rows), int(self.validation_counts[rows].sum()))

    def _validation_batch(self, rows: list[int]) -> ContextBatch:
        chosen = [self.validation_sets[row] for row in rows]  # for which the trainer asks, too: they are drawn once
        return self._validation_batches.tensors(chosen, self._validation_request(rows))

    def proof_batch(self) -> ContextBatch:
        """A few validation questions with few contexts: see `StepData`."""
        few = PROOF_CONTEXTS if not self.module.packed else None
        cut = ("passages", "labels", "scores", "grades", "teacher")
        chosen = [
            replace(one, **{name: getattr(one, name)[:few] for name in cut})
            for one in self.validation_sets[:PROOF_QUESTIONS]
        ]
        pairs = sum(len(one.passages) for one in chosen)
        return self._validation_batches.tensors(chosen, ContextRequest(-1, [*range(len(chosen))], len(chosen), pairs))

    def _plan(self, epoch: int) -> list[list[int]]:
        rng = random.Random(f"plan/{self.sampling_seed}/{epoch}")
        return plan_steps([1] * len(self.questions), self.steps_per_epoch, rng, jitter=1.0)

    def _tokens_of(self, epoch: int) -> Callable[[Sequence[int]], int]:
        return lambda rows: int(self.characters[rows].sum())  # tokens are known once a set is drawn

    def _request(self, epoch: int, rows: list[int], step: list[int]) -> ContextRequest:
        pairs = len(step) if self.module.packed else int(self.counts[step].sum())
        return ContextRequest(epoch, rows or step[:1], len(step), pairs, float(bool(rows)))

    def _inputs_cut(self) -> str:
        """Of how many inputs of the first training questions a context is longer than the models read."""
        rows: list[tuple[str, tuple[Passage, ...]]] = []
        for place in range(min(AUDITED_QUESTIONS, len(self.questions))):
            one = self._training_batches.drawn(0, place)
            rows += [
                (one.question.text, part) for part in ([one.passages] if self.module.packed else zip(one.passages))
            ]
        cut = max(encode.inputs_cut_of(rows) for encode in self.module.encoders)
        return f"{cut} of the first {len(rows)}"

    def _short_answers(
        self, yes_no: int, short_Q: NDArray[np.bool_], relevant_Q: NDArray[np.int64]
    ) -> dict[str, object]:
        """What has-answer says nothing about, and little; empty where it labels none of these contexts."""
        if self.labels != "has_answer":
            return {}
        counts: dict[str, object] = {"questions_of_yes_or_no_without_labels": yes_no} if yes_no else {}
        if short_Q.any():
            counts["questions_with_answers_of_one_character"] = int(short_Q.sum())
            counts["relevant_contexts_without_these"] = (
                f"{relevant_Q[~short_Q].sum()} of {self.counts[~short_Q].sum()} by {self.labels}"
            )
        return counts

    def _audit(
        self, questions: CachedQuestions, relevant: NDArray[np.int64], read: int, held_out: int
    ) -> dict[str, object]:
        kinds, answers, cut, yes_no, short = Counter[str](), 0, 0, 0, []
        for question in questions.without_passages():
            kinds[question.kind or "unnamed"] += 1
            answers += len(question.answers)
            yes_no += bool(question.answers) and not findable(question.answers)
            short.append(one_character(question.answers))
            cut += any(encode.cut_note(question.text) for encode in self.module.encoders)
        return {
            "questions": len(questions),
            "questions_without_answer_or_context": read - len(questions),
            "questions_cut": cut,
            "inputs_cut": self._inputs_cut(),
            "question_kinds": dict(kinds.most_common()),
            "contexts_per_question": dict(sorted(Counter(self.counts.tolist()).items())),
            "questions_without_a_relevant_context": int((relevant == 0).sum()),
            "relevant_contexts": f"{relevant.sum()} of {self.counts.sum()} by {self.labels}",
            **self._short_answers(yes_no, np.array(short), relevant),
            "answers_per_question": round(answers / len(questions), 2),
            "validation_questions": len(self.validation_sets),
            "validation_questions_skipped": held_out - len(self.validation_sets),
            "steps_per_epoch": self.steps_per_epoch,
        }
