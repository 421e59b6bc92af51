"""Tasks of a corpus: about which passages, and for which answer candidates, questions are drafted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from common.answer_metrics import has_answer
from common.errors import DataError
from common.records import Passage
from harness.synthesis.candidates import answer_candidates
from harness.synthesis.drafts import DraftTask
from harness.synthesis.links import Links, find_links, split_passages


@dataclass(frozen=True)
class Plan:
    """The tasks of every split, in the order in which they are worked on, and the split of every passage."""

    tasks: dict[str, list[DraftTask]]
    split_of: dict[str, str]  # by passage id
    links: int  # ordered pairs of linked passages


def plan_tasks(
    passages: Sequence[Passage], hops: int, per_passage: int, shares: Mapping[str, float], seed: int
) -> Plan:
    """The tasks of a corpus.

    First one about each passage, or pair of linked passages, in random order, then a second, ... A passage without a
    candidate gets one task with an empty answer.

    Args:
        passages: The corpus.
        hops: 1: tasks about single passages. 2: about pairs of passages of one split, of which the first mentions the
            title of the second; the answer stands in the second alone.
        per_passage: Maximum tasks about a passage or pair.
        shares: The share of each split in the passages.
        seed: Of the splits, of the order, and of the choice of candidates.

    Raises:
        DataError: If there is no task.
    """
    links = find_links(passages)
    splits = split_passages(passages, links, shares, seed)
    tasks: dict[str, list[DraftTask]] = {}
    for split in shares:
        members = [number for number, own in enumerate(splits) if own == split]
        groups = _groups(passages, links, members, splits, hops)
        Random(f"{seed}/tasks/{split}").shuffle(groups)
        drawn = [_tasks_about(passages, links, group, per_passage, seed) for group in groups]
        tasks[split] = [each[turn] for turn in range(per_passage) for each in drawn if turn < len(each)]
    if not any(tasks.values()):
        raise DataError(
            f"None of the {len(passages):,} passages mentions the title of another one of its split, so there are no "
            "pairs to ask about: give a corpus with titles, or --hops 1."
        )
    return Plan(tasks, {p.id: split for p, split in zip(passages, splits, strict=True)}, sum(map(len, links)))


def _groups(
    passages: Sequence[Passage], links: Links, members: Sequence[int], splits: Sequence[str], hops: int
) -> list[tuple[int, ...]]:
    """The passages, or pairs of passages, of one split that tasks are about."""
    if hops == 1:
        return [(number,) for number in members]
    return [
        (number, other)
        for number in members
        if passages[number].title
        for other in links[number]
        if splits[other] == splits[number]
    ]


def _tasks_about(
    passages: Sequence[Passage], links: Links, group: tuple[int, ...], most: int, seed: int
) -> list[DraftTask]:
    chosen = tuple(passages[number] for number in group)
    *first, last = chosen
    candidates = [
        answer
        for answer in answer_candidates(last, links[group[-1]].values())
        if not any(has_answer(f"{passage.title} . {passage.text}", [answer]) for passage in first)
    ]
    Random(f"{seed}/{'/'.join(passage.id for passage in chosen)}").shuffle(candidates)
    return [DraftTask(chosen, answer, number) for number, answer in enumerate(candidates[:most] or [""])]
