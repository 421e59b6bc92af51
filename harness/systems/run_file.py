"""The ranking of any other program, from a run in TREC's format, as a system."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

from common.errors import DataError
from common.progress import track
from common.ranges import PositiveInt
from common.records import Answer, Asked, Passage, Question, Ranked, as_questions
from datamodules.formats.gold_in_corpus import passages_by_id
from datamodules.formats.open_data import cells_of
from datamodules.formats.reading import read_passages
from datamodules.formats.recognition import AUTO
from datamodules.formats.trec import read_run


class RunFile:
    """Answers each question with the documents that a run has for its id, and with no text.

    Args:
        run: The file, lines of `query Q0 document rank score tag`, packed or not.
        corpus: The corpus of its documents, a file or a folder of BEIR.
        k: Number of documents for each question.
    """

    def __init__(self, run: Path, corpus: str, k: PositiveInt = 100) -> None:
        self.run, self.folder, self.k = run, corpus, k

    @property
    def stored(self) -> Iterator[Passage]:
        """All passages of the corpus, also those with the title and text of an earlier one."""
        return iter(track(read_passages(AUTO, [self.folder], repeated=True), None, f"reading {self.folder}"))

    @cached_property
    def _ranked(self) -> tuple[dict[str, list[tuple[str, float]]], list[str]]:
        ranked, told = read_run(str(self.run), cells_of(self.run))
        return {query: [*own.items()][: self.k] for query, own in ranked.items()}, told

    @cached_property
    def _passages(self) -> dict[str, dict[str, Passage]]:
        named = {id_: None for own in self._ranked[0].values() for id_, _ in own}
        if not (found := passages_by_id(self.stored, named)):
            raise DataError(f"{self.run}: none of its {len(named):,} documents is in {self.folder}: give their corpus.")
        return found

    def facts_on(self, questions: Sequence[Question]) -> list[str]:
        """A line for a report.

        Raises:
            DataError: If the run has none of the questions, or the corpus none of its documents.
        """
        (ranked, told), asked = self._ranked, {question.id for question in questions}
        if asked.isdisjoint(ranked):
            other = next(iter(ranked))
            raise DataError(f"{self.run} has none of the {len(asked):,} questions, but others, such as {other!r}.")
        named = {id_ for query in asked & ranked.keys() for id_, _ in ranked[query]}
        counted = {
            "of its queries are not asked": ranked.keys() - asked,
            f"of {len(asked):,} questions are not in it, which finds nothing for them": asked - ranked.keys(),
            f"of {len(named):,} documents are not in {self.folder}": named - self._passages.keys(),
        }
        told = [*told, *(f"{len(ids):,} {what}, such as {min(ids)!r}" for what, ids in counted.items() if ids)]
        return ["; ".join([f"run: {self.run}, the first {self.k} documents of each question", *told])]

    def answer(self, questions: Asked) -> list[Answer]:
        """One answer per question, whose id the run has.

        Args:
            questions: `Question` records; the id of a text is its place.
        """
        return [Answer(one.id, "", tuple(self._hits(one))) for one in as_questions(questions)]

    def _hits(self, question: Question) -> Iterator[Ranked]:
        for id_, score in self._ranked[0].get(question.id, ()):
            for passage in self._passages.get(id_, {id_: Passage(id_, "", corpus_id=id_)}).values():
                if not (question.source.exclude_self and question.is_itself(passage)):
                    yield Ranked(passage, score)
