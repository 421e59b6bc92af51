"""LightningDataModule of DMQR-RAG's generative rewriters.

Reads questions with their rewrites, and batches them into optimizer steps.

Shape legend: P rewrites, T tokens, A tokens of a rewrite.
"""

import hashlib
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from common.errors import DataError, UserError
from common.progress import track
from common.ranges import OpenShare, PositiveInt
from common.records import Question, nfkc
from common.retrieval import Retriever
from common.rewrites import RewriteExample
from datamodules.dmqr_recall import Asked, asked, check_corpus, read_gold
from datamodules.examples.batches import TokenBatch
from datamodules.examples.data_files import DataFile, QuestionDataFile, hash_split, paths_of
from datamodules.examples.step_loader import StepData, chunks, padded, plan_steps
from datamodules.formats.rewrites import check_rewrites, read_rewrites
from datamodules.formats.row_counts import LEFT_OUT, REPEATED_REWRITE, RowCounts, RowKind
from models.dmqr.rewrite_outputs import SEPARATOR
from models.dmqr.rewriter import RewriterModel

LONG_REWRITE = RowKind("a rewrite longer than model.max_rewrite_tokens", LEFT_OUT)
NO_QUERY = RowKind("a rewrite without a query", LEFT_OUT)


@dataclass
class RewriteDataFile(DataFile):
    """An input file of rewrites.  The layout is rrr, qrecc, canard or rewrites; auto: by the fields of the first row.

    Args:
        strategy: The strategy of its rewrites; by the layout when None: decomposition for rrr, else gqr. Rows of the
            layout rewrites may name their own.

    Raises:
        UserError: If the layout is unknown.
    """

    strategy: str | None = None

    def __post_init__(self) -> None:
        check_rewrites(self.layout)


@dataclass
class RewriteBatch(TokenBatch):
    """P questions with their rewrites on one rank."""

    ids_PT: Tensor
    attention_PT: Tensor
    labels_PA: Tensor  # tokens of the rewrites; IGNORE where there is none
    weights_P: Tensor  # 1.0; 0.0 for a dummy row on a rank without data
    step_tokens: int  # rewrite tokens of the optimizer step, over all ranks and accumulated batches
    rows_P: Tensor  # index of each row in the training or validation examples
    strategies: list[str]  # of each row
    step_strategies: list[str]  # of the optimizer step, over all ranks and accumulated batches; sorted


@dataclass(frozen=True)
class Tokenized:
    """An example with the token ids of its input and of its rewrite."""

    example: RewriteExample
    input: list[int]
    target: list[int]
    cut: bool = False  # whether the question is too long and cut

    @property
    def length(self) -> int:
        """Tokens that are computed."""
        return len(self.input) + len(self.target)


class RewriteData(StepData):
    """Questions with their rewrites by one or several strategies.

    Validation examples come from a fixed hash split of the training files or from separate files. The split is by
    dialogue: by the first turn of the history, or by the question where there is none, so that no dialogue is on both
    sides, and no question without a history, whatever the strategies. An example that occurs several times is used
    once. A question that is longer than `model.max_tokens` is cut, an example whose rewrite is longer than
    `model.max_rewrite_tokens` left out, because a cut one would teach a wrong end; both are counted.

    Args:
        train: Training files.
        validation: Validation files; a hash split of the training files when empty.
        validation_fraction: Share of the dialogues that the hash split holds out.
        rewrites_per_step: Rewrites of one optimizer step on average, over all ranks and accumulated batches; all steps
            have about equally many tokens.
        rewrites_per_validation_batch: Rewrites of one validation batch, per rank.
        generated_rewrites: Validation questions, drawn by hash, that are also rewritten: for exact match and token F1.
        sampling_seed: Seed of the order.
        retriever: Searches with validation questions and their rewrites, for the metric val/recall_at_K, K being
            recall_k: a class of harness.retrievers with its options, such as an index of `infer.py index`. Null
            measures no recall.
        gold_questions: Question files with the gold passages of validation questions, which are found by their text
            (and the turns before it); needed with a retriever.
        recall_k: Passages that are retrieved: by the question alone, and together by the question and its rewrites by
            all strategies of the training files.
        recall_questions: Validation questions, drawn by hash from those with gold passages, that are searched.
        strict: Whether an unusual row (null, empty, repeated, a rewrite that is too long) is an error instead of a line
            in the statistics.

    Raises:
        UserError: If there is no training file, one of retriever and gold_questions is missing, or a layout is unknown.
    """

    step_option, examples_name = "rewrites_per_step", "rewrites"

    def __init__(
        self,
        train: list[RewriteDataFile],
        validation: list[RewriteDataFile] | None = None,
        validation_fraction: OpenShare = 0.05,
        rewrites_per_step: PositiveInt = 64,
        rewrites_per_validation_batch: PositiveInt = 64,
        generated_rewrites: PositiveInt = 200,
        sampling_seed: int = 0,
        retriever: Retriever | None = None,
        gold_questions: list[QuestionDataFile] | None = None,
        recall_k: PositiveInt = 10,
        recall_questions: PositiveInt = 200,
        strict: bool = False,
    ) -> None:
        super().__init__()
        self._name_files(train, validation, validation_fraction)
        if (retriever is None) != (not gold_questions):
            given, missing = ("gold_questions", "retriever") if retriever is None else ("retriever", "gold_questions")
            raise UserError(f"data.{given} is given without data.{missing}: recall on validation needs both.")
        self.rewrites_per_step, self.generated_rewrites = rewrites_per_step, generated_rewrites
        self.rewrites_per_validation_batch = rewrites_per_validation_batch
        self.sampling_seed = sampling_seed
        self.retriever, self.gold_questions = retriever, gold_questions or []
        self.recall_k, self.recall_questions = recall_k, recall_questions
        self.training: list[Tokenized] = []
        self.held_out: list[Tokenized] = []  # longest first
        self.generated: frozenset[int] = frozenset()  # rows of `held_out`
        self.gold: dict[int, tuple[frozenset[str], ...]] = {}  # rows of `held_out` that are searched -> gold passages
        self._unusual = RowCounts(strict)
        self._places: dict[RewriteExample, str] = {}  # file and line of each example until it is tokenized
        self.strategies: list[str] = []  # of the training examples, in the order of the pool

    @property
    def files(self) -> list[str]:
        """Paths of all input files; of Rewrite-Retrieve-Read's pairs both."""
        paths = [source.path for source in self.sources]
        pairs = [source.path for source in self.sources if source.layout == "rrr"]
        paths += [".target".join(path.rsplit(".source", 1)) for path in pairs]
        return paths + paths_of(self.gold_questions)

    def setup(self, stage: str) -> None:
        """Read, split and tokenize the examples, print statistics (once).

        Raises:
            DataError: If a file is invalid, nothing is left to train on or to validate with, no validation question has
                gold passages, or the retriever does not find them.
            UserError: If a strategy is not in the pool.
        """
        if self.training:
            return
        train, held_out = self._split()
        self._check_strategies(train + held_out)
        self.training = self._tokenized(train)
        self.held_out = sorted(self._tokenized(held_out), key=lambda each: -each.length)
        self._places.clear()
        self._count_steps()
        by_hash = sorted(range(len(self.held_out)), key=lambda row: _digest(repr(self.held_out[row].example)))
        self.generated = frozenset(by_hash[: self.generated_rewrites])
        self.audit = self._audit()
        if self.retriever is not None:
            self.gold = self._gold(self.retriever)
        self.audit |= self._unusual.audit()
        self.print_audit()

    def _check_strategies(self, examples: Sequence[RewriteExample]) -> None:
        """Raise UserError if a strategy is not in the pool."""
        pool, found = self.module.rewriter.strategies, {each.strategy for each in examples}
        if unknown := sorted(found - set(pool)):
            raise UserError(
                f"the files hold rewrites by {unknown[0]!r}, which is not in the pool "
                f"({', '.join(pool)}): describe it in a file and name it as model.pool."
            )

    def _count_steps(self) -> None:
        """Raise DataError if nothing is left; remember the steps of an epoch and what is trained on."""
        if not self.training or not self.held_out:
            raise DataError(
                f"{len(self.training)} training and {len(self.held_out)} validation examples, from "
                f"{self._lacking(not self.training)}: give more files{self._or_fraction}."
            )
        found = {each.example.strategy for each in self.training}
        self.strategies = [name for name in self.module.rewriter.strategies if name in found]
        self.steps_per_epoch = math.ceil(len(self.training) / self.rewrites_per_step)
        self.units_per_step = len(self.training) / self.steps_per_epoch

    def _gold(self, retriever: Retriever) -> dict[int, tuple[frozenset[str], ...]]:
        """The gold passages of the questions that are searched, each by its first row of `held_out`."""
        rows: dict[Asked, int] = {}
        for row, each in enumerate(self.held_out):
            rows.setdefault(asked(each.example.question, each.example.history), row)
        found = read_gold(self.gold_questions, rows, self._unusual)
        drawn = sorted(found, key=lambda key: _digest(repr(key)))[: self.recall_questions]
        check_corpus(retriever, [found[key].gold_passages for key in drawn], self.recall_k)
        self.audit |= {
            "validation_questions": len(rows),
            "validation_questions_with_gold_passages": len(found),
            "validation_questions_searched": f"{len(drawn)}, for {self.recall_k} passages",
        }
        return {rows[key]: found[key].gold_groups for key in drawn}

    def _validation_groups(self) -> list[list[int]]:
        return chunks(len(self.held_out), self.rewrites_per_validation_batch)

    def _validation_batch(self, rows: list[int]) -> RewriteBatch:
        return self._batch([self.held_out[row] for row in rows], rows, [], 1.0)

    def _split(self) -> tuple[list[RewriteExample], list[RewriteExample]]:
        """Training and validation examples; no dialogue is on both sides."""
        train, validation = (self._distinct(each) for each in (self.train_sources, self.validation_sources))
        examples = list(track(train, None, "reading training rewrites"))
        if self.validation_sources:
            held_out = list(track(validation, None, "reading validation rewrites"))
            known = {dialogue(each).casefold() for each in held_out}
            return [each for each in examples if dialogue(each).casefold() not in known], held_out
        questions = (Question("", each.question, history=each.history) for each in examples)
        return hash_split(examples, questions, self.validation_fraction)

    def _distinct(self, sources: Sequence[RewriteDataFile]) -> Iterator[RewriteExample]:
        seen: set[RewriteExample] = set()
        for source in sources:
            for example in read_rewrites(source.layout, source.path, source.strategy, source.limit, self._unusual):
                if example in seen:
                    self._unusual.add(REPEATED_REWRITE)
                    continue
                seen.add(example)
                self._places.setdefault(example, self._unusual.place)
                yield example

    def _tokenized(self, examples: Sequence[RewriteExample]) -> list[Tokenized]:
        """The examples that fit, tokenized; a rewrite that is too long would teach a wrong end and is left out."""
        rewriter: RewriterModel = self.module.rewriter
        texts = [SEPARATOR.join(rewriter.queries(each.rewrite, each.strategy)) for each in examples]
        tasks = [rewriter.task(each.question, each.strategy, each.history) for each in examples]
        targets = rewriter.encode.targets(texts)
        kept = []
        for example, text, task, ids, target in zip(
            examples, texts, tasks, rewriter.encode(tasks), targets, strict=True
        ):
            if not text or len(target) > rewriter.max_rewrite_tokens:
                self._unusual.add(LONG_REWRITE if text else NO_QUERY, self._places[example])
            else:
                kept.append(Tokenized(example, ids, target, rewriter.encode.cuts_question(task)))
        return kept

    def _plan(self, epoch: int) -> list[list[int]]:
        rng = random.Random(f"plan/{self.sampling_seed}/{epoch}")
        return plan_steps([each.length for each in self.training], self.steps_per_epoch, rng)

    def _tokens_of(self, epoch: int) -> Callable[[Sequence[int]], int]:
        return padded([each.length for each in self.training])

    def _collate(self, epoch: int, rows: list[int], step: list[int]) -> RewriteBatch:
        mine = rows or step[:1]
        whole = [self.training[row] for row in step]  # of all ranks: their tokens weigh the loss
        return self._batch([self.training[row] for row in mine], mine, whole, float(bool(rows)))

    def _batch(
        self, chosen: Sequence[Tokenized], rows: list[int], step: Sequence[Tokenized], weight: float
    ) -> RewriteBatch:
        rewriter: RewriterModel = self.module.rewriter
        return RewriteBatch(
            *rewriter.batch([each.input for each in chosen], [each.target for each in chosen]),
            weights_P=torch.full((len(rows),), weight),
            step_tokens=sum(len(each.target) for each in step),
            rows_P=torch.tensor(rows),
            strategies=[each.example.strategy for each in chosen],
            step_strategies=sorted({each.example.strategy for each in step}),
        )

    def _audit(self) -> dict[str, object]:
        tokens = [len(each.target) for each in self.training]
        return {
            "rewrites": len(self.training),
            "rewrites_by_strategy": dict(Counter(each.example.strategy for each in self.training).most_common()),
            "questions_with_history": sum(bool(each.example.history) for each in self.training),
            "rewrites_that_repeat_the_question": sum(
                nfkc(each.example.rewrite) == nfkc(each.example.question) for each in self.training
            ),
            "input_tokens": f"{max(len(each.input) for each in self.training)} at most",
            "rewrite_tokens": f"{sum(tokens) / len(tokens):.1f} on average, {max(tokens)} at most",
            "questions_cut": sum(each.cut for each in self.training + self.held_out),
            "validation_rewrites": len(self.held_out),
            "validation_rewrites_generated": len(self.generated),
            "steps_per_epoch": self.steps_per_epoch,
        }


def dialogue(example: RewriteExample) -> str:
    """The key of a dialogue: its first turn, which in the first example is the question."""
    return example.history[0] if example.history else example.question


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
