"""Sampling of training examples for a beam over hops: chains of documents, each extended by candidates and by its end.

    C(q, d* .. d*) positive,   C(q, .. dΔ ..) negative,
    C(q, d* .. d*, end) positive if these are all gold passages, else negative

(d* gold, dΔ noise; Beam Retrieval's labels, arXiv 2308.08973, for any order of the gold passages.) The examples that
extend one chain are a group: a search chooses among them, and so does the listwise loss. Sampling depends only on
(seed, epoch, question id): it is the same on every rank and after a resume.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from common.checks import check_at_least, check_share
from common.errors import UserError
from common.records import Passage, Question
from datamodules.examples.triples import noise_of
from datamodules.formats.expansions import Expansion
from datamodules.formats.mined_negatives import Mined
from models.drrag.triple_tokenizer import END, MOST_DOCUMENTS, Chain

Kind = Literal["gold", "gold_noise", "noise", "complete", "incomplete"]
LEAST_DOCUMENTS = 3  # two documents and their end, or the end of a pair is never learned


@dataclass(frozen=True, slots=True)
class ChainExample:
    """A training example: a question, a chain and what follows it, which may be its end.

    One of a group with the same chain.
    """

    question: Question
    passages: tuple[Passage, ...]  # the last one is the candidate, or `END`
    kind: Kind
    group: int  # of the question; the examples of a group follow one another

    @property
    def positive(self) -> bool:
        return self.kind in ("gold", "complete")

    @property
    def texts(self) -> Chain:
        """Arguments of `models.drrag.triple_tokenizer.TripleEncoder`."""
        return self.question.text, *self.passages


@dataclass(frozen=True)
class ChainSampling:
    """How chains are sampled from a question.

    Args:
        most_documents: Longest chain, the end counted as a document: 3 for two hops, 4 for more.
        candidates: Noise passages that each chain is extended by, besides one gold passage that it lacks and its end.
        noise_chains: Chains per question that hold a noise passage; none of their extensions is positive.
        mined_share: Share of noise from the beam's own expansions or the mined passages, if the question has any; the
            others are the question's candidates in its file.
        chains_per_question: Most chains that are extended per question and epoch, drawn at random; all when None. All
            are one gold chain of every length, from none to all gold passages, and the `noise_chains`.
    """

    most_documents: int = MOST_DOCUMENTS
    candidates: int = 3
    noise_chains: int = 1
    mined_share: float = 0.5
    chains_per_question: int | None = None

    def __post_init__(self) -> None:
        """Raise UserError if a value is out of range."""
        check_share(mined_share=self.mined_share)
        check_at_least(0, noise_chains=self.noise_chains)
        check_at_least(1, candidates=self.candidates, chains_per_question=self.chains_per_question)
        if not LEAST_DOCUMENTS <= self.most_documents <= MOST_DOCUMENTS:
            raise UserError(f"most_documents is {self.most_documents}; allowed: {LEAST_DOCUMENTS} to {MOST_DOCUMENTS}.")


def mined_expansions(question: Question, mined: Mined) -> list[Expansion]:
    """What the searches with the question and one passage found, by `infer.py mine`, as chains of one document."""
    by_id = {passage.id: passage for passage in (*mined, *question.gold)}
    return [
        Expansion((by_id[anchor],), tuple(by_id[each] for each in found if each in by_id))
        for anchor, found in mined.hits.items()
        if anchor in by_id
    ]


def draw(
    question: Question,
    mined: Sequence[Passage],
    expansions: Sequence[Expansion],
    sampling: ChainSampling,
    seed: int,
    epoch: int,
) -> list[ChainExample]:
    """Sample the examples of one question in one epoch, group by group.

    Args:
        question: With its gold passages and candidates.
        mined: Hard negatives, for chains that no search has extended.
        expansions: What searches met for the question; of two with the same chain, the last counts.
        sampling: How.
        seed: Of the run.
        epoch: Number of the epoch.

    Returns:
        Examples; empty if the question has no gold or no noise passage.
    """
    rng = random.Random(f"chains/{seed}/{epoch}/{question.id}")
    source = _Source(question, mined, expansions, sampling, rng)
    if not source.gold or not source.has_noise:
        return []
    chains = [tuple(rng.sample(source.gold, length)) for length in range(source.longest + 1)]
    chains += [source.noise_chain() for _ in range(sampling.noise_chains)]
    if sampling.chains_per_question is not None and len(chains) > sampling.chains_per_question:
        chains = rng.sample(chains, sampling.chains_per_question)
    return [
        ChainExample(question, (*chain, candidate), _kind(question, chain, candidate), group)
        for group, chain in enumerate(chains)
        for candidate in source.candidates(chain)
    ]


class _Source:
    """Where one question's gold and noise passages come from."""

    def __init__(
        self,
        question: Question,
        mined: Sequence[Passage],
        expansions: Sequence[Expansion],
        sampling: ChainSampling,
        rng: random.Random,
    ) -> None:
        self.sampling, self.rng = sampling, rng
        self.gold, self.own = list(question.gold), noise_of(question)
        self.support = set(question.support)
        self.mined = self._noise_among(mined)
        self.of_chain = {_ids(each.chain): self._noise_among(each.candidates) for each in expansions}
        self.off_gold = [each.chain for each in expansions if not _ids(each.chain) <= self.support]
        self.longest = min(len(self.gold), sampling.most_documents - 1)  # the last place is the candidate's

    @property
    def has_noise(self) -> bool:
        return bool(self.own or self.mined)

    def noise_chain(self) -> tuple[Passage, ...]:
        """A chain with a noise passage: one that the beam has met, or gold passages around one."""
        met = [chain for chain in self.off_gold if len(chain) < self.sampling.most_documents]
        if met and self.rng.random() < self.sampling.mined_share:
            return self.rng.choice(met)
        chain = self.rng.sample(self.gold, self.rng.randrange(self.longest))
        chain.insert(self.rng.randint(0, len(chain)), self._noise(self.mined))
        return tuple(chain)

    def candidates(self, chain: tuple[Passage, ...]) -> Iterator[Passage]:
        """What a chain is extended by: a gold passage that it lacks, different noise passages, its end."""
        lacking = [passage for passage in self.gold if passage.id not in _ids(chain)]
        if lacking:
            yield self.rng.choice(lacking)
        taken = set(_ids(chain))
        hard = self.of_chain.get(_ids(chain)) or self.mined
        for _ in range(4 * self.sampling.candidates):  # tries: a small pool may have too few
            passage = self._noise(hard)
            if passage.id not in taken and len(taken) - len(chain) < self.sampling.candidates:
                taken.add(passage.id)
                yield passage
        if chain:
            yield END

    def _noise(self, hard: Sequence[Passage]) -> Passage:
        easy = self.own or self.mined
        return self.rng.choice(hard if hard and self.rng.random() < self.sampling.mined_share else easy)

    def _noise_among(self, passages: Sequence[Passage]) -> list[Passage]:
        return [passage for passage in passages if passage.id not in self.support]


def _kind(question: Question, chain: Sequence[Passage], candidate: Passage) -> Kind:
    """The label of an extension of a chain."""
    gold, ids = set(question.support), _ids(chain)
    if candidate is END:
        return "complete" if ids == gold and not question.unshipped_support else "incomplete"
    if not ids <= gold:
        return "noise"
    return "gold" if candidate.id in gold else "gold_noise"


def _ids(passages: Sequence[Passage]) -> frozenset[str]:
    return frozenset(passage.id for passage in passages)
