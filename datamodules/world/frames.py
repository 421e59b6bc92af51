"""Text templates that are not tied to a relation: passage openings, filler sentences, mentions, question frames and
comparisons, in disjoint sets for the three splits (see `phrases.py`), from `frames.json`."""

from pathlib import Path

from datamodules.world.phrases import Phrases, read_table

_TABLE = read_table(Path(__file__).with_name("frames.json"))

# First sentence of a passage, by kind.  {n} name, {y} year, {r} region, {t} profession or device type.
OPENINGS: dict[str, Phrases] = _TABLE["openings"]
# Sentences about the region, which no question asks about.  {r} region, {w} words of its theme.
FILLERS: Phrases = _TABLE["fillers"]
# Mention of an entity {o} that refers to the passage's subject {s}: a link in the reverse direction.
RECALLS: Phrases = _TABLE["recalls"]
NOT_TO_CONFUSE: Phrases = _TABLE["not_to_confuse"]
# How a passage introduces the object of a fact, by kind.  {n} name, {t} profession, {r} region.
INTRODUCED: dict[str, Phrases] = _TABLE["introduced"]
# Used for the subject after the first sentence, as an alternative to the pronoun, by kind.
KIND_NOUNS: dict[str, str] = _TABLE["kind_nouns"]

# How a question mentions an entity with a namesake, and other films, books, bands and products.
NAMESAKE_MENTIONS: dict[str, Phrases] = _TABLE["namesake_mentions"]
MENTIONS: dict[str, Phrases] = _TABLE["mentions"]
PERSON_FRAMES: Phrases = _TABLE["person_frames"]
FRAMES: Phrases = _TABLE["frames"]
YEAR_ASKS: Phrases = _TABLE["year_asks"]  # ask for the year in the first sentence of a passage

# Comparisons by year, as noun phrases.  DECIDING_FACT: the relation with the year; "" is the year of release.
DECIDING_FACT: dict[str, str] = _TABLE["deciding_fact"]
EARLIER: dict[str, Phrases] = _TABLE["earlier"]
LATER: dict[str, Phrases] = _TABLE["later"]
# Yes-no questions: whether two entities have the same object of a relation.
SAME: dict[str, Phrases] = _TABLE["same"]
