"""`infer.py ask`: answer questions and print the passages, why they were chosen, the answer and its costs; or JSON."""

import json as json_format
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from io import TextIOWrapper
from itertools import chain, count, islice
from typing import TYPE_CHECKING

from common.backends import Backend, chosen
from common.errors import UserError
from common.progress import say_facts
from common.ranges import NonNegativeInt, PositiveInt, at_least
from common.records import Question, clean
from common.shown_text import terminal
from harness.interfaces import System
from harness.runtime.answer_text import MIN_WIDTH, answer_text
from harness.runtime.failures import FailedQuestions, as_answers, each_apart, failure_of
from harness.runtime.loading import load
from harness.runtime.long_questions import as_read, cut_passages, reads_history, with_cuts

if TYPE_CHECKING:
    Width = int
else:
    Width = at_least(MIN_WIDTH)

PROMPT = "Question (an empty line or Ctrl-D ends): "
PREPENDED = "Earlier turns are put before the question"
REWRITTEN = "Rewritten by the system's rewriter"
_QUESTIONS_AT_ONCE = 16  # of a file: answered together, which is faster, and printed


def ask(
    system: System,
    question: str | None = None,
    questions: str | None = None,
    layout: str = "auto",
    limit: PositiveInt | None = None,
    exclude_self: bool = False,
    json: bool = False,
    width: Width | None = None,
    characters: Width | None = None,
    turns: NonNegativeInt = 0,
    backend: Backend = "torch",
) -> None:
    """Answer questions; print the passages, why each was chosen, the answer if a reader is configured, and the costs.

    Without --question and --questions, questions are read from the terminal one after the other, or one a line from
    standard input; the models stay loaded.

    Args:
        system: The system that answers.
        question: One question.
        questions: Official data-set file, or Hugging Face datasets id: all its questions.
        layout: Layout of the file; auto: by the fields of its first row (docs/data.md).
        limit: Ask only this many questions of the file, from the beginning.
        exclude_self: Leave the passage that is a question of the file itself, by its id in the corpus or its text, out
            of what is retrieved.
        json: Print the whole answer record as JSON: indented for --question, else one object a line (JSON Lines).
        width: Columns at which text is wrapped; the terminal's width when omitted.
        characters: Print at most this many characters of each passage, cut between words; all when omitted.
        turns: How many earlier questions and answers go with a question that is typed in: the system's rewriter
            makes of them a question that stands alone, if it reads earlier turns, else they are put before it.
        backend: What computes encoders that are trained parts: torch, or onnx: ONNX Runtime on the CPU, from the export
            in the folder `onnx` beside their serving folder.
    """
    batches = _batches(system, question, questions, layout, limit, exclude_self, turns)
    with chosen(backend):
        load(system)
    width = width or shutil.get_terminal_size().columns
    reads, earlier = reads_history(system), list[str]()  # questions and answers by turns, oldest first
    printed, failed = 0, FailedQuestions()
    escaped = (sys.stdout.encoding or "utf-8").lower().replace("-", "") != "utf8"
    for typed in batches:
        in_turn = [replace(each, history=tuple(filter(None, earlier))) for each in typed] if earlier else typed
        batch, cuts = as_read(system, in_turn)
        answers = (
            system.answer(batch)
            if question is not None
            else as_answers(batch, each_apart(system.answer, batch, not printed))
        )
        answers = [with_cuts(*each) for each in zip(answers, cuts, strict=True)]
        failed.add(typed, answers)
        for as_typed, asked, answer in zip(typed, batch, answers, strict=True):
            asked = replace(asked, text=str(answer.notes.get("standalone", asked.text)), history=())
            if turns and not failure_of(answer):
                earlier = [*earlier, asked.text if reads else as_typed.text, answer.text][-2 * turns :]
            changed = {"typed": as_typed.text} if asked.text != as_typed.text else {}
            if json:
                record = {"question": asked.text, **changed, **asdict(answer)}
                text = json_format.dumps(record, indent=2 if question is not None else None, ensure_ascii=escaped)
            else:
                text = "\n" * bool(printed) + answer_text(asked, answer, width, characters)
                if changed:
                    text = terminal(f"({REWRITTEN if reads else PREPENDED}, typed: {as_typed.text})") + f"\n{text}"
            print(text, flush=True)
            printed += 1
    say_facts(cut_passages(system))
    failed.check()


def _batches(
    system: System,
    question: str | None,
    questions: str | None,
    layout: str,
    limit: int | None,
    exclude_self: bool,
    turns: int,
) -> Iterator[Sequence[Question]]:
    """The questions that are answered together: several of a file, or one that is typed.

    Everything that can be checked before a model is loaded is checked now; of a file that is its first row.

    Raises:
        UserError: If the layout is unknown, the question is empty, options contradict each other, or there is neither a
            retriever nor a shipped passage.
        MissingInputError: If the file does not exist.
        DataError: If its first row does not match the layout.
    """
    from datamodules.formats.recognition import check_layout

    check_layout(layout, questions=True)
    if turns and (question is not None or questions is not None):
        raise UserError(
            "--turns is for questions that are typed in one after the other: omit --question and --questions."
        )
    if questions is not None:
        if question is not None:
            raise UserError("Both --question and --questions are given: give only one of them.")
        return _of_file(system, questions, layout, limit, exclude_self)
    for option, given in (("limit", limit is not None), ("exclude_self", exclude_self)):
        if given:
            raise UserError(f"--{option} is for the questions of a file: give --questions FILE too, or omit it.")
    _check_passages(system, None)
    if question is None:
        return ([typed] for typed in _typed())
    if not clean(question):
        raise UserError('question is empty: type one, e.g. --question "Who wrote Hamlet?"')
    return iter([[Question(id="asked", text=clean(question))]])


def _of_file(
    system: System, questions: str, layout: str, limit: int | None, exclude_self: bool
) -> Iterator[Sequence[Question]]:
    from datamodules.formats.reading import read_questions
    from datamodules.formats.row_counts import RowCounts

    counts = RowCounts(without_gold=None)
    rows = islice(read_questions(layout, questions, counts=counts), limit)
    first = next(rows)
    _check_passages(system, first)
    every = chain([first], rows)

    def batches() -> Iterator[Sequence[Question]]:
        while batch := [*islice(every, _QUESTIONS_AT_ONCE)]:
            yield [each.excluding_self() for each in batch] if exclude_self else batch
        say_facts(counts.lines())

    return batches()


def _check_passages(system: object, question: Question | None) -> None:
    """Raise UserError if there is nothing to answer from: no retriever, and no passage that the question ships.

    A question that is typed in (None) ships none.
    """
    if getattr(system, "retriever", system) is not None or (question and question.passages):
        return
    one = f"question {question.id!r}" if question else "a question that is typed in"
    raise UserError(
        f"{one} ships no passages, and the system has no retriever: configure --system.init_args.retriever, or "
        "give --questions FILE whose questions ship passages."
    )


def _typed() -> Iterator[Question]:
    """Questions from standard input, the number of the line as id; a line that is not UTF-8 text has a wrong text.

    At a terminal with a prompt until an empty line, else all lines with text.

    Raises:
        UserError: If it is no terminal and holds no question.
    """
    at_terminal = sys.stdin is not None and sys.stdin.isatty()
    if isinstance(sys.stdin, TextIOWrapper):  # wrong bytes are read as in file names; a pipe is UTF-8 in every locale
        sys.stdin.reconfigure(encoding=None if at_terminal else "utf-8", errors="surrogateescape")
    asked = False
    for number in count(1):
        try:
            if at_terminal:
                print(("\n" if asked else "") + PROMPT, end="", file=sys.stderr, flush=True)
            line = sys.stdin.readline() if sys.stdin else ""
        except KeyboardInterrupt:
            _end_line(at_terminal)
            raise
        text = clean(line)
        if not line or (at_terminal and not text):
            break
        if text:
            asked = True
            yield Question(id=str(number), text=text)
    if not line:
        _end_line(at_terminal)
    if not asked and not at_terminal:
        raise UserError(
            "no question is given: type --question TEXT or --questions FILE, or write one question a line to standard "
            "input."
        )


def _end_line(at_terminal: bool) -> None:
    """End the prompt's line, so that what follows has one to itself."""
    if at_terminal:
        print(file=sys.stderr, flush=True)
