"""LightningDataModule of DR-RAG.

Reads official files, samples triples, and batches them into optimizer steps.
"""

import json
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np

from common.errors import DataError
from common.ranges import NonNegativeInt, OpenShare, PositiveInt
from common.records import Question
from common.sealed_json import fingerprint
from datamodules.cache.candidates import Candidates
from datamodules.cache.question_lookup import QuestionLookup
from datamodules.cache.record_cache import DEFAULT, Arrays
from datamodules.cache.sampled_triples import SampledTriples, draw_triples
from datamodules.cache.search_results import Search
from datamodules.cache.splits import Split
from datamodules.cache.token_cache import TokenCache, token_rows
from datamodules.examples.audit import audit
from datamodules.examples.data_files import QuestionDataFile
from datamodules.examples.step_loader import plan_steps
from datamodules.examples.triple_batches import TripleBatch, TripleBatches, TripleRequest
from datamodules.examples.triples import Sampling, Triple, draw
from datamodules.formats.mined_negatives import Mined
from datamodules.question_data import QuestionData
from models.drrag.triple_tokenizer import TripleEncoder
from models.length_batching import length_batches

BALANCED = Sampling()  # 1:1, as in the paper
LIKE_INFERENCE = Sampling(negatives_per_positive=4.0, mixed_share=0.75)  # mostly negatives, as at inference
_OF_ALL_LENGTHS = 32  # triples on which a new head is centered


class DrRagData(QuestionData):
    """Training and validation triples of one or several data sets.

    Validation questions come from a fixed hash split of the training files or from separate files; dev files are for
    `infer.py evaluate` only.  A question that occurs in several files is used once.

    Args:
        train: Official training files.
        validation: Official validation files; a hash split of the training files when empty.
        validation_fraction: Share of the training questions that the hash split holds out.
        hard_negatives: Files of hard negatives, written by `infer.py mine`.
        corpus: Corpus by whose ids questions name their gold passages, of the files that name no other one.
        search: Retriever that finds further hard negatives before the first training, as by `infer.py mine`.
        sampling: How training triples are sampled, again in every epoch.
        validation_sampling: How validation triples are sampled, once.
        tokens_per_step: Average tokens of one optimizer step, over all ranks and accumulated batches.
        tokens_per_validation_batch: Maximum padded tokens of one validation batch, per rank.
        sampling_seed: Seed of sampling and ordering.
        cache: Folder in which the questions of files above 32 MiB are stored with their token ids, for all ranks and
            later starts; it can be deleted at any time. null keeps them in the memory of every rank, and of every
            process of `workers`.
        strict: Whether unusual rows (empty, null, repeated questions and passages) are an error instead of a line in
            the statistics.
        workers: Processes of each rank that make batches while it trains; 0 makes them in between. When null: 0 on a
            CPU, up to 4 of the rank's cores on a GPU.

    Raises:
        UserError: If there is no training file.
    """

    step_option, examples_name = "tokens_per_step", "triples"

    def __init__(
        self,
        train: list[QuestionDataFile],
        validation: list[QuestionDataFile] | None = None,
        validation_fraction: OpenShare = 0.06,
        hard_negatives: list[str] | None = None,
        corpus: str | None = None,
        search: Search | None = None,
        sampling: Sampling = BALANCED,
        validation_sampling: Sampling = LIKE_INFERENCE,
        tokens_per_step: PositiveInt = 4096,
        tokens_per_validation_batch: PositiveInt = 4096,
        sampling_seed: int = 0,
        cache: str | None = DEFAULT,
        workers: NonNegativeInt | None = None,
        strict: bool = False,
    ) -> None:
        super().__init__()
        self.cache, self.workers, self.strict = cache, workers, strict
        self._name_question_files(train, validation, validation_fraction, hard_negatives, corpus, search)
        self.sampling, self.validation_sampling = sampling, validation_sampling
        self.tokens_per_step, self.tokens_per_validation_batch = tokens_per_step, tokens_per_validation_batch
        self.sampling_seed = sampling_seed

    def _load(self, split: Split, mined: QuestionLookup) -> None:
        """Raises DataError if there are no training triples, or validation lacks a class."""
        self.encode: TripleEncoder = self.module.classifier.encode
        self._number(split, mined)
        self._sampled = 0, self._drawn(self._training, self.sampling, 0)
        self._validation = self._drawn(self._held_out, self.validation_sampling, -1)
        self._count_steps()
        self.validation_triples, self.questions = self._validation.examples, split.training
        self.audit = self._audit(split, mined)

    def _number(self, split: Split, mined: QuestionLookup) -> None:
        """Give the passages of both parts numbers, and token ids."""
        self._store = split.stores[0]
        drawn_from = [store.name for store in split.stores], self.validation_fraction, mined.name
        self._content = fingerprint([*drawn_from, self.sampling_seed])
        self._training, self._held_out = (
            self._numbered(part, Candidates(questions, mined), fingerprint([part, *drawn_from]))
            for part, questions in (("training", split.training), ("held out", split.held_out))
        )

    def _count_steps(self) -> None:
        """The steps of an epoch: all have as many."""
        first, held_out = self._sampled[1], self._validation
        if not len(first) or held_out.positive.all() or not held_out.positive.any():
            raise DataError(
                f"{len(first)} training and {len(held_out)} validation triples, from "
                f"{self._lacking(not len(first))}: a question needs two or more gold passages and other ones, and "
                f"validation needs both classes. Give more questions{self._or_fraction}."
            )
        tokens = int(first.lengths().sum())
        self.steps_per_epoch = max(1, min(len(first), math.ceil(tokens / self.tokens_per_step)))
        self.units_per_step = len(first) / self.steps_per_epoch

    def _audit(self, split: Split, mined: QuestionLookup) -> dict[str, Any]:
        first, held_out = self._sampled[1], self._validation

        def audited() -> Arrays:
            report = audit(
                split.training, first.examples, mined, first.lengths().tolist(), self.encode.max_tokens,
                first.untruncated().tolist()
            )  # fmt: skip
            return {"json": np.array(json.dumps(report))}

        key = {"audit": self._key(self.sampling, 0), "tokens": self.encode.content_digest}
        return _with_numbers(json.loads(str(self._store.derived(key, audited)["json"]))) | {
            "copies_of_gold_left_out": self._training[1].copies,
            "validation_questions": len(split.held_out),
            "validation_triples": len(held_out),
            "questions_cut": first.questions_cut() + held_out.questions_cut(),
            "steps_per_epoch": self.steps_per_epoch,
            **self._unusual,
        }

    def _numbered(self, part: str, candidates: Candidates, content: str) -> tuple[str, Candidates, TokenCache]:
        """A part of the questions with their passages and token ids."""
        candidates.use(self._store.derived({"candidates": content}, candidates.arrays))
        tokens = token_rows(
            self._store, {"tokens": self.encode.content_digest, "of": content}, candidates.texts(),
            int(candidates.first[-1]), self.encode.tokenize, len(self.encode.tokenizer),
        )  # fmt: skip
        return part, candidates, tokens

    def _key(self, sampling: Sampling, epoch: int) -> list[object]:
        """The options that draws depend on, besides the questions."""
        return [self._content, asdict(sampling), epoch]

    def _drawn(self, of: tuple[str, Candidates, TokenCache], sampling: Sampling, epoch: int) -> SampledTriples:
        """The triples of a part of the questions; those of the first epoch and of validation are stored."""
        part, candidates, tokens = of

        def triples(question: Question, mined: Mined) -> list[Triple]:
            return draw(question, mined, sampling, self.sampling_seed, epoch, mined.hits)

        compute = partial(draw_triples, candidates, triples, f"sampling {part} triples")
        drawn = (
            self._store.derived({"drawn": part, "key": self._key(sampling, epoch)}, compute) if epoch < 1 else compute()
        )
        return SampledTriples(candidates, tokens, drawn, self.encode)

    def _validation_groups(self) -> list[list[int]]:
        lengths = [self.module.classifier.padded_length(length) for length in self._validation.lengths().tolist()]
        return length_batches(lengths, self.tokens_per_validation_batch)

    def _validation_request(self, rows: list[int]) -> TripleRequest:
        return self._validation.request(rows, 1.0, len(rows))

    @property
    def _validation_batches(self) -> TripleBatches:
        return TripleBatches(self._validation.texts, self.encode, self.module.classifier.padding)

    def _epoch(self, epoch: int) -> SampledTriples:
        if self._sampled[0] != epoch:
            self._sampled = epoch, self._drawn(self._training, self.sampling, epoch)
        return self._sampled[1]

    def _plan(self, epoch: int) -> list[list[int]]:
        rng = random.Random(f"plan/{self.sampling_seed}/{epoch}")
        return plan_steps(self._epoch(epoch).lengths().tolist(), self.steps_per_epoch, rng)

    def _tokens_of(self, epoch: int) -> Callable[[Sequence[int]], int]:
        lengths, padded_length = self._epoch(epoch).lengths(), self.module.classifier.padded_length
        return lambda rows: len(rows) * padded_length(int(lengths[rows].max()))

    @property
    def _training_batches(self) -> TripleBatches:
        return TripleBatches(
            self._sampled[1].texts, self.encode, self.module.classifier.padding
        )  # the same texts in all epochs

    def batch_of_all_lengths(self) -> TripleBatch:
        """Triples of the first epoch, at even distances from the shortest to the longest."""
        first = self._epoch(0)
        places = np.linspace(0, len(first) - 1, min(len(first), _OF_ALL_LENGTHS)).astype(int)
        rows = np.argsort(first.lengths(), kind="stable")[places].tolist()
        return self._training_batches(first.request(rows, 1.0, len(rows)))

    def _request(self, epoch: int, rows: list[int], step: list[int]) -> TripleRequest:
        return self._epoch(epoch).request(rows or step[:1], float(bool(rows)), len(step))


def _with_numbers(report: dict[str, Any]) -> dict[str, Any]:
    """An audit as it was before JSON made texts of its numbers of gold passages."""
    return report | {"gold_passages": {int(count): questions for count, questions in report["gold_passages"].items()}}
