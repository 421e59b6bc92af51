"""User errors, reported in one line without a traceback.  The message says what was given, what is allowed and what to
type; the command exits with `exit_code` (BSD sysexits codes where one fits).  Standard library only."""

import sys
from collections.abc import Callable
from typing import NoReturn

from common.moved import advice

INTERRUPTED = 130  # exit code after Ctrl-C


class UserError(Exception):
    """Invalid user input: base class of all errors that the commands report in one line."""

    exit_code = 2


class DataError(UserError):
    """A data file does not match its layout: invalid row, truncated archive, wrong layout name."""

    exit_code = 65


class MissingInputError(UserError):
    """A file, folder, checkpoint, model or index that the user named does not exist."""

    exit_code = 66


class ArtifactError(UserError):
    """A file written by this project is corrupt, incomplete or made for another corpus or model, or cannot be written."""

    exit_code = 74


class BriefErrors:
    """Mixin for argument parsers: errors are printed without the usage text."""

    command: str  # what the user typed: "infer.py", or "python -m package.module"; set by the subclass
    prog: str

    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        """Print the error in one line, then the command that lists all keys, and exit with code 2."""
        typed = ["python", self.command, *self.prog.replace("[options]", "").split()[1:]]
        if self.command.startswith("python"):  # a module without sub-commands
            typed = [self.command]
        line = " ".join(line.strip() for line in message.splitlines() if line.strip())
        print(f"{self.command}: {advice(line)}", file=sys.stderr)
        print(f"All keys: {' '.join(typed)} --help", file=sys.stderr)
        raise SystemExit(UserError.exit_code)


def exit_code(program: str, main: Callable[[], object]) -> int:
    """Run a command and return its exit code: 0, or the code of a `UserError`, whose message is printed to stderr."""
    try:
        main()
    except Exception as error:
        cause: BaseException | None = error  # argument parsers wrap errors that constructors raise
        while cause is not None and not isinstance(cause, UserError):
            cause = cause.__cause__ or cause.__context__
        if cause is None:
            raise
        print(f"{program}: {cause}", file=sys.stderr)
        return cause.exit_code
    except KeyboardInterrupt:
        print(f"{program}: interrupted.", file=sys.stderr)
        return INTERRUPTED
    return 0
