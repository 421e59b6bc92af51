"""The standalone form of a question in a dialogue, for search, reranking and reading."""

from dataclasses import replace

from common.records import Question, clean
from common.rewrites import Rewrites
from harness.runtime.long_questions import with_turns
from models.dmqr.strategies import GQR


def stand_alone(
    question: Question, rewrites: Rewrites | None, system: object = None
) -> tuple[Question, Rewrites | None]:
    """A question with earlier turns as one that can be searched, reranked and read without them, with its rewrites.

    Its text becomes the rewriter's general query (gqr), which names what the turns are about; where there is none, the
    turns are put before the text, as `with_turns` does it for a system. Strategies that fell back to the question as it
    was asked fall back to this text.
    """
    if not question.history:
        return question, rewrites
    if rewrites is None:
        return with_turns(question, system), None
    made = {name: queries for name, queries in rewrites.queries.items() if name not in rewrites.fallbacks}
    alone = replace(question, text=made[GQR.name][0], history=()) if GQR.name in made else with_turns(question, system)
    return alone, replace(rewrites, queries={n: made.get(n, (clean(alone.text),)) for n in rewrites.queries})
