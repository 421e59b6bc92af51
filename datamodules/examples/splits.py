"""Input files of training and validation, and their questions without duplicates."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from common.checks import check_at_least, check_between_0_and_1
from common.errors import UserError
from common.records import Question, clean
from datamodules.formats.gold_in_corpus import read_questions_with_gold


@dataclass
class Source:
    """An input file and its layout.

    Args:
        layout: Layout of the file, e.g. hotpotqa, twowiki, musique, ircot, fid, flashrag.
        path: The file (.json, .jsonl, .csv, gzip'd or not), FILE:SPLIT, or a Hugging Face data set as
            hf:<id>[:<config>]:<split>.
        limit: Read only this many questions from the start; all when None.
        dataset: Hub id of the data set that the file comes from, for the model card; an hf: path names its own.
        language: Language of the texts (ISO 639-1), for the model card; unknown when None.

    Raises:
        UserError: If `limit` is below 1.
    """

    layout: str
    path: str
    limit: int | None = None
    dataset: str | None = None
    language: str | None = None

    def __post_init__(self) -> None:
        check_at_least(1, limit=self.limit)


@dataclass
class QuestionSource(Source):
    """An input file of questions with gold passages.

    Args:
        corpus: Corpus in the layout jsonl, where the questions name their gold passages by its ids (layout
            corpus_questions).

    Raises:
        UserError: If `limit` is below 1.
    """

    corpus: str | None = None

    def questions(self) -> Iterator[Question]:
        """The questions of the file, in order.  Raises as `read_questions_with_gold`."""
        return read_questions_with_gold(self.layout, self.path, self.limit, self.corpus)


def check_split(train: Sequence[Source], validation_fraction: float) -> None:
    """Check the arguments of `datamodules.stored.splits.split_questions`.

    Raises:
        UserError: If there is no training file, or the fraction is not in (0, 1).
    """
    if not train:
        raise UserError("data.train names no file: give at least one {layout, path}.")
    check_between_0_and_1(validation_fraction=validation_fraction)


def paths_of(sources: Sequence[QuestionSource]) -> list[str]:
    """Paths of the files that hold the questions and their gold passages."""
    return [path for source in sources for path in (source.path, source.corpus) if path is not None]


def distinct_questions(sources: Sequence[QuestionSource]) -> Iterator[Question]:
    """The questions of all files, in order, without duplicate texts."""
    seen: set[str] = set()
    for source in sources:
        for question in source.questions():
            text = clean(question.text)
            if text not in seen:
                seen.add(text)
                yield question
