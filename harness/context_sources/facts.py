"""An index of facts in the place of a language model's knowledge.

The stand-in for Information-GPT where no language model is configured.
"""

import time
from collections.abc import Sequence

from common.context_sources import SourceContext
from common.ranges import PositiveInt
from common.records import Question, as_questions
from common.retrieval import search_for
from harness.context_sources.budget import of_source, within_words
from harness.interfaces import Retriever
from harness.runtime.loading import load
from harness.runtime.long_questions import with_turns

FACTS = "facts"  # `Passage.source` of what it finds
NOTHING_FOUND = "no fact was found"


class IndexedFacts:
    """Searches an index of facts, some of which may be wrong, with the question; the facts are read as a context.

    Args:
        retriever: Over the facts.
        passages: Facts per question, at most.
        max_words: Words of these together, at most.
    """

    def __init__(self, retriever: Retriever, passages: PositiveInt = 3, max_words: PositiveInt = 300) -> None:
        self.retriever, self.passages, self.max_words = retriever, passages, max_words

    def load(self) -> None:
        """Load the retriever."""
        load(self.retriever)

    @property
    def facts(self) -> list[str]:
        """The index that stands for a language model's knowledge, for reports."""
        return [f"generated context: {self.passages} facts of an index, in the place of a language model's knowledge"]

    def contexts(self, questions: Sequence[Question]) -> list[SourceContext]:
        """The facts on every question.

        Raises:
            UnavailableError: If the retriever cannot be reached.
        """
        questions = as_questions(questions)
        if not questions:
            return []
        started = time.perf_counter()
        found = search_for(self.retriever, [with_turns(question, self) for question in questions], self.passages)
        costs = {"retriever_calls": 1.0, "seconds/search": (time.perf_counter() - started) / len(questions)}
        kept = [of_source(within_words(hits, self.max_words), FACTS) for hits in found]
        return [SourceContext(hits, "" if hits else NOTHING_FOUND, costs=dict(costs)) for hits in kept]
