"""`infer.py expand`: write the chains that a beam extends on training questions, as negatives of the next training."""

from pathlib import Path

from common.checks import check_at_least
from common.errors import UserError
from common.outputs import OutputFile
from datamodules.formats.expansions import is_expansions
from harness.interfaces import ChainExpander

EXPANSIONS = OutputFile("`infer.py expand`", "a file of a beam's expansions", is_expansions)
QUESTIONS_AT_ONCE = 32  # the unit in which an interrupted run resumes


def expand(
    strategy: ChainExpander,
    questions: list[str] | str,
    out: Path,
    layout: str = "hotpotqa",
    candidates: int = 8,
    limit: int | None = None,
) -> None:
    """Write, for each training question, the chains that the beam extends, and their best scored candidates.

    A classifier's next training draws its negatives from them (data.expansions): what the present one takes for an
    answer. Gold passages stand among them; training labels them. A stopped run resumes: type it again.

    Args:
        strategy: A beam with the present classifier, one with `expansions`.
        questions: Official training file, several as '[FILE, FILE]'; never the file you evaluate on.
        out: JSON Lines file to write, replaced if it holds expansions.
        layout: Layout of the files: which data set's official format they have.
        candidates: Most passages of each chain, best scored first.
        limit: Use only this many questions, from the beginning.
    """
    check_expand(questions, out, layout, candidates, limit)
    from itertools import islice

    from common.progress import say
    from common.records import Question
    from datamodules.formats.expansions import to_row, write_expansions
    from datamodules.formats.reading import read_questions
    from harness.evaluation.serialization import digest
    from harness.retrievers.corpora import gold_not_in_index
    from harness.runtime.journal import remove_saved
    from harness.runtime.provenance import configuration, hardware
    from harness.runtime.resumable import ResumableBatches

    partial = out.parent / f"{out.name}.partial"
    with EXPANSIONS.locked(out):
        sources = [questions] if isinstance(questions, str) else questions
        asked = list(islice((question for source in sources for question in read_questions(layout, source)), limit))
        gold_not_in_index(strategy.retriever, asked, count=False)
        configured = configuration(strategy)
        depends_on = {
            "strategy": configured, "questions": digest(asked), "candidates": candidates, "hardware": hardware()
        }  # fmt: skip
        saved = ResumableBatches(None if configured is None else partial / "expansions.jsonl", depends_on)

        def rows(batch: list[Question]) -> list[dict[str, object]]:
            found = strategy.expansions([question.text for question in batch], candidates)
            return [to_row(question.id, each) for question, each in zip(batch, found, strict=True)]

        batches = [asked[start : start + QUESTIONS_AT_ONCE] for start in range(0, len(asked), QUESTIONS_AT_ONCE)]
        written = [row for result in saved.run(batches, rows, "expanding, batches") for row in result]
        write_expansions(out, written)
        remove_saved(partial)
    say(f"{out}: {sum(len(row['expansions']) for row in written):,} chains of {len(written):,} questions.")


def check_expand(questions: list[str] | str, out: Path, layout: str, candidates: int, limit: int | None) -> None:
    """Check numbers, files and folders; called before anything is loaded.  Raises UserError or a subclass."""
    from datamodules.formats.reading import check_questions

    check_at_least(1, candidates=candidates, limit=limit)
    if not questions:
        raise UserError("questions names no file. Type --questions FILE; several files as '[FILE, FILE]'.")
    check_questions(layout, [questions] if isinstance(questions, str) else questions)
    EXPANSIONS.check_writable(out)
