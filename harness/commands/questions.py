"""Check of a command's question files before anything is loaded."""

from collections.abc import Sequence

from datamodules.formats.reading import read_questions
from datamodules.formats.sources import HUB


def check_questions(layout: str, sources: Sequence[str], limit: int | None = None) -> None:
    """Check layout, limit and the first row of every file; of a Hugging Face data set only the form of its name.

    Raises:
        UserError: If the layout is unknown or a corpus, or the limit is below 1.
        MissingInputError: If a file does not exist.
        DataError: If a file's first row does not match the layout, or a file is empty.
    """
    for source in sources:
        questions = read_questions(layout, source, limit)
        if not source.startswith(HUB):
            next(questions)
