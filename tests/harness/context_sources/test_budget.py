"""A budget of words: whole passages, best first, the last one cut."""

from common.records import Passage, Ranked
from harness.context_sources.budget import within_words

TABLE = Passage("1", "| a | b |\n| - | - |\n| 1 | 2 |", "Ratings", indexed="Ratings a b")
RIVER = Passage.of("Alba", "The Alba is a river.")


def test_the_last_passage_is_cut_and_keeps_lines_id_and_what_is_indexed() -> None:
    whole, cut = within_words([Ranked(RIVER, 2.0), Ranked(TABLE, 1.0), Ranked(RIVER, 0.5)], 13)
    assert (whole, cut.passage) == (Ranked(RIVER, 2.0), Passage("1", "| a | b |\n| - |", "Ratings"))
    assert cut.passage.indexed == "Ratings a b"
    assert within_words([Ranked(TABLE, 1.0)], 15)[0].passage is TABLE  # it fits
    assert within_words([Ranked(TABLE, 1.0)], 0) == ()
