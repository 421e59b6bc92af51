"""LightningDataModule of DMQR-RAG's extractive rewriter.

Reads word labels, and batches (question, passage) pairs into optimizer steps.

Shape legend: P pairs, T tokens, L labels (0 stays, 1 joins).
"""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from common.errors import DataError
from common.progress import track
from common.ranges import NonNegativeFloat, OpenShare, PositiveFloat, PositiveInt, Share
from common.records import Passage, Question, nfkc
from datamodules.cache.search_results import Search, SearchResults
from datamodules.examples.batches import TokenBatch
from datamodules.examples.data_files import DataFile, QuestionDataFile, hash_split
from datamodules.examples.step_loader import StepData, padded, plan_steps
from datamodules.formats.row_counts import REPEATED_QUESTION, RowCounts
from datamodules.formats.word_labels import WordLabels, averaged, word_label_rows
from models.dmqr.word_selector import JOINS, LABELS, STAYS
from models.dmqr.word_tokenizer import WordPair, WordPairEncoder
from models.length_batching import length_batches

LAYOUT = "word_labels"
UNLABELLED = -1.0  # of a token that is no word to learn
HELPFUL = 0.25  # a target from here on counts as a word that helps


@dataclass
class WordBatch(TokenBatch):
    """P pairs of at most T tokens on one rank."""

    ids_PT: Tensor
    types_PT: Tensor  # segments
    attention_PT: Tensor
    targets_PTL: Tensor  # 0 to 1 at the first token of a word; UNLABELLED elsewhere
    weights_P: Tensor  # 1.0; 0.0 for a dummy pair on a rank without data
    step_words_L: tuple[int, int]  # labelled words of the optimizer step, over all ranks and accumulated batches
    rows_P: Tensor  # index of each pair in the epoch or the validation set


@dataclass(frozen=True)
class LabelledPair:
    """A (question, passage) with the targets of its words."""

    question: str
    passage: Passage
    pair: WordPair
    targets: tuple[dict[int, float], dict[int, float]]  # by label: position of a word's first token -> target

    @property
    def length(self) -> int:
        """Its tokens."""
        return len(self.pair.ids)

    @property
    def helpful(self) -> bool:
        """Whether a word of the passage helps the question."""
        return any(target >= HELPFUL for target in self.targets[JOINS].values())


class ExtractiveData(StepData):
    """Pairs of a question and a feedback passage, with a target for each word.

    A word of the passage should join the query as far as retrieval improves with it: target = change / `full_change`,
    within 0 and 1. A word of the question should stay if retrieval is worse without it (1) and not if it is better (0);
    words whose change is smaller than `min_change` have no target. Every occurrence of a word has the word's target.

    Validation questions come from a fixed hash split of the training files or from separate files. Labels of one
    question by several retrievers are averaged, so that a chance gain with one of them counts less. A question that is
    too long for `model.max_tokens` is cut; these are counted.

    Args:
        train: Files that `infer.py label` wrote, as {layout: word_labels, path: FILE}; with `search` question files.
        validation: Files of the same kind; a hash split of the training files when empty.
        validation_fraction: Share of the questions that the hash split holds out.
        passages: Feedback passages of each question that are used, best first.
        full_change: Change of retrieval from which a word's target is 1.
        min_change: Change of retrieval below which a word of the question has no target.
        unhelpful_share: Share of the passages without a helpful word that an epoch draws: they are the majority, and
            teach less.
        tokens_per_step: Average tokens of one optimizer step, over all ranks and accumulated batches.
        tokens_per_validation_batch: Maximum padded tokens of one validation batch, per rank.
        sampling_seed: Seed of sampling and ordering.
        corpus: Corpus by whose ids questions name their gold passages, of the files that name no other one.
        search: Retriever by which the words of the questions are labelled before the first training, as by
            `infer.py label`.
        strict: Whether an unusual row (null, empty, repeated) is an error instead of a line in the statistics.

    Raises:
        UserError: If there is no training file, or a layout is another one.
    """

    step_option, examples_name = "tokens_per_step", "pairs"

    def __init__(
        self,
        train: list[DataFile],
        validation: list[DataFile] | None = None,
        validation_fraction: OpenShare = 0.1,
        passages: PositiveInt = 6,
        full_change: PositiveFloat = 0.2,
        min_change: NonNegativeFloat = 0.005,
        unhelpful_share: Share = 0.4,
        tokens_per_step: PositiveInt = 4096,
        tokens_per_validation_batch: PositiveInt = 4096,
        sampling_seed: int = 0,
        corpus: str | None = None,
        search: Search | None = None,
        strict: bool = False,
    ) -> None:
        super().__init__()
        self._name_files(train, validation, validation_fraction)
        self.search = search
        if search is not None:
            asked = [QuestionDataFile(each.path, each.layout, each.limit, corpus=corpus) for each in self.sources]
            self.search_results = SearchResults("label", search, asked, None)
        else:
            self._accept(LAYOUT, "a file with `python infer.py label`, or name its retriever as data.search.index_root")
        self.passages, self.unhelpful_share = passages, unhelpful_share
        self.full_change, self.min_change = full_change, min_change
        self.tokens_per_step, self.tokens_per_validation_batch = tokens_per_step, tokens_per_validation_batch
        self.sampling_seed = sampling_seed
        self._unusual = RowCounts(strict)
        self.pairs: list[LabelledPair] = []  # of training; those with a word that helps come first
        self.held_out: list[LabelledPair] = []

    @property
    def files(self) -> list[str]:
        """Paths of all input files."""
        return [source.path for source in self.sources]

    def setup(self, stage: str) -> None:
        """Read and split the questions, tokenize their pairs, print statistics (once).

        Raises:
            DataError: If a file is invalid, or training or validation has no word that helps.
        """
        if self.pairs:
            return
        encode = self.module.selector.encode
        train, held_out = self._split()
        pairs, self.held_out = self._pairs(train, encode), self._pairs(held_out, encode)
        helpful = [each for each in pairs if each.helpful]
        if not helpful or not any(each.helpful for each in self.held_out):
            raise DataError(
                f"{len(helpful)} training pairs and {sum(each.helpful for each in self.held_out)} validation pairs "
                f"have a word that helps, none in {self._lacking(not helpful)}: label more questions, or lower "
                f"data.full_change{self._or_fraction}."
            )
        self.pairs = helpful + [each for each in pairs if not each.helpful]
        self.helpful = len(helpful)
        first = self._drawn(0)
        self.steps_per_epoch = max(
            1, min(len(first), math.ceil(sum(self.pairs[row].length for row in first) / self.tokens_per_step))
        )
        self.units_per_step = len(first) / self.steps_per_epoch
        self.audit = self._audit(train, held_out, first)
        self.print_audit()

    def _split(self) -> tuple[list[WordLabels], list[WordLabels]]:
        """Training and validation questions, without duplicates; no question is on both sides."""
        files = self.search_results.files if self.search_results else [source.path for source in self.sources]
        limits = [None if self.search_results else source.limit for source in self.sources]
        labelled, trained = [*zip(files, limits, strict=True)], len(self.train_sources)
        train = _distinct(labelled[:trained], self._unusual)
        if self.validation_sources:
            held_out = _distinct(labelled[trained:], self._unusual)
            known = {nfkc(each.question).casefold() for each in held_out}
            return [each for each in train if nfkc(each.question).casefold() not in known], held_out
        return hash_split(train, (Question("", each.question) for each in train), self.validation_fraction)

    def _pairs(self, questions: Sequence[WordLabels], encode: WordPairEncoder) -> list[LabelledPair]:
        """The pairs of the questions, tokenized, with targets."""
        found = []
        for labels in track(questions, len(questions), "tokenizing questions with passages"):
            passages = labels.passages[: self.passages]
            for passage, pair in zip(passages, encode([(labels.question, p) for p in passages]), strict=True):
                found.append(LabelledPair(labels.question, passage, pair, self.targets(labels, pair)))
        return found

    def targets(self, labels: WordLabels, pair: WordPair) -> tuple[dict[int, float], dict[int, float]]:
        """For both labels the target of each word, by the position of its first token."""
        stays = {
            each.position: float(change < 0)
            for each in pair.question_words
            if abs(change := labels.without_word.get(each.word.text, 0.0)) >= max(self.min_change, 1e-9)
        }
        own = {each.word.text for each in pair.question_words}
        joins = {
            each.position: min(1.0, max(0.0, labels.with_word.get(each.word.text, 0.0) / self.full_change))
            for each in pair.passage_words
            if each.word.text not in own
        }
        return stays, joins

    def _drawn(self, epoch: int) -> list[int]:
        """Training pairs of an epoch: all with a word that helps, and a share of the others."""
        others = range(self.helpful, len(self.pairs))
        count = round(self.unhelpful_share * len(others))
        rng = random.Random(f"draw/{self.sampling_seed}/{epoch}")
        return [*range(self.helpful), *sorted(rng.sample(others, count))]

    def _plan(self, epoch: int) -> list[list[int]]:
        drawn = self._drawn(epoch)
        rng = random.Random(f"plan/{self.sampling_seed}/{epoch}")
        steps = plan_steps([self.pairs[row].length for row in drawn], self.steps_per_epoch, rng)
        return [[drawn[place] for place in step] for step in steps]

    def _tokens_of(self, epoch: int) -> Callable[[Sequence[int]], int]:
        return padded([each.length for each in self.pairs])

    def _collate(self, epoch: int, rows: list[int], step: list[int]) -> WordBatch:
        return self._batch(self.pairs, rows or step[:1], [self.pairs[row] for row in step], float(bool(rows)))

    def _validation_groups(self) -> list[list[int]]:
        return length_batches([each.length for each in self.held_out], self.tokens_per_validation_batch)

    def _validation_batch(self, rows: list[int]) -> WordBatch:
        return self._batch(self.held_out, rows, [self.held_out[row] for row in rows], 1.0)

    def _batch(
        self, pairs: Sequence[LabelledPair], rows: list[int], step: Sequence[LabelledPair], weight: float
    ) -> WordBatch:
        chosen = [pairs[row] for row in rows]
        ids_PT, types_PT, attention_PT = self.module.selector.encode.pad([each.pair for each in chosen])
        targets_PTL = torch.full((*ids_PT.shape, len(LABELS)), UNLABELLED)
        for place, each in enumerate(chosen):
            for label, targets in enumerate(each.targets):
                targets_PTL[place, list(targets), label] = torch.tensor(list(targets.values()))
        words_L = sum(len(each.targets[STAYS]) for each in step), sum(len(each.targets[JOINS]) for each in step)
        weights_P = torch.full((len(rows),), weight)
        return WordBatch(ids_PT, types_PT, attention_PT, targets_PTL, weights_P, words_L, torch.tensor(rows))

    def _audit(
        self, train: Sequence[WordLabels], held_out: Sequence[WordLabels], first: Sequence[int]
    ) -> dict[str, object]:
        drawn = [self.pairs[row] for row in first]
        joins = [target for each in drawn for target in each.targets[JOINS].values()]
        stays = [target for each in drawn for target in each.targets[STAYS].values()]
        return {
            "questions": len(train),
            "validation_questions": len(held_out),
            "pairs": len(drawn),
            "pairs_with_a_word_that_helps": self.helpful,
            "words_of_passages": f"{len(joins)}, mean target {sum(joins) / max(1, len(joins)):.3f}",
            "words_of_questions": f"{len(stays)}, {sum(stays) / max(1, len(stays)):.1%} should stay",
            "tokens": f"{max(each.length for each in drawn)} at most",
            "questions_cut": sum(
                self.module.selector.encode.cut_note(each.question) != "" for each in [*train, *held_out]
            ),
            "inputs_cut": self.module.selector.encode.inputs_cut,
            "validation_pairs": len(self.held_out),
            "steps_per_epoch": self.steps_per_epoch,
            **self._unusual.audit(),
        }


def _distinct(files: Sequence[tuple[str, int | None]], counts: RowCounts) -> list[WordLabels]:
    """The labelled questions of all files, each text once: of a file the first, of several files their mean.

    Args:
        files: With the maximum number of rows.
        counts: Counts what is unusual.
    """
    found: dict[str, list[WordLabels]] = {}
    for path, limit in files:
        own = set[str]()
        for each in word_label_rows(path, limit, counts):
            if (text := nfkc(each.question)) in own:
                counts.add(REPEATED_QUESTION)
                continue
            own.add(text)
            found.setdefault(text, []).append(each)
    return [averaged(each) for each in found.values()]
