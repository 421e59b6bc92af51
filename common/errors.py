"""Errors that a user can cure.  Each says what was given, what is allowed and what to type; the commands print that one
line and leave with `exit_code` (sysexits where one fits).  Standard library only."""

import sys
from collections.abc import Callable
from typing import NoReturn

from common.moved import advice


class UserError(Exception):
    """A mistake in what the user gave: the base of all that the commands report in one line, without a traceback."""

    exit_code = 2


class DataError(UserError):
    """A file does not hold what its layout promises: bad row, truncated archive, wrong layout name."""

    exit_code = 65


class MissingInputError(UserError):
    """A file, folder, checkpoint, model or index that was named is not there."""

    exit_code = 66


class ArtifactError(UserError):
    """Something this project wrote is corrupt, incomplete, or belongs to another corpus, encoder or text format; or the
    disk refused a write."""

    exit_code = 74


class BriefErrors:
    """Mixin for argument parsers: an error's own lines, without fifty lines of usage before them."""

    command: str  # what the user typed after `python`; a subclass says it
    prog: str

    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        """Print what is wrong in one line, then where the keys are listed, and leave with exit code 2."""
        subcommand = " ".join(self.prog.replace("[options]", "").split()[1:])
        line = " ".join(line.strip() for line in message.splitlines() if line.strip())
        if moved := advice(line):
            line = f"the configuration is of an earlier release: {moved}."
        print(f"{self.command}: {line}", file=sys.stderr)
        print(f"All keys: python {self.command} {subcommand} --help".replace("  ", " "), file=sys.stderr)
        raise SystemExit(UserError.exit_code)


def exit_code(program: str, main: Callable[[], object]) -> int:
    """Run a command; an error that the user can cure becomes one line on stderr and its exit code, success 0."""
    try:
        main()
    except Exception as error:
        cause: BaseException | None = error  # argument parsers wrap what a constructor raised
        while cause is not None and not isinstance(cause, UserError):
            cause = cause.__cause__ or cause.__context__
        if cause is None:
            raise
        print(f"{program}: {cause}", file=sys.stderr)
        return cause.exit_code
    return 0
