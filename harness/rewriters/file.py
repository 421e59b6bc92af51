"""Rewrites that are given in a file.

They may come from another program, from `infer.py distill`, or from the generated world as an upper bound.
"""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from common.files import sha256
from common.progress import say_facts
from common.records import Question, as_questions, as_texts, clean, nfkc
from common.rewrites import Rewrites
from datamodules.formats.rewrites import read_rewrites
from datamodules.formats.row_counts import RowCounts
from harness.rewriters.fallbacks import tell_fallbacks, with_fallbacks
from models.dmqr.rewrite_outputs import queries_of
from models.dmqr.strategies import POOL

MISSING = "the file has no rewrite of it"


class FileRewriter:
    """Looks rewrites up by question, history and strategy.

    A strategy of this project's pool that makes several queries separates them by semicolons. A question that the file
    has several rewrites of by one strategy gets all of them.

    Args:
        rewrites: File in the layout `rewrites`: JSON Lines of {question, strategy, rewrite, history}, gzip'd or not.

    Raises:
        MissingInputError: If the file does not exist.
        DataError: If it is invalid.
    """

    def __init__(self, rewrites: Path) -> None:
        self.name, self.file = f"rewrites of {rewrites}", Path(rewrites)

    def load(self) -> None:
        """Read the file."""
        _ = self._found

    @cached_property
    def _found(self) -> dict[tuple[str, tuple[str, ...]], dict[str, tuple[str, ...]]]:
        """Queries by strategy, of each question with its earlier turns."""
        found: dict[tuple[str, tuple[str, ...]], dict[str, tuple[str, ...]]] = {}
        counts = RowCounts()
        for each in read_rewrites("rewrites", str(self.file), counts=counts):
            several = each.strategy in POOL and POOL[each.strategy].several
            own = found.setdefault((nfkc(each.question), tuple(map(nfkc, each.history))), {})
            queries = (*own.get(each.strategy, ()), *queries_of(each.rewrite, several))
            own[each.strategy] = tuple(dict.fromkeys(queries))
        say_facts(counts.lines())
        return found

    @cached_property
    def strategies(self) -> tuple[str, ...]:
        """Names of the strategies in the file."""
        return tuple(dict.fromkeys(name for own in self._found.values() for name in own))

    @property
    def facts(self) -> list[str]:
        """The file and its digest, for reports."""
        return [f"rewriter: {self.name}, sha256 {self.recipe['sha256'][:12]}"]

    @cached_property
    def recipe(self) -> dict[str, str]:
        """What the rewrites depend on besides the options: the file's content."""
        return {"sha256": sha256(self.file)}

    def rewrite(self, questions: Sequence[Question], strategies: Sequence[str]) -> list[Rewrites]:
        """The queries of every question by every strategy; the question itself where the file has none."""
        questions, strategies = as_questions(questions), as_texts(strategies)
        made = []
        for question in questions:
            history = tuple(filter(None, map(nfkc, question.history)))
            own = self._found.get((nfkc(question.text), history), {})
            made.append(with_fallbacks(clean(question.text), strategies, own, MISSING))
        return tell_fallbacks(self.name, made)
