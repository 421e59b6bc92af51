"""Study of title expansion: how many passages the second search adds, beside one search for as many passages."""

from collections.abc import Sequence

import numpy as np
from expansion.system import TitleExpansion

from common.ranges import PositiveInt
from common.records import Question
from harness.evaluation.settings import Settings
from harness.evaluation.study import Findings, RowAnswers
from harness.evaluation.tables import Cell, ReportTable
from harness.interfaces import System
from harness.systems.retrieve_read import RetrieveRead

ONE = "one search"


class Study:
    """Compares two searches with one.

    Args:
        plain_k: Passages of the one search; as many as the system's when omitted.
    """

    def __init__(self, plain_k: PositiveInt | None = None) -> None:
        self.plain_k = plain_k

    def rows_of(self, system: TitleExpansion) -> dict[str, System]:
        """The system, and one search."""
        return {"two searches": system, ONE: RetrieveRead(system.retriever, self.plain_k or system.k, system.reader)}

    def measure(
        self, system: TitleExpansion, questions: Sequence[Question], asked: RowAnswers, settings: Settings
    ) -> Findings:
        """Count what the second search adds."""
        added = [
            len({hit.passage.id for hit in ours.evidence} - {hit.passage.id for hit in theirs.evidence})
            for ours, theirs in zip(asked.answers, asked.rows[ONE], strict=True)
        ]
        table = ReportTable(
            "expansion", "Passages that one search does not find", ("per question",), {"added": [Cell(np.mean(added))]}
        )
        return Findings([table], {ONE: asked.rows[ONE]})
