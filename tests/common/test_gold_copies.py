"""Copies of gold passages, one kind after the other, and what only looks like one."""

import pytest

from common.gold_copies import GoldCopies
from common.records import Passage

GOLD = [
    Passage.of("Jaws", "Jaws is a film of 1975."),
    Passage.of("Oats", "Oats - Mix 1½ cups."),
    Passage.of("", "no title"),
    Passage.of("none", ""),
    Passage.of('"Heroes"', '"Heroes" is a song.'),
]


COPIED = [
    ("Jaws", "Jaws is a film of 1975.", True),  # itself
    ("Jaws (film)", "Jaws is a  film\nof 1975.", True),
    ("", "JAWS IS A FILM OF 1975.", True),
    ("Jaws (film)", "Jaws (film). Jaws is a film of 1975.", True),  # its own title before it
    ("wiki/17", "Jaws\nJaws is a film of 1975.", True),  # the gold passage's
    ("x", "\uff2a\uff41\uff57\uff53 is a film of 1975.", True),
    ("Recipes", "Mix 11\u20442 cups.", True),  # the gold text has its title before it
    ("x", "no title", True),
    ("x", "\u201cNo title\u201d.", True),
    ("Recipes", "Oats \u2014 Mix 1½ cups", True),
    ('"Heroes"', '"Heroes" - "Heroes" is a song.', True),
    ("x", "Jaws is a film, of 1975.", False),
    ("Duel", "Duel is a film of 1975.", False),  # the same but for the titles within
    ("Jaws", "Jaws is a film of 1976.", False),
    ("Jaws", "Jaws is a film of 1975. It won.", False),
    ("none", "", False),
    ("Jaws", "Jaws", False),
]


@pytest.mark.parametrize(("title", "text", "copied"), COPIED)
def test_by_hand(title: str, text: str, copied: bool) -> None:
    assert (Passage.of(title, text) in GoldCopies.of(GOLD)) == copied
    assert Passage.of(title, text) not in GoldCopies.of([])
