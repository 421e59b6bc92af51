"""The settings that all systems and studies of an evaluation share."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from common.answer_metrics import Normalization, is_unspaced
from common.records import Question
from harness.evaluation.paper_figures import Paper
from harness.runtime.memo import Memo

if TYPE_CHECKING:
    from harness.evaluation.judge import Judge

# their official F1 gives no partial credit for yes and no
YES_NO_LAYOUTS = frozenset({"hotpotqa", "twowiki", "strategyqa"})


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """Options of the bootstrap intervals."""

    resamples: int = 10_000
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of all systems in an evaluation."""

    layout: str
    normalization: Normalization
    ks: tuple[int, ...]
    paper: Paper | None
    bootstrap: Bootstrap
    partial: Path  # folder for resumable results
    memo: Path | None = None  # folder of the memo, where it is kept
    judge: "Judge | None" = None
    min_grade: int | None = None  # the lowest grade of a gold passage
    by_script: bool = False  # whether `for_questions` chooses the normalization

    def shared_memo(self) -> Memo:
        """A memo of one command, kept where `--memo` says or in the folder for resumable results."""
        return Memo(self.memo or self.partial, "--memo" if self.memo else "--out")

    def for_questions(self, questions: Sequence[Question]) -> "Settings":
        """These settings, with the normalization `characters` if nobody named one and most gold answers need it."""
        answered = [question for question in questions if question.answers]
        if self.by_script and 2 * len(unspaced(answered)) > len(answered):
            return replace(self, normalization="characters")
        return self

    @property
    def seconds_of_verdicts(self) -> float:
        """Computing time of the judge's verdicts that were reused from earlier runs."""
        return self.judge.verdicts.seconds_before if self.judge else 0.0

    @property
    def yes_no_rule(self) -> bool:
        """Whether the data set's F1 gives no partial credit for yes and no."""
        return self.layout in YES_NO_LAYOUTS


def unspaced(questions: Sequence[Question]) -> list[Question]:
    """The questions with a gold answer in a script without blanks between words."""
    return [question for question in questions if any(map(is_unspaced, question.answers))]
