"""The nouns of the project: what every reader yields and every strategy returns.  Standard library only."""

import hashlib
import re
import unicodedata
from dataclasses import dataclass, field
from typing import Self

_INVISIBLE = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\u00ad]")  # zero-width and direction marks


def clean(text: str) -> str:
    """The one normalizer of the project: NFKC, no invisible characters, every run of white space a single blank.

    Training, evaluation and serving see text only after it; BigBird's tokenizer does no NFKC of its own and keeps line
    breaks as tokens.  Idempotent.
    """
    if text.isascii():  # nothing to normalize: most text, ten times faster
        return " ".join(text.split())
    return " ".join(_INVISIBLE.sub("", unicodedata.normalize("NFKC", _INVISIBLE.sub("", text))).split())


def passage_id(title: str, text: str) -> str:
    """Identity of a passage: 16 hex digits of the sha256 of cleaned title and text.  Titles alone repeat."""
    return hashlib.sha256(f"{clean(title)}\x00{clean(text)}".encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Passage:
    """A retrievable piece of text.  `id` is `passage_id(title, text)` unless a system has a reason of its own."""

    id: str
    text: str
    title: str = ""
    source: str = ""  # where it comes from: corpus, web, llm, ...; empty for a corpus passage

    @classmethod
    def of(cls, title: str, text: str, source: str = "") -> Self:
        """A passage with cleaned title and text and the identity that follows from them."""
        title, text = clean(title), clean(text)
        return cls(passage_id(title, text), text, title, source)


@dataclass(frozen=True, slots=True)
class Question:
    """One row of an official data-set file, unchanged in meaning."""

    id: str
    text: str
    answers: tuple[str, ...] = ()  # accepted spellings, the data set's own first; empty when the split hides them
    passages: tuple[Passage, ...] = ()  # the candidates the file ships with, in file order
    support: tuple[str, ...] = ()  # ids, among `passages`, of the gold passages
    unshipped_support: tuple[str, ...] = ()  # titles of gold passages that the file names but does not ship
    kind: str = ""  # the data set's own type: bridge, comparison, compositional, 2hop, 3hop1, ...

    @property
    def gold(self) -> tuple[Passage, ...]:
        """The gold passages that the file ships, in file order."""
        return tuple(p for p in self.passages if p.id in self.support)


@dataclass(frozen=True, slots=True)
class Ranked:
    """A passage with the score of whoever ranked it.  Greater is better; only scores of one ranker compare."""

    passage: Passage
    score: float


@dataclass(frozen=True, slots=True)
class Answer:
    """What a strategy returns for one question."""

    question_id: str
    text: str  # empty when no reader is configured
    evidence: tuple[Ranked, ...]  # best first; never more than the strategy's budget k
    logprob: float | None = None  # of `text`, nats; None without a reader
    costs: dict[str, float] = field(default_factory=dict)  # retriever_calls, model_calls, tokens, seconds/<stage>, ...
    notes: dict[str, object] = field(default_factory=dict)  # whatever explains the answer; JSON types only
