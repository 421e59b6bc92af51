"""What the data modules of DR-RAG and RE-RAG share: their files of questions and of mined passages, read once."""

from collections.abc import Sequence
from typing import Any

from common.records import Question
from datamodules.cache.question_lookup import stored_mined
from datamodules.cache.search_results import Search, SearchResults
from datamodules.cache.splits import are_stored, split_questions
from datamodules.examples.data_files import QuestionDataFile, paths_of
from datamodules.examples.step_loader import StepData


class QuestionData(StepData):
    """Base class of data modules of questions.  A subclass implements `_load`, which sets `questions`."""

    cache: str | None
    strict: bool
    questions: Sequence[Question] = ()
    _load: Any  # (split, mined passages) -> None

    def _name_question_files(
        self,
        train: list[QuestionDataFile],
        validation: list[QuestionDataFile] | None,
        validation_fraction: float,
        hard_negatives: list[str] | None,
        corpus: str | None,
        search: Search | None,
    ) -> None:
        """Remember the files, as `_name_files`; the files of mined passages, and those that `search` is to write."""
        self._name_files(train, validation, validation_fraction, corpus)
        self.hard_negative_files, self.search = hard_negatives or [], search
        self.search_results = SearchResults("mine", search, self.sources, self.cache) if search else None

    @property
    def files(self) -> list[str]:
        """Paths of all input files."""
        return paths_of(self.sources) + self.hard_negative_files

    @property
    def _mined_files(self) -> list[str]:
        return self.hard_negative_files + (self.search_results.files if self.search_results else [])

    def prepare_data(self) -> None:
        """Read large files on one process per machine; the others then read its store."""
        if are_stored(self.sources, self.cache):
            self.setup("fit")

    def setup(self, stage: str) -> None:
        """Read and split the questions, prepare the first epoch, print its statistics (once).

        Raises:
            DataError: If a file is invalid, or there is nothing to train on or to validate with.
            UserError: If an option does not fit the model or the files.
        """
        if not self.questions:
            split = split_questions(self.train_sources, self.validation_sources, self.validation_fraction, self.cache)
            self._unusual = split.counts(self.strict).audit()
            self._load(split, stored_mined(self._mined_files, self.cache))
            self.print_audit()
