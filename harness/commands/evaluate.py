"""`infer.py evaluate`: measure a system on a question file."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.answer_metrics import Normalization
from common.errors import ArtifactError, UserError
from common.files import whole_folder
from common.progress import say
from common.ranges import OpenShare, PositiveInt
from harness.commands.file_lists import listed
from harness.evaluation.judge import Judge
from harness.evaluation.paper_figures import Paper
from harness.evaluation.question_files import Gold, MissingGold, QuestionFiles
from harness.interfaces import LanguageModel, System
from harness.readers.llm import read_by
from harness.runtime.journal import remove_saved
from harness.runtime.loading import load
from harness.runtime.long_questions import cut_passages

if TYPE_CHECKING:
    from common.records import Question
    from harness.evaluation.engine import MeasuredSystem
    from harness.evaluation.study import Settings, Study


def evaluate(
    system: System,
    questions: list[str] | str,
    out: Path,
    layout: str = "auto",
    limit: PositiveInt | None = None,
    validation_split: OpenShare | None = None,
    gold: Gold = "auto",
    missing_gold: MissingGold = "left_out",
    exclude_self: bool = False,
    normalization: Normalization | None = None,
    paper: Paper | None = None,
    ks: tuple[PositiveInt, ...] = (1, 5, 10, 20),
    study: dict[str, Any] | None = None,
    resamples: PositiveInt = 10_000,
    seed: int = 0,
    llm: LanguageModel | None = None,
    judge: Judge | None = None,
    studies: bool = True,
    strict: bool = False,
    memo: Path | None = None,
) -> None:
    """Measure a system: its answers, its evidence, its costs, and what its paper measures.

    Writes report.md, report.csv, report.json, report.html (tables, plots, and a browser of the questions),
    questions.jsonl and plots. An interrupted evaluation resumes: run it again.

    With several --config, one per system, all of them answer the same questions; OUT then has a comparison with paired
    differences to the first, and one folder per system.

    Args:
        system: The system.
        questions: Official data-set file, or Hugging Face datasets id; several as '[FILE, FILE]', of which a question
            in two is asked once.
        out: Folder for the report; an earlier report there is replaced.
        layout: Layout of the file; auto: by the fields of its first row (docs/data.md).
        limit: Use only this many questions, from the beginning.
        validation_split: Of a training file, use only the questions that a training holds out whose
            data.validation_fraction this is; for choosing options.
        gold: Where gold passages come from: file (those that it ships), index (looked up there by title or by the
            corpus's id), or auto: index if the file names them by ids, else file.
        missing_gold: With gold index, the treatment of a question that has gold passages outside the index: left_out,
            or missed (such passages count as not found, as in BEIR).
        exclude_self: Leave the passage that is the question itself out of what is retrieved: the one with the
            question's id in the corpus, or with its text, as in ArguAna; k passages are still retrieved.
        normalization: How answers are normalized before they are compared; the table of answers has all of them.
            Without it squad, or characters if most gold answers are in a script without blanks between words.
        paper: Print the paper's published results for this data set beside ours.
        ks: The k of recall@k.
        study: Options of the study of the system's own paper, such as --study.rows '[QDC,CFS]'; an unknown one lists
            all.
        resamples: Number of bootstrap resamples.
        seed: Of the bootstrap.
        llm: Language model that reads, in the place of the system's reader: a class, or a file such as
            configs/llm/openai.yaml.
        judge: A language model that judges answers and passages: --judge.llm with a class or a file, as --llm takes it.
        studies: Whether to measure what the paper of the system measures; false: only what every system has, and
            options of studies do nothing.
        strict: Whether an unusual row (empty, null, repeated, without gold) is an error; else they are counted.
        memo: Folder that keeps what the parts of a study's rows compute, for further evaluations; if omitted, it is
            deleted with the finished report.
    """
    read_by(system, llm)
    files, settings = files_and_settings(
        out,
        questions,
        layout,
        limit,
        validation_split,
        gold,
        normalization,
        ks,
        paper,
        resamples,
        seed,
        exclude_self,
        missing_gold,
        strict,
        memo,
    )
    from harness.evaluation.report import OUTPUT
    from harness.evaluation.study import build

    own = build(system, "study", study, out, layout)
    files.check()
    OUTPUT.check_writable(out)
    load(judge, system)
    with report_folder(out, judge, settings) as folder:
        measured = evaluate_into(folder, system, own if studies else None, files, settings, judge)
    measured.failed.check()


def files_and_settings(
    out: Path,
    questions: list[str] | str,
    layout: str,
    limit: int | None,
    validation_split: float | None,
    gold: Gold,
    normalization: Normalization | None,
    ks: Sequence[int] = (1,),
    paper: Paper | None = None,
    resamples: int = 1,
    seed: int = 0,
    exclude_self: bool = False,
    missing_gold: MissingGold = "left_out",
    strict: bool = False,
    memo: Path | None = None,
) -> "tuple[QuestionFiles, Settings]":
    """The question files of an evaluation that writes `out`, and its settings; resumable results lie beside `out`.

    Raises:
        UserError: If the k of recall@k are not increasing, no file is named, the layout is unknown, `missing_gold`
            does nothing, or the memo's folder is replaced or removed at the end.
    """
    if missing_gold == "missed" and gold != "index":
        raise UserError("missing_gold missed is for gold passages of the index: type --gold index too, or omit it.")
    if not ks or list(ks) != sorted(set(ks)):
        raise UserError(f"ks is {list(ks)}; it must be increasing numbers, such as [1,5,10,20].")
    from datamodules.formats.recognition import AUTO, check_layout, layout_of, name_of

    check_layout(layout, questions=True)
    sources = listed(questions)
    if layout == AUTO and len(known := {name_of(layout_of(layout, source, questions=True)) for source in sources}) == 1:
        (layout,) = known
    from harness.evaluation.answer_scores import Bootstrap
    from harness.evaluation.study import Settings, partial_folder

    chosen = tuple(sources), layout, limit, validation_split, gold, exclude_self, missing_gold, strict
    files = QuestionFiles(*chosen)
    bootstrap = Bootstrap(resamples, seed)
    named, partial = normalization or "squad", partial_folder(out)
    replaced = out.resolve(), partial.resolve()
    if memo is not None and (memo.is_file() or any(memo.resolve().is_relative_to(each) for each in replaced)):
        raise UserError(
            f"--memo {memo} must be a folder outside --out {out} and {partial}, which are replaced or removed."
        )
    by_script = normalization is None
    return files, Settings(layout, named, tuple(ks), paper, bootstrap, partial, memo=memo, by_script=by_script)


@contextmanager
def report_folder(out: Path, judge: Judge | None, settings: "Settings") -> Iterator[Path]:
    """A folder that becomes the report when all is written; resumable results are then removed, the report printed.

    Args:
        out: The report.
        judge: Keeps its verdicts beside it; None for none.
        settings: Of the evaluation.
    """
    from harness.evaluation.report import OUTPUT

    with OUTPUT.locked(out):
        if judge is not None:
            judge.keep_in(settings.partial)
        with whole_folder(out) as folder:
            yield folder
        remove_saved(settings.partial)
        print((out / "report.md").read_text(encoding="utf-8"))
        say(f"{out}: {', '.join(sorted(path.name for path in out.iterdir()))}.")


def evaluate_into(
    folder: Path,
    system: System,
    study: "Study | None",
    files: QuestionFiles,
    settings: "Settings",
    judge: Judge | None = None,
) -> "MeasuredSystem":
    """Measure one system and write its report into a folder.

    Args:
        folder: Exists already.
        system: The system.
        study: The system's own; None if it has none.
        files: The questions.
        settings: Of the evaluation; resumable results are kept in its folder.
        judge: Judges the answers and passages; None for none.
    """
    from harness.evaluation.engine import measure
    from harness.evaluation.judging.system import judge_measured
    from harness.evaluation.report import index_facts, model_facts, write_report

    asked = files.read(system)
    settings = settings.for_questions(asked.questions)
    absent, gold_facts = _gold_in_index(system, study, asked.questions)
    facts = [*asked.facts, *gold_facts]
    for fact in facts if asked.read > len(asked.questions) else facts[1:]:
        say(f"{fact}.")
    measured = measure(system, asked.questions, study, replace(settings, judge=judge))
    judge_measured(judge, measured, settings)
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
    from harness.retrievers.corpora import gold_not_in_index

    needed = getattr(study, "needs_gold", False)
    known = [question for question in questions if question.support and not question.unshipped_support]
    try:
        absent = gold_not_in_index(system, known)
    except ArtifactError as error:  # allowed elsewhere: an index of the same articles, cut into other passages
        if needed:
            raise
        return None, [f"Note: {str(error).rstrip('.')}"]
    gold = {id_ for question in known for id_ in question.support}
    return absent, [f"{absent} of {len(gold)} gold passages are not in the index and count as missed"] * bool(absent)
