"""Sampling of DR-RAG's training triples (Eq. 2).

    C(q, d*, d*) positive,   C(q, d*, dΔ) negative,   C(q, dΔ, dΔ) negative      (d* gold, dΔ noise)

Sampling depends only on (seed, epoch, question id): it is the same on every rank and after a resume.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Literal, NamedTuple

from common.gold_copies import GoldCopies
from common.ranges import PositiveFloat, PositiveInt, Share
from common.records import Passage, Question, nfkc
from datamodules.formats.mined_negatives import Hits

Kind = Literal["gold_gold", "gold_noise", "noise_noise"]


@dataclass(frozen=True, slots=True)
class Triple:
    """A training example: a question and an ordered pair of passages; positive if both are gold."""

    question: Question
    first: Passage
    second: Passage
    kind: Kind

    @property
    def positive(self) -> bool:
        return self.kind == "gold_gold"

    @property
    def texts(self) -> tuple[str, Passage, Passage]:
        """Arguments of `models.drrag.triple_tokenizer.TripleEncoder`."""
        return self.question.text, self.first, self.second


@dataclass(frozen=True)
class Sampling:
    """How triples are sampled from a question.

    Args:
        negatives_per_positive: Negatives per positive; 1 in the paper.
        mixed_share: Share of the negatives that are (q, d*, dΔ) or (q, dΔ, d*); the others are (q, dΔ, dΔ).
        hard_negative_share: Share of noise passages from the mined ones, if the question has any; the others are the
            question's candidates in its file.
        positives_per_question: Maximum ordered gold pairs per question and epoch; all when None.
        paired_share: Share of the negatives that are a passage and, in this order, one that the search with the
            question and that passage found, as C(q, d_i, d') is used at inference. Where mined files hold such pairs; 0
            leaves them out.
    """

    negatives_per_positive: PositiveFloat = 1.0
    mixed_share: Share = 0.5
    hard_negative_share: Share = 0.5
    positives_per_question: PositiveInt | None = None
    paired_share: Share = 0.0


class Noise(NamedTuple):
    """The passages from which a question's negatives are drawn."""

    own: list[Passage]  # candidates of its file
    mined: list[Passage]
    copies: int  # passages that are none of these because they have a gold passage's text


def noise_of(question: Question, mined: Sequence[Passage]) -> Noise:
    """The passages of a question that are not gold.

    Neither by id, nor by the title of an unshipped gold passage, nor by a gold passage's text (`common.gold_copies`).

    Args:
        question: With its gold passages and candidates.
        mined: Its mined passages.
    """
    unshipped = {nfkc(title) for title in question.gold.titles}
    own = [p for p in question.passages if p.id not in question.support and nfkc(p.title) not in unshipped]
    mined = [p for p in mined if p.id not in question.support]
    copies = GoldCopies.of(question.gold_passages)
    copied = {passage.id for passage in (*own, *mined) if passage in copies}
    return Noise([p for p in own if p.id not in copied], [p for p in mined if p.id not in copied], len(copied))


def found_pairs(
    question: Question, mined: Sequence[Passage], hits: Hits
) -> tuple[list[tuple[Passage, Passage]], list[tuple[Passage, Passage]]]:
    """Negative pairs (d_i, d') where d' was found with d_i: those with one gold passage, and those with none."""
    by_id = {passage.id: passage for passage in (*mined, *question.gold_passages)}
    gold = {passage.id for passage in question.gold_passages}
    pairs = [(d, other) for d, found in hits.items() for other in found if d in by_id and other in by_id and d != other]
    golds = [(by_id[d], by_id[other], (d in gold) + (other in gold)) for d, other in pairs]
    return [(d, other) for d, other, count in golds if count == 1], [
        (d, other) for d, other, count in golds if not count
    ]


def draw(
    question: Question, mined: Sequence[Passage], sampling: Sampling, seed: int, epoch: int, hits: Hits | None = None
) -> list[Triple]:
    """Sample the triples of one question in one epoch.

    Both orders of every gold pair are positives (or a random subset of them); negatives follow as `sampling` says, in
    random order but for the pairs in `hits`.  Fractional counts are rounded randomly, so that shares hold on average.

    Args:
        question: With its gold passages and candidates.
        mined: Its mined passages.
        sampling: How many triples of which kinds.
        seed: Of the draws.
        epoch: Also a part of the seed.
        hits: Which passages were found with which; see `Mined`.

    Returns:
        Triples; empty if the question has fewer than two gold passages or no noise passage.
    """
    rng = random.Random(f"{seed}/{epoch}/{question.id}")
    gold = list(question.gold_passages)
    own, mined, _ = noise_of(question, mined)
    positives = list(permutations(gold, 2))
    if not positives or not (own or mined):
        return []
    if sampling.positives_per_question is not None and len(positives) > sampling.positives_per_question:
        positives = rng.sample(positives, sampling.positives_per_question)
    triples = [Triple(question, first, second, "gold_gold") for first, second in positives]

    def noise() -> Passage:
        pool = mined if mined and (not own or rng.random() < sampling.hard_negative_share) else own
        return rng.choice(pool)

    with_gold, without = found_pairs(question, mined, hits or {}) if sampling.paired_share else ([], [])
    negatives = _round(len(positives) * sampling.negatives_per_positive, rng)
    mixed = _round(negatives * sampling.mixed_share, rng)
    for number in range(negatives):
        found = with_gold if number < mixed else without
        if found and rng.random() < sampling.paired_share:
            triples.append(Triple(question, *rng.choice(found), "gold_noise" if number < mixed else "noise_noise"))
        elif number < mixed:
            pair: list[Passage] = [rng.choice(gold), noise()]
            rng.shuffle(pair)
            triples.append(Triple(question, pair[0], pair[1], "gold_noise"))
        else:
            first, second = noise(), noise()
            for _ in range(8):  # try to find a different second passage
                if second.id != first.id:
                    break
                second = noise()
            triples.append(Triple(question, first, second, "noise_noise"))
    return triples


def _round(value: float, rng: random.Random) -> int:
    whole = int(value)
    return whole + (rng.random() < value - whole)
