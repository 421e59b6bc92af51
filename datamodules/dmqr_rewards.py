"""Rewards of the rewrites that a model in training writes: finds the questions' gold data, searches, and rewards."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from common.errors import DataError, UserError
from common.preferences import Reward
from common.progress import track
from common.records import Question, Ranked, clean
from common.retrieval import Retriever, search_fused
from datamodules.dmqr_recall import asked
from datamodules.examples.data_files import DataFile, QuestionDataFile
from datamodules.formats.row_counts import RowCounts


@dataclass(frozen=True)
class GreedyReward:
    """Searches with rewrites and rewards the results, as `infer.py preferences` does.

    Args:
        retriever: Searches; None if the reward looks at no passages.
        reward: Rewards.
        fused: Whether the question's list is fused with those of the rewrite's queries.
        depth: Passages per query.
    """

    retriever: Retriever | None
    reward: Reward
    fused: bool
    depth: int

    def __call__(self, questions: Sequence[Question], queries: Sequence[Sequence[str]]) -> list[float]:
        """The reward of every question's queries, at least one each.

        All are one search, equal ones are searched once.
        """
        lists = [
            list(dict.fromkeys([clean(question.text), *each] if self.fused else each))
            for question, each in zip(questions, queries, strict=True)
        ]
        return self.reward(questions, queries, self._found(lists))

    def _found(self, lists: Sequence[Sequence[str]]) -> list[Sequence[Ranked]]:
        if self.retriever is None or not self.reward.depth:
            return [()] * len(lists)
        return [each[: self.reward.depth] for each in search_fused(self.retriever, lists, self.depth)]


def check_reward(
    retriever: Retriever | None, reward: Reward | None, gold_questions: Sequence[QuestionDataFile] | None
) -> None:
    """Check that what rewards validation rewrites is given together.

    Raises:
        UserError: If some of it is missing.
    """
    if (reward is None) != (not gold_questions) or (reward is None and retriever is not None):
        raise UserError("data.reward needs data.gold_questions, and data.retriever needs both: give them together.")
    if reward is not None and reward.depth and retriever is None:
        raise UserError("data.reward looks at passages: give data.retriever, too, the one of the preferences.")


def greedy_reward(
    retriever: Retriever | None, reward: Reward, sources: Sequence[DataFile], manifests: Sequence[Mapping[str, Any]]
) -> GreedyReward:
    """Searches as `infer.py preferences` did for these folders, whose manifests say `fused` and `depth`.

    Raises:
        DataError: If it searched differently for two of them.
    """
    ways = [(each.get("fused", True), each.get("depth", reward.depth)) for each in manifests]
    for source, way in zip(sources, ways, strict=True):
        if way != ways[0]:
            shown = [f"fused {str(fused).lower()} and depth {depth}" for fused, depth in (way, ways[0])]
            raise DataError(
                f"{source.path} was rewarded with {shown[0]}, {sources[0].path} with {shown[1]}: give folders of one "
                "way to search, or omit data.reward, data.retriever and data.gold_questions."
            )
    return GreedyReward(retriever, reward, *ways[0])


def read_asked(
    sources: Sequence[QuestionDataFile],
    wanted: Mapping[int, tuple[str, Sequence[str]]],
    reward: Reward,
    counts: RowCounts | None = None,
) -> dict[int, Question]:
    """The wanted questions of these files, compared by text and earlier turns, for which the reward is defined.

    Args:
        sources: Question files.
        wanted: Row -> question and the turns of the dialogue before it, oldest first.
        reward: Says what a question must have.
        counts: Counts what is unusual in the files.

    Returns:
        Row -> question, in the order of the rows.

    Raises:
        DataError: If there is none.
    """
    rows: dict[tuple[str, tuple[str, ...]], list[int]] = {}
    for row, each in wanted.items():
        rows.setdefault(asked(*each), []).append(row)
    found: dict[int, Question] = {}
    reasons: set[str] = set()
    for source in sources:
        for question in track(source.questions(counts), None, f"reading questions from {source.path}"):
            key = asked(question.text, question.history)
            if key not in rows or rows[key][0] in found:
                continue
            if reason := reward.missing(question):
                reasons.add(reason)
            else:
                found.update(dict.fromkeys(rows[key], question))
    if not found:
        raise DataError(
            f"data.gold_questions {[source.path for source in sources]} has none of the {len(rows):,} validation "
            f"questions, such as {min(rows)[0][:80]!r}{', with what the reward needs' * bool(reasons)}"
            f"{''.join(f' ({each})' for each in sorted(reasons))}: name the question files that the preferences were "
            "made of."
        )
    return {row: found[row] for row in sorted(found)}
