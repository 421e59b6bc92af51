"""`infer.py tune`: fit what inference reads from a file, on validation questions."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.answer_metrics import Normalization
from common.errors import UserError
from common.progress import say_facts
from harness.commands.evaluate import files_and_settings
from harness.interfaces import System
from harness.runtime.journal import remove_saved

if TYPE_CHECKING:
    from harness.evaluation.study import Tuning


def tune(
    system: System,
    out: Path,
    normalization: Normalization | None = None,
    tuning: dict[str, Any] | None = None,
    memo: Path | None = None,
    **questions: Any,
) -> None:
    """Fit the options, weights, selection or temperature that a system reads from a file, on validation questions.

    Prints what was chosen. An interrupted run resumes: run it again.

    Args:
        system: The system.
        out: File for what is fitted; one of an earlier run is replaced.
        normalization: How answers are normalized before they are compared; without it as in evaluate.
        tuning: Options of what is fitted for this system, such as --tuning.ks '[3,4]'; an unknown one lists all.
        memo: Folder that keeps what is computed for the fit, such as pair scores, for further fits and evaluations.
        questions: See `QuestionFiles`.
    """
    from harness.evaluation.engine import answers_after
    from harness.evaluation.study import build, word_of
    from harness.runtime.failures import FailedQuestions, failure_of, telling_what_is_kept
    from harness.runtime.long_questions import cut_passages

    fitting: Tuning | None = build(system, "tuning", tuning)
    if fitting is None:
        raise UserError(f"{word_of(system)} has nothing that is fitted on validation questions.")
    files, settings = files_and_settings(
        out, normalization, paper=None, ks=(1,), resamples=1, seed=0, judge=None, memo=memo, **questions
    )
    with fitting.output.locked(out):
        asked = files.read(system)
        say_facts(asked.facts)
        settings, failed = settings.for_questions(asked.questions), FailedQuestions()
        try:
            with telling_what_is_kept("What its parts have computed is kept"):
                told = fitting.tune(system, asked.questions, out, settings)
        except Exception as error:
            answers = answers_after(error, system, asked.questions, settings)
            failed.add(asked.questions, answers)
            kept = [question for question, each in zip(asked.questions, answers, strict=True) if not failure_of(each)]
            told = fitting.tune(system, kept, out, settings)
        remove_saved(settings.partial)
    say_facts(cut_passages(system))
    print("\n".join(f"{out}: {line}." for line in told))
    failed.check()
