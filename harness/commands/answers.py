"""`infer.py answers`: score a strategy's answers (EM, F1, accuracy), and for RE-RAG reproduce its paper's tables."""

import itertools
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from common.checks import check_at_least
from common.errors import ArtifactError, MissingInputError, UserError
from common.files import sha256, whole_folder, write_json, write_text
from common.outputs import OutputFolder, known_files
from common.progress import say, track
from harness.interfaces import Strategy
from harness.runtime.resumable import ResumableBatches, remove_saved
from harness.strategies.drrag import DrRag
from harness.strategies.rerag import ReRag
from models.serving_manifest import MANIFEST

if TYPE_CHECKING:
    from common.records import Answer, Question
    from harness.evaluation.answer_scores import AnswerScores
    from harness.evaluation.rerag.baseline import Baseline
    from harness.evaluation.tables import Table

REPORT = "answers.json"
OUTPUT = OutputFolder(
    "`infer.py answers`",
    "a report",
    known_files(
        REPORT, "answers.csv", "answers.md", "questions.jsonl", "contexts.png", "quality.png", "risk_coverage.png"
    ),
)
QUESTIONS_AT_ONCE = 64
NOTES = """\
Brackets: 95% bootstrap intervals over questions. EM, F1, Acc (the answer contains a gold answer): in per cent; answers and gold
answers are normalized with the stated normalization. Rows marked "paper" are {paper}'s published results, with other retrievers,
corpora, readers and model sizes: compare differences between rows rather than absolute values.
"""


def answers(
    strategy: Strategy,
    questions: str,
    out: Path,
    layout: str = "hotpotqa",
    limit: int | None = None,
    normalization: Literal["squad", "triviaqa", "re_rag"] = "squad",
    paper: Literal["musique", "hotpotqa", "2wiki", "nq", "triviaqa"] | None = None,
    ks: tuple[int, ...] = (1, 5, 10, 20),
    temperature_questions: str | None = None,
    temperature_limit: int | None = 2000,
    encoder: str | None = None,
    baseline_serving: Path | None = None,
    resamples: int = 10_000,
    seed: int = 0,
) -> None:
    """Score a strategy's answers: EM, F1 and accuracy with intervals, in answers.csv, answers.md and questions.jsonl.

    For RE-RAG also recall before and after reranking, the ablation, EM by number of contexts, accuracy by share of relevant
    contexts, detection of unanswerable questions, and risk-coverage curves; all share one scoring and one reading of every
    passage.  An interrupted command resumes: run it again.

    Args:
        strategy: The system that answers; it needs a reader. RE-RAG without a generator is evaluated as a reranker.
        questions: Official data-set file, or Hugging Face datasets id.
        out: Folder for the report; an earlier report there is replaced.
        layout: Layout of the questions file: which data set's official format it has.
        limit: Use only this many questions, from the beginning.
        normalization: How answers are normalized before they are compared; the table of answers has all three.
        paper: Print the paper's published results for this data set beside ours.
        ks: For RE-RAG: the k of recall@k.
        temperature_questions: For RE-RAG: training questions, in the same layout, for fitting the temperature of the
            retriever's scores; temperature 1 when omitted.
        temperature_limit: Use only this many of them.
        encoder: For RE-RAG without a retriever: the sentence encoder that ranks the shipped passages of each question
            whose file does not give a score for every one of them; MiniLM when omitted.
        baseline_serving: For RE-RAG: serving folder of a generator trained without the estimator and with relevance retriever,
            which adds the first four rows of the paper's Table 7.
        resamples: Number of bootstrap resamples.
        seed: Of the bootstrap.
    """
    started = time.perf_counter()
    check_answers(
        questions, out, layout, limit, ks, temperature_questions, temperature_limit, resamples, baseline_serving
    )
    _check_strategy(strategy, temperature_questions, baseline_serving)
    from datamodules.formats.reading import read_questions
    from harness.evaluation import paper_figures
    from harness.evaluation.answer_scores import (
        YES_NO_LAYOUTS,
        Bootstrap,
        answer_tables,
        normalizer,
        score_answers,
        with_answers,
    )
    from harness.evaluation.tables import tables_csv, tables_markdown, tables_not_measured
    from harness.retrievers.corpora import gold_not_in_index

    with OUTPUT.locked(out):
        normalizer(normalization)
        bootstrap = Bootstrap(resamples, seed)
        loaded = list(track(read_questions(layout, questions, limit=limit), None, "reading questions"))
        usable = with_answers(loaded)
        if len(usable) < len(loaded):
            say(f"{len(loaded) - len(usable)} of {len(loaded)} questions skipped (no gold answer).")
        try:
            gold_not_in_index(getattr(strategy, "retriever", None), usable, count=False)
        except ArtifactError as error:  # allowed: an index of the same articles, cut into other passages
            say(f"Note: {error}")
        baseline = _load_baseline(strategy, baseline_serving)
        training = None
        if temperature_questions is not None:
            training = with_answers(list(read_questions(layout, temperature_questions, limit=temperature_limit)))

        rerag = None
        predicted: Sequence[Answer] | None
        partial = out.with_name(out.name + ".partial")
        if isinstance(strategy, ReRag) and strategy.model.estimator is not None:
            from harness.evaluation.rerag import report as rerag_report

            rerag = rerag_report.evaluate(
                strategy, usable, training, encoder, normalization, ks, paper, bootstrap, partial, baseline
            )
            predicted, seconds_before = rerag.answers, rerag.seconds_before
        else:
            predicted, seconds_before = _predict(strategy, usable, partial)
            if not any(answer.text for answer in predicted):
                raise UserError(f"{type(strategy).__name__} answered none of the questions: configure its reader.")
        yes_no_rule = layout in YES_NO_LAYOUTS
        tables: list[Table] = []
        scored = None
        if predicted is not None:
            tables = answer_tables(usable, predicted, normalization, yes_no_rule, bootstrap)
            scored = score_answers([answer.text for answer in predicted], usable, normalization, yes_no_rule)
            if paper is not None:
                tables[0].paper = paper_figures.answers(
                    paper, strategy.selection.k if isinstance(strategy, DrRag) else None
                )
        tables += rerag.tables if rerag else []

        seconds = seconds_before + time.perf_counter() - started
        source = Path(questions).name
        facts = [
            f"questions: {source} ({layout}), {len(usable):,} evaluated, {len(loaded) - len(usable):,} skipped (no gold answer)",
            f"strategy: {type(strategy).__name__}; normalization: {normalization}"
            + (", HotpotQA's yes/no rule" * yes_no_rule),
            *(rerag.facts if rerag else []),
            f"bootstrap: {resamples:,} resamples, seed {seed}; total time {seconds:.0f} s",
        ]
        report = {
            "questions": {
                "source": questions,
                "layout": layout,
                "sha256": sha256(Path(questions)) if Path(questions).is_file() else None,
                "asked": len(loaded),
                "measured": len(usable),
            },
            "strategy": type(strategy).__name__,
            "normalization": normalization,
            "bootstrap": {"resamples": resamples, "seed": seed, "confidence": 0.95},
            "temperature questions": temperature_questions,
            "study": rerag.settings if rerag else None,
            "not measured": tables_not_measured(tables),
            "seconds": seconds,
        }
        notes = (
            NOTES.format(paper=paper_figures.paper_name(paper)) if paper else NOTES.partition(" Rows marked")[0] + "\n"
        )
        with whole_folder(out) as folder:
            write_text(folder / "answers.csv", tables_csv(tables))
            write_text(
                folder / "answers.md",
                tables_markdown(f"Answers: {len(usable):,} questions of {source}", facts, tables, notes),
            )
            lines = question_records(usable, predicted, scored, rerag.extras if rerag else None)
            write_text(folder / "questions.jsonl", "".join(line + "\n" for line in lines))
            write_json(folder / REPORT, report)
            if rerag:
                rerag.plot(folder)
        remove_saved(*partial.glob("answers-*.jsonl"))
        print((out / "answers.md").read_text(encoding="utf-8"))
        say(f"{out}: {', '.join(sorted(path.name for path in out.iterdir()))}; {seconds:.0f} s.")


def check_answers(
    questions: str,
    out: Path,
    layout: str,
    limit: int | None,
    ks: Sequence[int],
    temperature_questions: str | None,
    temperature_limit: int | None,
    resamples: int,
    baseline_serving: Path | None,
) -> None:
    """Check numbers, files and folders; called before anything is loaded.  Raises UserError or a subclass."""
    from harness.commands.questions import check_questions

    if not ks or min(ks) < 1 or list(ks) != sorted(set(ks)):
        raise UserError(f"ks is {list(ks)}; it must be increasing numbers of at least 1, such as [1,5,10,20].")
    check_at_least(1, resamples=resamples)
    check_questions(layout, [questions], limit)
    if temperature_questions is not None:
        check_questions(layout, [temperature_questions], temperature_limit)
    if baseline_serving is not None and not (baseline_serving / MANIFEST).is_file():
        raise MissingInputError(
            f"baseline_serving: {baseline_serving} is no serving folder. Give one that training exported, such as "
            "checkpoints/rerag-nq-baseline/serving."
        )
    OUTPUT.check_writable(out)


def _check_strategy(strategy: Strategy, temperature_questions: str | None, baseline_serving: Path | None) -> None:
    """Raise UserError if the strategy cannot do what is asked."""
    if isinstance(strategy, DrRag) and strategy.reader is None:
        raise UserError("DrRag has no reader, so it gives no answers: configure --strategy.init_args.reader.")
    if temperature_questions is not None and not (isinstance(strategy, ReRag) and strategy.model.estimator is not None):
        raise UserError("temperature_questions is for RE-RAG with an estimator only: omit it.")
    joint = (
        isinstance(strategy, ReRag) and strategy.model.estimator is not None and strategy.model.generator is not None
    )
    if baseline_serving is not None and not joint:
        raise UserError("baseline_serving is for RE-RAG with an estimator and a generator only: omit it.")


def _load_baseline(strategy: Strategy, serving: Path | None) -> "Baseline | None":
    """The baseline's generator, on the device of the strategy's."""
    if serving is None:
        return None
    from harness.evaluation.rerag.baseline import Baseline

    assert isinstance(strategy, ReRag)  # checked before
    assert strategy.model.generator is not None
    return Baseline.load(serving, str(strategy.model.generator.network.device), strategy.precision)


def _predict(strategy: Strategy, questions: "Sequence[Question]", partial: Path) -> "tuple[list[Answer], float]":
    """All answers, in resumable batches, and the computing time in seconds of those reused from an interrupted run."""
    from harness.evaluation.serialization import digest, pack_answer, unpack_answer
    from harness.runtime.provenance import configuration, hardware

    def work(batch: "Sequence[Question]") -> list[dict]:
        return [pack_answer(question, answer) for question, answer in zip(batch, strategy.answer(batch), strict=True)]

    system = configuration(strategy)
    saved = ResumableBatches()
    if system is not None:
        depends_on = {**system, "questions": digest(questions), "hardware": hardware()}
        saved = ResumableBatches(partial / "answers-given.jsonl", depends_on)
    batches = [questions[s : s + QUESTIONS_AT_ONCE] for s in range(0, len(questions), QUESTIONS_AT_ONCE)]
    packed = itertools.chain.from_iterable(saved.run(batches, work, "answering, batches"))
    return [unpack_answer(question, each) for question, each in zip(questions, packed, strict=True)], saved.seconds


def question_records(
    questions: "Sequence[Question]",
    predicted: "Sequence[Answer] | None",
    scored: "AnswerScores | None",
    extras: Sequence[dict[str, object]] | None,
) -> Iterator[str]:
    """JSON lines, one per question: gold answers, answer, its scores, evidence and costs, and RE-RAG's extra fields."""
    for number, question in enumerate(questions):
        record: dict[str, object] = {
            "id": question.id,
            "question": question.text,
            "kind": question.kind,
            "gold": list(question.answers),
        }
        if predicted is not None and scored is not None:
            answer = predicted[number]
            record |= {
                "answer": answer.text,
                "logprob": answer.logprob,
                "exact_match": scored.exact_N[number],
                "f1": scored.f1_N[number],
                "accuracy": scored.inclusion_N[number],
                "evidence": [
                    {"id": hit.passage.id, **hit.passage.labels, "title": hit.passage.title, "score": hit.score}
                    for hit in answer.evidence
                ],
                "costs": answer.costs,
                "notes": answer.notes,
            }
        yield json.dumps(record | (extras[number] if extras else {}), ensure_ascii=False)
