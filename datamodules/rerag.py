"""LightningDataModule of RE-RAG: reads official files, selects contexts, and batches questions into optimizer steps."""

import math
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import torch

from common.checks import check_at_least, check_share
from common.errors import DataError, UserError
from common.progress import track
from common.records import Passage, Question
from datamodules.examples.context_augmentation import LOWER_WORD, AnswerSubstitutes, crop, substitute, swap_words
from datamodules.examples.context_sets import Bucket, ContextBatch, ContextSet, Labels, Pick, pick_contexts, relevant
from datamodules.examples.splits import Source, check_split, split_questions
from datamodules.examples.step_loader import StepData, chunks, plan_steps
from datamodules.formats.mined_negatives import read_mined
from models.length_batching import length_batches
from models.rerag.context_tokenizer import ContextEncoder
from models.rerag.model import Relevance

TEMPERATURE_QUESTIONS = 2000  # on which the temperature of the retriever's scores is fitted


class ContextModel(Protocol):
    """The part of the LightningModule's interface that the data module uses."""

    packed: bool  # whether all contexts of a question form one input
    writes_questions: bool  # whether the targets are the questions, and the inputs answers
    relevance: Relevance  # what weights the contexts; `retriever` needs their scores

    @property
    def encoders(self) -> list[ContextEncoder]:
        """The tokenizers of the contexts: a shared one, or the generator's and the estimator's."""

    def answer_labels(self, answers: list[str]) -> torch.Tensor:
        """Token ids of the answers, (B, A)."""

    def nearest_words(self) -> dict[str, list[str]]:
        """Nearest words by embedding, for every word that has any."""


class ReRagData(StepData):
    """Questions with their candidate contexts, for the relevance estimator, the generator, or both.

    Validation questions come from a fixed hash split of the training files or from separate files; dev files are for
    `infer.py evaluate` only.  A question that occurs in several files is used once; questions without an answer or
    without a suitable context are skipped and counted.

    Args:
        train: Official training files.
        validation: Official validation files; a hash split of the training files when empty.
        validation_fraction: Share of the training questions that the hash split holds out, in (0, 1).
        more: Files of additional candidates per question, written by `infer.py mine`.
        contexts: Contexts per question in training, N; with text_format packed or question_writing, documents per call.
        validation_contexts: Maximum contexts per question in validation; 100 in the paper.
        pick: Training contexts: `ranked` (the retriever's top N, by the scores that the file gives, else in file order),
            `sampled` (gold and random others, again in every epoch) or `gold` (gold only: warm-up of a generator).
        validation_pick: Validation contexts, selected once.
        labels: Relevance labels for recall, calibration and supervision: `has_answer` (DPR's rule) or `gold`.
        crop_words: Crop training contexts to windows of this many words, around an answer if present; off when null.
        crop_growth_words: Words added to the window in each epoch.
        substitution: Share of training questions, in [0, 1], whose answer is replaced in all contexts by the answer of
            a similar question, again in every epoch, so that a generator learns to read instead of memorizing answers.
        word_swaps: Share, in [0, 1], of lower-case words in training texts that are replaced by one of their nearest
            words by embedding, again in every epoch, so that the model generalizes over wordings.
        questions_per_step: Questions of one optimizer step, over all ranks and accumulated batches.
        tokens_per_bucket: Maximum padded tokens of one forward pass.
        questions_per_validation_batch: Questions of one validation batch, per rank.
        sampling_seed: Seed of sampling and ordering.

    Raises:
        UserError: If there is no training file, or a value is out of range.
    """

    step_option, examples_name = "questions_per_step", "question-context pairs"

    def __init__(
        self,
        train: list[Source],
        validation: list[Source] | None = None,
        validation_fraction: float = 0.06,
        more: list[str] | None = None,
        contexts: int = 20,
        validation_contexts: int = 100,
        pick: Pick = "ranked",
        validation_pick: Pick = "ranked",
        labels: Labels = "has_answer",
        crop_words: int | None = None,
        crop_growth_words: int = 0,
        substitution: float = 0.0,
        word_swaps: float = 0.0,
        questions_per_step: int = 64,
        tokens_per_bucket: int = 8192,
        questions_per_validation_batch: int = 16,
        sampling_seed: int = 0,
    ) -> None:
        super().__init__()
        check_split(train, validation_fraction)
        check_at_least(
            1, contexts=contexts, validation_contexts=validation_contexts, crop_words=crop_words,
            questions_per_step=questions_per_step, tokens_per_bucket=tokens_per_bucket,
            questions_per_validation_batch=questions_per_validation_batch,
        )  # fmt: skip
        check_share(substitution=substitution, word_swaps=word_swaps)
        self.train_sources, self.validation_sources = train, validation or []
        self.sources = [*self.train_sources, *self.validation_sources]
        self.validation_fraction, self.more_files = validation_fraction, more or []
        self.contexts, self.validation_contexts = contexts, validation_contexts
        self.pick, self.validation_pick, self.labels = pick, validation_pick, labels
        if crop_growth_words < 0 or (crop_growth_words and crop_words is None):
            raise UserError(f"crop_growth_words {crop_growth_words} must be at least 0, and 0 without crop_words.")
        self.crop_words, self.crop_growth_words, self.substitution = crop_words, crop_growth_words, substitution
        self.word_swaps = word_swaps
        self.questions_per_step, self.tokens_per_bucket = questions_per_step, tokens_per_bucket
        self.questions_per_validation_batch, self.sampling_seed = questions_per_validation_batch, sampling_seed
        self.questions: list[Question] = []
        self.first_sets: list[ContextSet] = []  # of the first training questions, with retriever scores
        self.answer_substitutes = AnswerSubstitutes()
        self.nearest: dict[str, list[str]] = {}
        self.known_labels: dict[tuple[str, str], bool] = {}  # (question text, passage id) -> relevant

    @property
    def files(self) -> list[str]:
        """Paths of all input files."""
        return [source.path for source in self.sources] + self.more_files

    def setup(self, stage: str) -> None:
        """Read and split the questions, print statistics of the training data (once).

        Raises:
            DataError: If a file is invalid, or no question has an answer and contexts.
            UserError: If `word_swaps` does not fit the tokenizer, or a retriever score is missing that weights a context.
        """
        if self.questions:
            return
        train, held_out = split_questions(self.train_sources, self.validation_sources, self.validation_fraction)
        if self.more_files and self._module.relevance == "retriever":
            raise UserError(
                "data.more names passages without retriever scores, and model.relevance retriever weights contexts by them: omit "
                "data.more, or set model.relevance to estimator or uniform."
            )
        self.more = read_mined(self.more_files)
        sets = self._sets(train, self.contexts, self.pick, 0)
        held_out_sets = self._sets(held_out, self.validation_contexts, self.validation_pick, -1)
        self.validation_sets = [self._as_read(one) for one in held_out_sets]
        if not sets or not self.validation_sets:
            raise DataError(
                f"{len(sets)} training and {len(self.validation_sets)} validation questions with answers and contexts "
                f"from {[s.path for s in self.train_sources]}: give files with passages (or data.more), or raise "
                "data.validation_fraction."
            )
        self._check_scores(sets, self.train_sources)
        self._check_scores(self.validation_sets, self.validation_sources or self.train_sources)
        self.first_sets = sets[:TEMPERATURE_QUESTIONS] if self._module.relevance == "retriever" else []
        self.questions = [one.question for one in sets]
        self.counts = [len(one.passages) for one in sets]  # the same in every epoch; only the selection changes
        self.answer_substitutes = AnswerSubstitutes(self.questions)
        self.nearest = self._module.nearest_words() if self.word_swaps else {}
        if self.word_swaps and not self.nearest:
            raise UserError(
                "data.word_swaps needs a SentencePiece tokenizer with whole words as pieces, and this model has none: "
                "set data.word_swaps to 0."
            )
        self.steps_per_epoch = math.ceil(len(sets) / self.questions_per_step)
        self.units_per_step = len(sets) / self.steps_per_epoch
        self.examples_per_unit = 1.0 if self._module.packed else sum(self.counts) / len(sets)
        self.audit = self._audit(sets, len(train), len(held_out))
        self.print_audit()

    def _validation_groups(self) -> list[list[int]]:
        return chunks(len(self.validation_sets), self.questions_per_validation_batch)

    def _validation_batch(self, rows: list[int]) -> ContextBatch:
        chosen = [self.validation_sets[row] for row in rows]
        return self._batch(rows, chosen, len(rows), sum(len(one.passages) for one in chosen))

    @property
    def _module(self) -> ContextModel:
        return self.trainer.lightning_module

    def _sets(self, questions: Sequence[Question], contexts: int, pick: Pick, epoch: int) -> list[ContextSet]:
        """The sets of all questions that have an answer and a context."""
        with_answers = [question for question in questions if question.answers]
        shown = track(with_answers, len(with_answers), "selecting and labelling contexts, questions")
        sets = [self._set(question, contexts, pick, epoch) for question in shown]
        return [one for one in sets if one.passages]

    def _set(self, question: Question, contexts: int, pick: Pick, epoch: int) -> ContextSet:
        rng = random.Random(f"{self.sampling_seed}/{epoch}/{question.id}/{question.text}")
        passages = tuple(pick_contexts(question, self.more.get(question.id, ()), contexts, pick, rng))
        labels = tuple(self._relevant(question, passage) for passage in passages)
        scores = self._scores(question, passages)
        answer = rng.choice(question.answers)
        if epoch >= 0 and rng.random() < self.substitution and answer not in question.text:
            answer, passages = self._substituted(question, answer, passages, rng)
        if self.crop_words is not None and epoch >= 0:
            accepted = [*question.answers, answer]
            words = self.crop_words + epoch * self.crop_growth_words
            passages = tuple(crop(passage, accepted, words, rng) for passage in passages)
        if self.nearest and epoch >= 0:
            question, passages = self._reworded(question, passages, answer, rng)
        return ContextSet(question, passages, labels, answer, scores)

    def _as_read(self, one: ContextSet) -> ContextSet:
        """The set as the model reads it: for a writer of questions, question and answer change places."""
        if not self._module.writes_questions:
            return one
        return replace(
            one, question=replace(one.question, text=one.answer, answers=(one.question.text,)), answer=one.question.text
        )

    def _scores(self, question: Question, passages: Sequence[Passage]) -> tuple[float, ...]:
        """The retriever scores of contexts, if they weight them; fewer than contexts if some have none."""
        if self._module.relevance != "retriever" or not question.given_scores:
            return ()
        score_of = dict(zip((p.id for p in question.passages), question.given_scores, strict=True))
        return tuple(score_of[passage.id] for passage in passages if passage.id in score_of)

    def _check_scores(self, sets: Sequence[ContextSet], sources: Sequence[Source]) -> None:
        """Raise UserError if contexts are weighted by retriever scores and some have none."""
        bare = [one.question for one in sets if len(one.scores) < len(one.passages)]
        if self._module.relevance == "retriever" and bare:
            raise UserError(
                f"model.relevance retriever needs a retriever score of every context, and {len(bare)} of {len(sets)} "
                f"questions of {[source.path for source in sources]} lack some (the first is {bare[0].id!r}). Type `python infer.py "
                "score --questions FILE --out FILE` for each file, and name what it writes; passages of data.more have no scores."
            )

    def _substituted(
        self, question: Question, answer: str, passages: tuple[Passage, ...], rng: random.Random
    ) -> tuple[str, tuple[Passage, ...]]:
        other = self.answer_substitutes.draw(question, answer, rng)
        changed = tuple(substitute(passages, answer, other))
        return (other, changed) if changed != passages else (answer, passages)  # kept if it occurs in no context

    def _reworded(
        self, question: Question, passages: tuple[Passage, ...], answer: str, rng: random.Random
    ) -> tuple[Question, tuple[Passage, ...]]:
        protected = set(LOWER_WORD.findall(answer))

        def swapped(text: str) -> str:
            return swap_words(text, self.nearest, self.word_swaps, protected, rng)

        return (
            # a target is not reworded: the writer would learn the wrong words
            question if self._module.writes_questions else replace(question, text=swapped(question.text)),
            tuple(Passage.of(p.title, swapped(p.text), p.source) for p in passages),
        )

    def _relevant(self, question: Question, passage: Passage) -> bool:
        key = question.text, passage.id
        if key not in self.known_labels:
            self.known_labels[key] = relevant(question, passage, self.labels)
        return self.known_labels[key]

    def _plan(self, epoch: int) -> list[list[int]]:
        rng = random.Random(f"plan/{self.sampling_seed}/{epoch}")
        return plan_steps([1] * len(self.questions), self.steps_per_epoch, rng, jitter=1.0)

    def _collate(self, epoch: int, rows: list[int], step: list[int]) -> ContextBatch:
        mine = rows or step[:1]
        sets = [self._as_read(self._set(self.questions[row], self.contexts, self.pick, epoch)) for row in mine]
        pairs = len(step) if self._module.packed else sum(self.counts[row] for row in step)
        return self._batch(mine, sets, len(step), pairs, weight=float(bool(rows)))

    def _batch(
        self, rows: list[int], chosen: Sequence[ContextSet], step_questions: int, step_pairs: int, weight: float = 1.0
    ) -> ContextBatch:
        """The batch of this rank's rows of a step."""
        module = self._module
        packed = module.packed
        counts = [1 if packed else len(one.passages) for one in chosen]
        width = max(counts)
        real_BN = torch.arange(width) < torch.tensor(counts)[:, None]
        labels_BN = torch.zeros_like(real_BN)
        retriever_BN = torch.zeros(real_BN.shape)
        inputs: list[tuple[int, tuple[str, Sequence[Passage]]]] = []
        for row, one in enumerate(chosen):
            if packed:
                inputs.append((row * width, (one.question.text, one.passages)))
                labels_BN[row, 0] = any(one.labels)
                continue
            labels_BN[row, : len(one.labels)] = torch.tensor(one.labels)
            retriever_BN[row, : len(one.scores)] = torch.tensor(one.scores)
            inputs += [(row * width + n, (one.question.text, (p,))) for n, p in enumerate(one.passages)]
        encoders = module.encoders
        return ContextBatch(
            self._buckets(encoders[0], inputs),
            self._buckets(encoders[1], inputs) if len(encoders) > 1 else [],
            module.answer_labels([one.answer for one in chosen]),
            real_BN,
            labels_BN,
            weight,
            step_questions,
            step_pairs,
            torch.tensor(rows),
            retriever_BN,
        )

    def _buckets(
        self, encode: ContextEncoder, inputs: Sequence[tuple[int, tuple[str, Sequence[Passage]]]]
    ) -> list[Bucket]:
        sequences = encode([text for _, text in inputs])
        buckets = []
        for rows in length_batches([len(s) for s in sequences], self.tokens_per_bucket):
            ids_MT, attention_MT = encode.pad([sequences[row] for row in rows])
            buckets.append(Bucket(ids_MT, attention_MT, torch.tensor([inputs[row][0] for row in rows])))
        return buckets

    def _audit(self, sets: Sequence[ContextSet], read: int, held_out: int) -> dict[str, object]:
        counts = Counter(len(one.passages) for one in sets)
        relevant_counts = [sum(one.labels) for one in sets]
        return {
            "questions": len(self.questions),
            "questions_without_answer_or_context": read - len(self.questions),
            "question_kinds": dict(Counter(q.kind or "unnamed" for q in self.questions).most_common()),
            "contexts_per_question": dict(sorted(counts.items())),
            "questions_without_a_relevant_context": sum(count == 0 for count in relevant_counts),
            "relevant_contexts": f"{sum(relevant_counts)} of {sum(len(one.passages) for one in sets)} by {self.labels}",
            "answers_per_question": round(sum(len(q.answers) for q in self.questions) / len(self.questions), 2),
            "validation_questions": len(self.validation_sets),
            "validation_questions_skipped": held_out - len(self.validation_sets),
            "steps_per_epoch": self.steps_per_epoch,
        }
