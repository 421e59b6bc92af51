"""Options that name one file or several."""

from common.errors import UserError


def listed(files: list[str] | str, option: str = "questions") -> list[str]:
    """The files as a list.

    Raises:
        UserError: If there is none.
    """
    if not files:
        raise UserError(f"{option} names no file. Type --{option} FILE; several files as '[FILE, FILE]'.")
    return [files] if isinstance(files, str) else files
