"""User errors, reported in one line without a traceback.  The message says what was given, what is allowed and what to
type; the command exits with `exit_code` (BSD sysexits codes where one fits).  Standard library only."""

import os
import re
import select
import signal
import sys
from collections.abc import Callable
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO

from common.shown_text import terminal

INTERRUPTED = 130  # exit code after Ctrl-C, as of a shell: 128 + SIGINT
PREEMPTED = 75  # exit code of a command that a scheduler stopped and that the same line continues
CLOSED_PIPE = 141  # exit code when the reader of the output has gone, as of a shell: 128 + SIGPIPE
_INSTALLED = Path(__file__).resolve().parents[1].match("lightning_rag/source")  # where the package holds the folders
SCRIPTS = {"train.py": "lightning-rag-train", "infer.py": "lightning-rag"}  # the commands of the installed package


class UserError(Exception):
    """Invalid user input: base class of all errors that the commands report in one line."""

    exit_code = 2


class StoppedError(KeyboardInterrupt):
    """A scheduler stops the command: SIGTERM or SIGUSR1.  The number of the signal is its argument."""


class DataError(UserError):
    """A data file does not match its layout: invalid row, truncated archive, wrong layout name."""

    exit_code = 65


class MissingInputError(UserError):
    """A file, folder, checkpoint, model or index that the user named does not exist."""

    exit_code = 66


class MemoryShortError(UserError):
    """The memory of the machine or of a GPU does not suffice."""

    exit_code = 69


class UnavailableError(UserError):
    """A service, such as an LLM's endpoint, cannot be reached or answers no request."""

    exit_code = 69


class SearchFailedError(UnavailableError):
    """No search of one call has succeeded, which may be of its questions alone: a late reply, a refused query."""


class RefusedError(UserError):
    """A service refuses every request: a wrong key, an unknown model, an account without credit."""


class ArtifactError(UserError):
    """A file of this project is corrupt, incomplete or made for another corpus or model, or cannot be written."""

    exit_code = 74


class SomeFailedError(UserError):
    """Some questions have failed; all else is done and written."""

    exit_code = 3


def as_typed(text: str) -> str:
    """A text with its commands as the user types them.

    A checkout has `python train.py`, the installed package `lightning-rag-train`.
    """
    if not _INSTALLED:
        return text
    for file, script in SCRIPTS.items():
        text = re.sub(rf"(?<![/\w])(?:python )?\b{re.escape(file)}\b", script, text)
    return re.sub(r"\bpython -m (?=trainers\.|datamodules\.)", "python -m lightning_rag ", text)


def exit_code(program: str, main: Callable[[], object], kept: Callable[[], str] = lambda: "") -> int:
    """Run a command and return its exit code: 0, or the code of a `UserError`, whose message is printed to stderr.

    After Ctrl-C it prints one line and returns INTERRUPTED, after StoppedError PREEMPTED. If the reader of the output
    has gone (`| head -1`), it prints nothing and returns CLOSED_PIPE, the code that a shell shows for other programs in
    a pipe.

    Args:
        program: What error lines begin with, e.g. "infer.py".
        main: The command.
        kept: Says, after Ctrl-C or a stop, what was kept and how to go on.
    """
    print_whatever_comes()
    try:
        try:
            main()
        except SystemExit:  # --help and its like
            sys.stdout.flush()
            raise
        sys.stdout.flush()
    except KeyboardInterrupt as error:
        stopped = isinstance(error, StoppedError)
        by = f"stopped by {signal.Signals(error.args[0]).name}" if stopped else "interrupted"
        print(terminal(as_typed(f"{program}: {by}. {kept()}".strip())), file=sys.stderr)
        return PREEMPTED if stopped else INTERRUPTED
    except Exception as error:
        if isinstance(error, BrokenPipeError) and _closed(sys.stdout):
            return CLOSED_PIPE
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, UserError):
            cause = cause.__cause__  # parsers wrap what constructors raise; a `__context__` is what a bug came after
        if isinstance(cause or error, RecursionError):
            cause = DataError("A file or an option is nested more deeply than Python reads, about a thousand levels.")
        if cause is None:
            raise
        print(terminal(as_typed(f"{program}: {cause}")), file=sys.stderr)
        return cause.exit_code
    return 0


def print_whatever_comes() -> None:
    """Let standard output and error replace characters that they cannot encode, such as those of a Windows console."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
            stream.reconfigure(errors="replace")


def _closed(stream: TextIO) -> bool:
    """True if the pipe behind a stream is closed; then silences further output, also when Python exits."""
    poll = select.poll()
    poll.register(stream.fileno(), 0)
    gone = any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))
    if gone:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return gone
