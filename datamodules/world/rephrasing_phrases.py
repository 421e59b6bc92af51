"""Templates and noise words of the rephrased questions, in disjoint sets for the three splits (see `phrases.py`).

They are of chat style, stories and partial descriptions, from `rephrasing.json`.
"""

from pathlib import Path

from datamodules.world.phrases import Phrases, read_table

_TABLE = read_table(Path(__file__).with_name("rephrasing.json"))

# Noisy questions: chat words before and after the question, words of another language or of hesitation inside it.
CHAT_OPENINGS: Phrases = _TABLE["chat_openings"]
CHAT_ENDINGS: Phrases = _TABLE["chat_endings"]
INSERTED: Phrases = _TABLE["inserted"]
# Split -> chat spellings of frequent words; none is a typo of `noise.typo`, which all splits share.
SPELLINGS: dict[str, dict[str, str]] = _TABLE["spellings"]

# Over-long questions: a story before the question, the words that lead to it, an ending.  {a}, {b} people, {c} city,
# {w} works, {k} company; none of them has to do with the question.  {t} topic words, {v} relative, {d} time.
RELATIVES: Phrases = _TABLE["relatives"]
TIMES: Phrases = _TABLE["times"]
STORIES: Phrases = _TABLE["stories"]
LEADS: Phrases = _TABLE["leads"]
ENDINGS: Phrases = _TABLE["endings"]

# Under-specified questions: a description of the subject in place of its mention, and only the type of what is asked
# for in place of the relation. {f} the first word of the name that is not an article, {l} the last, {r} region, {t}
# profession or device type.
PARTIAL_MENTIONS: dict[str, Phrases] = _TABLE["partial_mentions"]
ASKED_TYPES: dict[str, Phrases] = _TABLE["asked_types"]  # what a relation leads to, by its type alone
ELLIPSES: Phrases = _TABLE["ellipses"]  # questions without a verb
