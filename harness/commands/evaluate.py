"""`infer.py evaluate`: measure a system on a question file."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.answer_metrics import Normalization
from common.backends import Backend, chosen
from common.errors import ArtifactError, UserError
from common.files import whole_folder
from common.outputs import partial_folder
from common.progress import say, say_facts
from common.ranges import PositiveInt
from harness.evaluation.judge import Judge
from harness.evaluation.paper_figures import Paper
from harness.evaluation.question_files import QuestionFiles
from harness.interfaces import System
from harness.runtime.journal import remove_saved
from harness.runtime.loading import load
from harness.runtime.long_questions import cut_passages

if TYPE_CHECKING:
    from common.records import Question
    from harness.evaluation.engine import MeasuredSystem
    from harness.evaluation.settings import Settings
    from harness.evaluation.study import Study


def evaluate(
    system: System,
    out: Path,
    study: dict[str, Any] | None = None,
    studies: bool = True,
    backend: Backend = "torch",
    **shared: Any,
) -> None:
    """Measure a system: its answers, its evidence, its costs, and what its paper measures.

    Writes report.md, report.csv, report.json, report.html (tables, plots, and a browser of the questions),
    questions.jsonl, run.trec, qrels.trec and plots. An interrupted evaluation resumes: run it again.

    With several --config, one per system, all of them answer the same questions; OUT then has a comparison with paired
    differences to the first, and one folder per system.

    Args:
        system: The system; --run FILE scores another program's run in its place.
        out: Folder for the report; an earlier report there is replaced.
        study: Options of the study of the system's own paper, such as --study.rows '[QDC,CFS]'; an unknown one lists
            all.
        studies: Whether to measure what the paper of the system measures; false: only what every system has, and
            options of studies do nothing.
        backend: What computes encoders that are trained parts: torch, or onnx: ONNX Runtime on the CPU, from the export
            in the folder `onnx` beside their serving folder.
        shared: See `files_and_settings`.
    """
    files, settings = files_and_settings(out, **shared)
    from harness.evaluation.report import OUTPUT
    from harness.evaluation.study import build

    own = build(system, "study", study)
    files.check()
    OUTPUT.check_writable(out)
    with chosen(backend):
        load(settings.judge, system)
    with report_folder(out, settings) as folder:
        measured = evaluate_into(folder, system, own if studies else None, files, settings)
    measured.failed.check()


def files_and_settings(
    out: Path,
    normalization: Normalization | None = None,
    paper: Paper | None = None,
    ks: tuple[PositiveInt, ...] = (1, 5, 10, 20),
    resamples: PositiveInt = 10_000,
    seed: int = 0,
    judge: Judge | None = None,
    memo: Path | None = None,
    **questions: Any,
) -> "tuple[QuestionFiles, Settings]":
    """The question files of an evaluation, and its settings.

    Args:
        out: The report, or the fitted file; resumable results lie beside it.
        normalization: How answers are normalized before they are compared; the table of answers has all of them.
            Without it squad, or characters if most gold answers are in a script without blanks between words.
        paper: Print the paper's published results for this data set beside ours.
        ks: The k of recall@k.
        resamples: Number of bootstrap resamples.
        seed: Of the bootstrap.
        judge: A language model that judges answers and passages: --judge.llm with a class or a file, as --llm takes it.
        memo: Folder that keeps what the parts of a study's rows compute, for further evaluations; if omitted, it is
            deleted with the finished report.
        questions: See `QuestionFiles`.

    Raises:
        UserError: If the k of recall@k are not increasing, no file is named, the layout is unknown, `missing_gold`
            does nothing, or the memo's folder is replaced or removed at the end.
    """
    if not ks or list(ks) != sorted(set(ks)):
        raise UserError(f"ks is {list(ks)}; it must be increasing numbers, such as [1,5,10,20].")
    files = QuestionFiles(**questions).recognized()
    from harness.evaluation.settings import Bootstrap, Settings

    partial = partial_folder(out)
    replaced = out.resolve(), partial.resolve()
    if memo is not None and (memo.is_file() or any(memo.resolve().is_relative_to(each) for each in replaced)):
        raise UserError(
            f"--memo {memo} must be a folder outside --out {out} and {partial}, which are replaced or removed."
        )
    named, by_script, bootstrap = normalization or "squad", normalization is None, Bootstrap(resamples, seed)
    return files, Settings(
        files.layout, named, tuple(ks), paper, bootstrap, partial, memo, judge, files.min_grade, by_script
    )


@contextmanager
def report_folder(out: Path, settings: "Settings") -> Iterator[Path]:
    """A folder that becomes the report when all is written; resumable results are then removed, the report printed.

    Args:
        out: The report.
        settings: Of the evaluation.
    """
    from harness.evaluation.report import OUTPUT

    with OUTPUT.locked(out):
        if settings.judge is not None:
            settings.judge.verdicts = settings.shared_memo().of("verdicts", settings.judge)
        with whole_folder(out) as folder:
            yield folder
        remove_saved(settings.partial)
        print((out / "report.md").read_text(encoding="utf-8"))
        say(f"{out}: {', '.join(sorted(path.name for path in out.iterdir()))}.")


def evaluate_into(
    folder: Path, system: System, study: "Study | None", files: QuestionFiles, settings: "Settings"
) -> "MeasuredSystem":
    """Measure one system and write its report into a folder.

    Args:
        folder: Exists already.
        system: The system.
        study: The system's own; None if it has none.
        files: The questions.
        settings: Of the evaluation; resumable results are kept in its folder.
    """
    from harness.evaluation.engine import measure
    from harness.evaluation.report import index_facts, model_facts, write_report

    asked = files.read(system)
    settings = settings.for_questions(asked.questions)
    absent, gold_facts = _gold_in_index(system, study, asked.questions)
    facts = [*asked.facts, *gold_facts]
    say_facts(facts if asked.read > len(asked.questions) else facts[1:])
    measured = measure(system, asked.questions, study, settings)
    told = [*measured.failed.facts, *cut_passages(system)]
    measured.facts, measured.read = [*facts, *told, *index_facts(system), *model_facts(system)], asked.read
    write_report(folder, measured, system, files, settings, absent)
    return measured


def _gold_in_index(
    system: System, study: "Study | None", questions: "Sequence[Question]"
) -> tuple[int | None, list[str]]:
    """The number of gold passages that the index lacks, None if that is unknown; and a line on them.

    Raises:
        ArtifactError: If it holds none of them and the study measures recall of gold passages.
    """
    from harness.retrievers.corpora import absent_gold, gold_of

    needed = getattr(study, "needs_gold", False)
    known = [question for question in questions if question.support and not question.gold.titles]
    gold = gold_of(known)
    try:
        absent = absent_gold(system, gold)
    except ArtifactError as error:  # allowed elsewhere: an index of the same articles, cut into other passages
        if needed:
            raise
        return None, [f"Note: {str(error).rstrip('.')}"]
    if not absent:
        return None if absent is None else 0, []
    return len(absent), [f"{len(absent)} of {len(gold)} gold passages are not in the index and count as missed"]
