"""`infer.py evaluate`: measure a system on a question file."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.answer_metrics import NORMALIZATIONS, Normalization
from common.checks import check_at_least, check_between_0_and_1, check_choice
from common.errors import ArtifactError, UserError
from common.files import whole_folder
from common.progress import say, track
from harness.evaluation.judge import Judge
from harness.evaluation.paper_figures import Paper
from harness.interfaces import LanguageModel, Strategy
from harness.readers.llm import read_by

if TYPE_CHECKING:
    from common.records import Question
    from harness.evaluation.engine import Measured
    from harness.evaluation.study import Settings, Study


def evaluate(
    strategy: Strategy,
    questions: str,
    out: Path,
    layout: str = "hotpotqa",
    limit: int | None = None,
    held_out: float | None = None,
    normalization: Normalization = "squad",
    paper: Paper | None = None,
    ks: tuple[int, ...] = (1, 5, 10, 20),
    study: dict[str, Any] | None = None,
    resamples: int = 10_000,
    seed: int = 0,
    llm: LanguageModel | None = None,
    judge: Judge | None = None,
    studies: bool = True,
) -> None:
    """Measure a system: its answers, its evidence, its costs, and what its paper measures.

    Writes report.md, report.csv, report.json, report.html (tables, plots, and a browser of the questions), questions.jsonl and
    plots.  An interrupted evaluation resumes: run it again.

    With several --config, one per system, all of them answer the same questions; OUT then has a comparison with paired
    differences to the first, and one folder per system.

    Args:
        strategy: The system.
        questions: Official data-set file, or Hugging Face datasets id.
        out: Folder for the report; an earlier report there is replaced.
        layout: Layout of the questions file: which data set's official format it has.
        limit: Use only this many questions, from the beginning.
        held_out: Of a training file, use only the questions that a training holds out whose data.validation_fraction this is; for choosing options.
        normalization: How answers are normalized before they are compared; the table of answers has all three.
        paper: Print the paper's published results for this data set beside ours.
        ks: The k of recall@k.
        study: Options of the study of the system's own paper, such as --study.rows '[QDC,CFS]'; an unknown one lists all.
        resamples: Number of bootstrap resamples.
        seed: Of the bootstrap.
        llm: Language model that reads, in the place of the strategy's reader: a class, or a file such as configs/llm/openai.yaml.
        judge: A language model that judges answers and passages: --judge.llm with a class or a file, as --llm takes it.
        studies: Whether to measure what the paper of the system measures; false: only what every system has, and options of studies do nothing.
    """
    read_by(strategy, llm)
    check_evaluate(strategy, questions, out, layout, limit, held_out, normalization, ks, study, resamples)
    from harness.evaluation.report import OUTPUT
    from harness.evaluation.study import build_study

    settings = settings_of(out, layout, normalization, ks, paper, resamples, seed)
    own = build_study(strategy, study, out, layout) if studies else None
    with OUTPUT.locked(out):
        if judge is not None:
            judge.keep_in(settings.partial)
        with whole_folder(out) as folder:
            evaluate_into(folder, strategy, own, questions, limit, held_out, settings, judge)
        remove_partial(settings.partial)
        print((out / "report.md").read_text(encoding="utf-8"))
        say(f"{out}: {', '.join(sorted(path.name for path in out.iterdir()))}.")


def check_evaluate(
    strategy: Strategy,
    questions: str,
    out: Path,
    layout: str,
    limit: int | None,
    held_out: float | None,
    normalization: str,
    ks: Sequence[int],
    study: dict[str, Any] | None,
    resamples: int,
) -> None:
    """Check numbers, files and folders; called before anything is loaded.  Raises UserError or a subclass."""
    from datamodules.formats.reading import check_questions
    from harness.evaluation.report import OUTPUT
    from harness.evaluation.study import build_study

    if not ks or min(ks) < 1 or list(ks) != sorted(set(ks)):
        raise UserError(f"ks is {list(ks)}; it must be increasing numbers of at least 1, such as [1,5,10,20].")
    check_at_least(1, resamples=resamples)
    check_between_0_and_1(held_out=held_out)
    check_choice(NORMALIZATIONS, normalization=normalization)
    check_questions(layout, [questions], limit)
    build_study(strategy, study, out, layout)
    OUTPUT.check_writable(out)


def settings_of(
    out: Path,
    layout: str,
    normalization: Normalization,
    ks: tuple[int, ...],
    paper: Paper | None,
    resamples: int,
    seed: int,
) -> "Settings":
    """The settings of an evaluation that writes `out`; its resumable results lie beside it."""
    from harness.evaluation.answer_scores import Bootstrap
    from harness.evaluation.study import Settings, partial_folder

    partial = partial_folder(out)
    return Settings(layout, normalization, ks, paper, Bootstrap(resamples, seed), partial)


def evaluate_into(
    folder: Path,
    strategy: Strategy,
    study: "Study | None",
    source: str,
    limit: int | None,
    held_out: float | None,
    settings: "Settings",
    judge: Judge | None = None,
) -> "Measured":
    """Measure one system and write its report into a folder.

    Args:
        folder: Exists already.
        strategy: The system.
        study: The system's own; None if it has none.
        source: The questions file or data set.
        limit: Use only this many questions.
        held_out: Use only the questions that a training holds out whose `validation_fraction` this is; None: all.
        settings: Of the evaluation; resumable results are kept in its folder.
        judge: Judges the answers and passages; None for none.
    """
    from common.held_out import validation_share
    from datamodules.formats.reading import read_questions
    from harness.evaluation.engine import measure
    from harness.evaluation.judging.system import judge_measured
    from harness.evaluation.report import index_facts, model_facts, write_report

    read = track(read_questions(settings.layout, source), None, "reading questions")
    asked = (each for each in read if held_out is None or validation_share(each) < held_out)
    loaded = list(islice(asked, limit))
    if held_out is not None and not loaded:
        raise UserError(f"A training with validation_fraction {held_out:g} holds out none of {source}: raise held_out.")
    # with a gold passage that the file does not ship, recall and the other scores of gold passages are undefined
    usable = [
        each for each in loaded if each.answers or each.gold_segments or (each.support and not each.unshipped_support)
    ]
    if not usable:
        raise UserError(
            f"None of the {len(loaded)} questions has a gold answer or gold passages: choose a file with answers, such as a dev "
            "file."
        )
    skipped = len(loaded) - len(usable)
    absent, gold_facts = _gold_in_index(strategy, study, usable)
    part = "" if held_out is None else f", of which training holds out the share {held_out:g}"
    facts = [
        f"questions: {Path(source).name} ({settings.layout}{part}), {len(usable):,} evaluated, {skipped:,} skipped (no gold answer and no "
        "gold passages)",
        *gold_facts,
    ]
    for fact in facts if skipped else facts[1:]:
        say(f"{fact}.")
    measured = measure(strategy, usable, study, replace(settings, judge=judge))
    judge_measured(judge, measured, settings)
    measured.facts, measured.asked = [*facts, *index_facts(strategy), *model_facts(strategy)], len(loaded)
    write_report(folder, measured, strategy, source, settings, absent)
    return measured


def _gold_in_index(
    strategy: Strategy, study: "Study | None", questions: "Sequence[Question]"
) -> tuple[int | None, list[str]]:
    """The number of gold passages that the index lacks, None if that is unknown; and a line on them.

    Raises:
        ArtifactError: If it holds none of them and the study measures recall of gold passages.
    """
    from harness.retrievers.corpora import gold_not_in_index

    needed = getattr(study, "needs_gold", False)
    known = [question for question in questions if question.support and not question.unshipped_support]
    try:
        absent = gold_not_in_index(strategy, known, count=True)
    except ArtifactError as error:  # allowed elsewhere: an index of the same articles, cut into other passages
        if needed:
            raise
        return None, [f"Note: {str(error).rstrip('.')}"]
    gold = {id_ for question in known for id_ in question.support}
    return absent, [f"{absent} of {len(gold)} gold passages are not in the index and count as missed"] * bool(absent)


def remove_partial(folder: Path) -> None:
    """Remove the resumable results of a finished evaluation."""
    from harness.runtime.journal import remove_saved

    remove_saved(folder)
