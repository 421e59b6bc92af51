"""The questions of an evaluation: their files, which of them are asked, and where their gold passages come from."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from common.errors import UserError
from common.files import sha256
from common.progress import track
from common.ranges import OpenShare, PositiveInt
from common.validation_split import held_out

if TYPE_CHECKING:
    from common.records import Question
    from harness.interfaces import System

Gold = Literal["auto", "file", "index"]
MissingGold = Literal["left_out", "missed"]  # what of a question some of whose gold passages are not in the index


@dataclass(frozen=True, slots=True)
class AskedQuestions:
    """Questions that were read."""

    # those with a gold answer or gold passages; of gold in the index, those that have all of it there
    questions: list["Question"]
    read: int  # number of questions before any was left out
    facts: list[str]  # for a report, the first about the files


@dataclass(frozen=True, slots=True)
class QuestionFiles:
    """Files of questions, all of one layout.

    Args:
        questions: Official data-set file, FOLDER:SPLIT of BEIR, QUERIES:QRELS, or Hugging Face datasets id; several as
            '[FILE, FILE]', of which a question in two is asked once.
        layout: Layout of the file; auto: by the fields of its first row (docs/data.md).
        limit: Use only this many questions, from the beginning.
        validation_split: Of a training file, use only the questions that a training holds out whose
            data.validation_fraction this is; for choosing options.
        gold: Where gold passages come from: file (those that it ships), index (looked up there by title or by the
            corpus's id), or auto: index if the file names them by ids, else file.
        missing_gold: With gold index, the treatment of a question that has gold passages outside the index: left_out,
            or missed (such passages count as not found, as in BEIR); null: missed with qrels, else left_out.
        min_grade: Lowest grade of a gold passage, where the files grade them; null: all above 0.
        exclude_self: Leave the passage that is the question itself out of what is retrieved: the one with the
            question's id in the corpus, or with its text, as in ArguAna; k passages are still retrieved.
        strict: Whether an unusual row (empty, null, repeated, without gold) is an error; else they are counted.
    """

    questions: list[str] | str
    layout: str = "auto"
    limit: PositiveInt | None = None
    validation_split: OpenShare | None = None
    gold: Gold = "auto"
    missing_gold: MissingGold | None = None
    min_grade: PositiveInt | None = None
    exclude_self: bool = False
    strict: bool = False

    @property
    def sources(self) -> list[str]:
        """The files, as `datamodules.formats.reading.read_questions` takes them."""
        return [self.questions] if isinstance(self.questions, str) else self.questions

    def recognized(self) -> "QuestionFiles":
        """The files with the name of their layout, where it is to be recognized and is the same for all, and defaults.

        Raises:
            UserError: If the layout is unknown, no file is named, or `missing_gold` does nothing.
        """
        from datamodules.formats.recognition import AUTO, check_layout, layout_of, name_of

        if self.missing_gold == "missed" and self.gold != "index":
            raise UserError("missing_gold missed is for gold passages of the index: type --gold index too, or omit it.")
        check_layout(self.layout, questions=True)
        if not self.questions:
            raise UserError("questions names no file. Type --questions FILE; several files as '[FILE, FILE]'.")
        layout = self.layout
        if layout == AUTO:
            known = {name_of(layout_of(AUTO, source, questions=True)) for source in self.sources}
            layout = known.pop() if len(known) == 1 else layout
        missing = self.missing_gold or ("missed" if layout == "beir" else "left_out")
        return replace(self, layout=layout, missing_gold=missing)

    @property
    def name(self) -> str:
        """The files' names."""
        return " and ".join(Path(source).name for source in self.sources)

    def check(self) -> None:
        """Check the layout, the files and their first rows.

        Raises:
            UserError: If the layout is unknown, or a subclass if a file does not fit.
        """
        from datamodules.formats.reading import check_questions

        check_questions(self.layout, self.sources, self.limit)

    def read(self, system: "System") -> AskedQuestions:
        """The questions that a system is asked.

        Raises:
            UserError: If there is none, or the system searches no index in which gold passages can be looked up.
        """
        from datamodules.formats.gold_in_corpus import at_least
        from datamodules.formats.reading import read_distinct_questions
        from datamodules.formats.row_counts import RowCounts
        from harness.evaluation.gold_in_index import with_gold_in_index

        counts = RowCounts(self.strict)
        read = at_least(self.min_grade, read_distinct_questions(self.layout, self.sources, counts))
        found = track(read, None, "reading questions")
        loaded = list(islice(held_out(found, self.validation_split), self.limit))
        if self.validation_split is not None and not loaded:
            raise UserError(
                f"A training with validation_fraction {self.validation_split:g} holds out none of {self.name}: raise "
                "validation_split."
            )
        facts: list[str] = []
        gold = self.gold if self.gold != "auto" else "index" if any(each.gold.corpus_ids for each in loaded) else "file"
        if gold == "index":
            usable, facts = with_gold_in_index(system, loaded, self.missing_gold == "missed")
        else:
            usable = [
                q
                for q in loaded
                if q.answers or q.source.withheld or q.gold.segments or (q.support and not q.gold.titles)
            ]
        if not usable:
            none = "a gold answer or gold passages: choose a file with answers, such as a dev file"
            if gold == "index":
                none = "all of its gold passages in the index: index their corpus, or type --gold file"
            raise UserError(f"None of the {len(loaded)} questions has {none}.")
        if self.exclude_self:
            usable = [each.excluding_self() for each in usable]
            facts = [*facts, "the passage with a question's id or text is left out of what is retrieved for it"]
        if hasattr(system, "facts_on"):
            facts = [*facts, *system.facts_on(usable)]
        skipped = 0 if gold == "index" else len(loaded) - len(usable)
        held = f", of which training holds out the share {self.validation_split:g}" if self.validation_split else ""
        files = (
            f"questions: {self.name} ({self.layout}{held}), {len(usable):,} evaluated, {skipped:,} skipped (no gold "
            "answer and no gold passages)"
        )
        return AskedQuestions(usable, len(loaded), [files, *facts, *counts.lines()])

    def record(self, measured: int, read: int) -> dict[str, object]:
        """For report.json; `source` and `sha256` are lists where there are several files.

        Args:
            measured: Number of questions that were evaluated.
            read: Number of questions before any was left out.
        """
        from datamodules.formats.file_kinds import rereadable
        from datamodules.formats.open_data import local_files

        files = [file for source in self.sources for file in local_files(source)]
        hashes = [sha256(rereadable(file)) if file.exists() else None for file in files]
        return {
            "source": _one_or_all(self.sources),
            "layout": self.layout,
            "sha256": _one_or_all(hashes),
            "asked": read,
            "measured": measured,
            **({"gold": self.gold, "missing_gold": self.missing_gold} if self.gold == "index" else {}),
            **({"min_grade": self.min_grade} if self.min_grade else {}),
            **({"exclude_self": True} if self.exclude_self else {}),
        }


def _one_or_all(values: Sequence[object]) -> object:
    return values[0] if len(values) == 1 else list(values)
