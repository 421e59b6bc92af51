"""Answer candidates of a passage, by rule."""

import pytest

from common.records import Passage
from harness.synthesis.candidates import answer_candidates


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It was shot by Steven Spielberg of New York.", ["Steven Spielberg of New York"]),
        ("It opened on June 20, 1975 in 409 halls.", ["June 20, 1975", "409"]),
        ("It opened on 20 June 1975, again in May 1976.", ["20 June 1975", "May 1976"]),
        ("It cost 3,500.75 dollars and the K530 is no number.", ["3,500.75", "K530"]),
        ("Universal paid. They say that Universal sold it.", ["Universal"]),  # capitalized within a sentence too
        ("Everybody paid. Nobody sold it.", []),  # the first words of sentences
        ("The United States paid; In Rome nobody did.", ["United States", "Rome"]),
        ("The pupil's teacher was Max Planck's friend.", ["Max Planck"]),
        ("Ludwig van Beethoven met J.R. Smith.", ["Ludwig van Beethoven", "J.R. Smith"]),
        ("Rome, and Rome again: in Rome.", ["Rome"]),
        ("see THE WHOLE OF THIS LINE IS ONE VERY LONG HEADING, in Rome.", ["Rome"]),
    ],
)
def test_the_rule(text: str, expected: list[str]) -> None:
    assert answer_candidates(Passage.of("Jaws", text)) == expected


def test_the_passage_s_own_title_is_none() -> None:
    assert answer_candidates(Passage.of("Max Planck", "He is Planck, and Max Planck met Albert Einstein.")) == [
        "Albert Einstein"
    ]


def test_titles_of_other_passages_come_before_longer_names() -> None:
    passage = Passage.of("Jaws", "It was shot by Steven Spielberg of New York, as a low tide shows.")
    assert answer_candidates(passage, ["Steven Spielberg", "low tide"]) == ["Steven Spielberg", "New York", "low tide"]
