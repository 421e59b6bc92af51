"""A judge's verdicts on one system, or on several, for a report.

Shape legend: N questions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from harness.evaluation.judge import Verdict
from harness.evaluation.page import QuestionCase
from harness.evaluation.tables import ReportTable


@dataclass(slots=True)
class Judgements:
    """A judge's verdicts. All lists and arrays have one entry per question."""

    tables: list[ReportTable]
    facts: list[str] = field(default_factory=list)
    values: dict[str, NDArray[np.float64]] = field(default_factory=dict)  # row -> (N,) in its unit, NaN: undefined
    reasons: dict[str, str] = field(default_factory=dict)  # row -> why it has no value
    verdicts: dict[str, list[Verdict]] = field(default_factory=dict)  # what was judged -> its verdicts
    cases: Sequence[Sequence[QuestionCase]] = ()  # for the page
    records: Sequence[Mapping[str, object]] = ()  # for questions.jsonl
    record: dict[str, object] = field(default_factory=dict)  # for report.json

    def cases_of(self, number: int) -> Sequence[QuestionCase]:
        """The tables about one question."""
        return self.cases[number] if self.cases else ()
