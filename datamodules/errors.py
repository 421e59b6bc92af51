"""Errors that a user can cure.  Each says what was given, what is allowed and what to type; the commands print that one
line and leave with `exit_code` (sysexits where one fits).  Standard library only."""


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
