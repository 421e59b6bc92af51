"""Input files of training and validation, and their questions without duplicates."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from common.ranges import PositiveInt
from common.records import Question, nfkc
from common.validation_split import validation_shares
from datamodules.formats.gold_in_corpus import read_questions_with_gold
from datamodules.formats.recognition import AUTO, check_layout
from datamodules.formats.row_counts import IN_EARLIER_FILE, REPEATED_ID, REPEATED_QUESTION, RowCounts
from datamodules.formats.trec import corpus_beside

Example = TypeVar("Example")


@dataclass
class DataFile:
    """An input file and its layout.

    Args:
        path: The file (JSON, JSON Lines, CSV, TSV, Parquet, packed or not), FILE:SPLIT, FOLDER:SPLIT of BEIR,
            QUERIES:QRELS, or a Hugging Face data set as hf:<id>[:<config>]:<split>.
        layout: Layout of the file, e.g. hotpotqa, musique, fid, questions; auto: by the fields of its first row.
        limit: Read only this many rows from the start, empty ones included; all when None.
        dataset: Hub id of the data set that the file comes from, for the model card; an hf: path names its own.
        language: Language of the texts (ISO 639-1), for the model card; unknown when None.
    """

    path: str
    layout: str = AUTO
    limit: PositiveInt | None = None
    dataset: str | None = None
    language: str | None = None


@dataclass
class QuestionDataFile(DataFile):
    """An input file of questions with gold passages.

    Args:
        corpus: Corpus in the layout jsonl, where the questions name their gold passages by its ids; null: of a folder
            of BEIR the corpus in it.
        min_grade: Lowest grade of a gold passage, where the file grades them; null: all above 0.

    Raises:
        UserError: If the layout is unknown, or a corpus.
    """

    corpus: str | None = None
    min_grade: PositiveInt | None = None

    def __post_init__(self) -> None:
        check_layout(self.layout, questions=True)

    def questions(self, counts: RowCounts | None = None) -> Iterator[Question]:
        """The questions of the file, in order; `counts` counts unusual rows.

        Raises as `read_questions_with_gold`.
        """
        return read_questions_with_gold(self.layout, self.path, self.limit, self.corpus, counts, self.min_grade)


def paths_of(sources: Sequence[QuestionDataFile]) -> list[str]:
    """Paths of the files that hold the questions and their gold passages."""
    return [
        path
        for source in sources
        for path in (source.path, source.corpus or corpus_beside(source.path))
        if path is not None
    ]


def distinct_questions(sources: Sequence[QuestionDataFile], counts: RowCounts | None = None) -> Iterator[Question]:
    """The questions of all files, in order, without duplicates: the first counts; `counts` counts the others.

    Questions are equal if their texts and earlier turns are.
    """
    counts = counts or RowCounts()
    seen: dict[tuple[str, ...], int] = {}  # -> number of the file
    ids = set[str]()
    for number, source in enumerate(sources):
        for question in source.questions(counts):
            text = tuple(map(nfkc, (question.text, *question.history)))
            if text not in seen:
                seen[text] = number
                if question.id in ids:
                    counts.add(REPEATED_ID)
                ids.add(question.id)
                yield question
            else:
                counts.add(REPEATED_QUESTION if seen[text] == number else IN_EARLIER_FILE)


def hash_split(
    examples: Sequence[Example], questions: Iterable[Question], fraction: float
) -> tuple[list[Example], list[Example]]:
    """Training and validation examples: those whose question's `validation_shares` is below `fraction` are held out."""
    shares = [*zip(examples, validation_shares(questions), strict=True)]
    return [each for each, share in shares if share >= fraction], [each for each, share in shares if share < fraction]
