"""Records of answering from several sources: the context that a source gives, and which source's answer is chosen.

Standard library only.
"""

from dataclasses import dataclass, field
from typing import Any, Self

from common.records import Passage, Ranked

WEB, GENERATED, NONE = "web", "generated", "none"  # MSRAG's sources: Information-Web, Information-GPT, no retrieval
SOURCES = (WEB, GENERATED, NONE)  # in the order that decides ties


@dataclass(frozen=True, slots=True)
class SourceContext:
    """What one source gives for one question."""

    passages: tuple[Ranked, ...]  # best first; empty if the source has nothing
    missing: str = ""  # why there is nothing, in one line; empty if there is something
    lost: bool = False  # whether the source failed, rather than having nothing on the question
    costs: dict[str, float] = field(default_factory=dict)  # as in `Answer.costs`
    notes: dict[str, object] = field(default_factory=dict)  # as in `Answer.notes`

    @classmethod
    def from_row(cls, row: dict[str, Any]) -> Self:
        """The context that `dataclasses.asdict` made `row` of."""
        passages = tuple(Ranked(Passage.from_row(each["passage"]), each["score"]) for each in row["passages"])
        return cls(**{**row, "passages": passages})


@dataclass(frozen=True, slots=True)
class SelectedSource:
    """Which source's answer is given, and why."""

    source: str
    why: str  # in one line
    # by source, greater is better; only of sources with an answer
    scores: dict[str, float] = field(default_factory=dict)
