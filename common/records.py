"""Record types (passages, questions, rankings, answers), text normalization and passage ids.  Standard library only."""

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

from common.errors import UserError

TEXT_VERSION = 3  # of `clean`, and so of passage ids; files that hold either tell it.  Without a number: NFKC
OTHER_TEXTS = "another release wrote this file, which normalizes texts, and so names passages, in another way."
# zero-width and bidi control characters
_INVISIBLE = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\u00ad]")
_JOINERS = re.compile("[\u200c\u200d]+")
_OTHER_INVISIBLE = re.compile("[\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\u00ad]")
_NEVER_JOINED = re.compile(
    "|[\0-\u058f\u0e00-\u0eff\u10a0-\u11ff\u1d00-\u1dbf\u1e00-\u1fff\u2c00-\u2dff\u2e80-\ua4cf\ua640-\ua69f\ua720-\ua7ff"
    "\ua960-\ua97f\uaa80-\uaadf\uab30-\uab6f\uac00-\ud7ff\uf900-\ufb06\uff00-\uffef\U00020000-\U0003ffff]"
).fullmatch  # nothing, Europe, Thai and Lao, Georgian, Hangul, Chinese, Japanese
_VIRAMA = 9  # combining class of the marks that take the vowel from a letter of an Indic script


def clean(text: str) -> str:
    """Text as it is stored and shown: NFC, no invisible characters, every run of white space one blank.  Idempotent.

    The zero-width joiner and non-joiner stay where they carry meaning: between letters and marks of the scripts that
    use them (Persian, Hindi, Malayalam ...) and in emoji, but not in scripts of Europe, Georgian, Thai, Lao, Hangul,
    Chinese and Japanese.
    """
    if text.isascii():  # most text: ten times faster without normalization
        return " ".join(text.split())
    text = unicodedata.normalize("NFC", _OTHER_INVISIBLE.sub("", text))
    if "\u200c" in text or "\u200d" in text:
        text = unicodedata.normalize("NFC", _JOINERS.sub(_joiner, text))
    return " ".join(text.split())


def _joiner(run: re.Match[str]) -> str:
    """The first of some joiners if it means something where it stands; else nothing."""
    text, start, end = run.string, run.start(), run.end()
    before, after = text[max(0, start - 1) : start], text[end : end + 1]
    joins = _may_join(before) and (_may_join(after) or unicodedata.combining(before) == _VIRAMA)
    return run[0][0] if joins else ""


def _may_join(character: str) -> bool:
    """Whether it is a letter, mark or symbol, and not of a script in which a joiner is left over."""
    return not _NEVER_JOINED(character) and unicodedata.category(character)[:1] in ("L", "M", "S")


def nfkc(text: str) -> str:
    """Text as it is compared, searched and read by models: NFKC, no invisible characters, single blanks.  Idempotent.

    ½ is 1\u20442, m² is m2, full-width letters are plain, so that different ways to type a text are equal. Every input
    format of the models applies it, since not every tokenizer does (BigBird's does not).  `nfkc(clean(text)) ==
    nfkc(text)`.
    """
    if text.isascii():
        return " ".join(text.split())
    return " ".join(_INVISIBLE.sub("", unicodedata.normalize("NFKC", _INVISIBLE.sub("", text))).split())


def passage_id(title: str, text: str) -> str:
    """Id of a passage: the first 16 hex digits of the SHA-256 of its cleaned title and text.  Titles are not unique."""
    return hashlib.sha256(f"{clean(title)}\x00{clean(text)}".encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Passage:
    """A retrievable piece of text.  `id` is normally `passage_id(title, text)`.

    `corpus_id` and `metadata` come from the passage's row in its corpus and are returned with answers. These and
    `indexed` do not identify the passage: they do not count when passages are compared.
    """

    id: str
    text: str
    title: str = ""
    source: str = ""  # origin, e.g. web or llm; empty for a corpus passage
    corpus_id: str = field(default="", compare=False, repr=False)  # the corpus's own id, e.g. doc-17; empty without one
    metadata: dict[str, object] | None = field(default=None, compare=False, repr=False)  # JSON types; None without any
    indexed: str = field(default="", compare=False, repr=False)  # indexed in the place of title and text; empty: these
    # the ids of further passages of its corpus with its title and text, which an index holds once
    other_ids: tuple[str, ...] = field(default=(), compare=False, repr=False)

    @classmethod
    def of(
        cls, title: str, text: str, source: str = "", corpus_id: str = "", metadata: dict[str, object] | None = None
    ) -> Self:
        """A passage with cleaned title and text, and the id computed from them."""
        title, text = clean(title), clean(text)
        return cls(passage_id(title, text), text, title, source, corpus_id, metadata)

    @property
    def labels(self) -> dict[str, object]:
        """`corpus_id` and `metadata` for a JSON record, each only where the corpus has it."""
        labels: dict[str, object] = {"corpus_id": self.corpus_id} if self.corpus_id else {}
        return labels | ({"metadata": self.metadata} if self.metadata else {})

    @property
    def row(self) -> dict[str, object]:
        """As a JSON object."""
        row: dict[str, object] = {key: getattr(self, key) for key in ("id", "title", "text", "source")}
        return (
            row
            | self.labels
            | ({"indexed": self.indexed} if self.indexed else {})
            | ({"other_ids": [*self.other_ids]} if self.other_ids else {})
        )

    @classmethod
    def from_row(cls, row: dict[str, Any]) -> Self:
        """The passage that `row` was made of; fields of others, as of points that a user has extended, are left out."""
        known = {name: row[name] for name in cls.__dataclass_fields__ if name in row}
        return cls(**known | {"other_ids": tuple(row.get("other_ids", ()))})


def passage_text(passage: Passage) -> str:
    """A passage as model input: "title. text", or the text alone if it has no title.

    A text of several lines begins on a new one.
    """
    between = ".\n" if "\n" in passage.text else ". "
    return f"{passage.title}{between}{passage.text}" if passage.title else passage.text


Kind = Literal["text", "table", "image"]  # of a document's segments


@dataclass(frozen=True, slots=True)
class GoldSegment:
    """A part of a document that answers a question, given so that any way of cutting the document can be judged
    (`common.gold_segments.is_relevant`).
    """

    document: str  # the document's name: its path in the folder of documents
    evidence: tuple[str, ...]  # what the text must contain: a sentence, the cells of a table's row, an image's caption
    kind: str = "text"  # text, table or image
    headings: tuple[str, ...] = ()  # from the chapter down to the heading above
    page: int | None = None  # where the evidence begins, from 1


@dataclass(frozen=True, slots=True)
class Gold:
    """What is known to be relevant to a question, beside the gold passages that its file holds (`Question.support`)."""

    titles: tuple[str, ...] = ()  # of gold passages whose text is not in the file
    corpus_ids: tuple[str, ...] = ()  # the corpus's own ids of gold passages whose text is not in the file
    segments: tuple[GoldSegment, ...] = ()  # where documents answer it
    # how relevant passages are, by their id or the corpus's, where the file says it by other numbers than 0 and 1; and
    # 0 of passages of the corpus that are judged not to be
    grades: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Source:
    """How a question stands in its data set."""

    group: str = ""  # what belongs together in training or in validation, such as a customer
    exclude_self: bool = False  # whether the passage that it is itself is not retrieved
    # of an unanswerable question, whose passages do not hold what it takes: what the file says, or one empty text; it
    # has no `answers`
    withheld: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """One question of a data-set file, with its answers and passages."""

    id: str
    text: str
    answers: tuple[str, ...] = ()  # accepted answers, the main one first; empty where the split has none
    passages: tuple[Passage, ...] = ()  # candidate passages in the file, in file order
    support: tuple[str, ...] = ()  # ids of the gold passages among `passages`
    kind: str = ""  # question type in the data set: bridge, comparison, compositional, 2hop, 3hop1, ...
    scores: tuple[float | None, ...] = ()  # retriever's, of `passages` in the file; None without one, empty without any
    history: tuple[str, ...] = ()  # earlier turns of a dialogue, oldest first
    gold: Gold = Gold()
    source: Source = Source()

    @property
    def gold_passages(self) -> tuple[Passage, ...]:
        """The gold passages among `passages`, in file order."""
        return tuple(p for p in self.passages if p.id in self.support)

    def is_itself(self, passage: Passage) -> bool:
        """Whether a passage is the question: it has the question's id in the corpus, or the question's text.

        In ArguAna, for example, every question is an argument of the corpus.
        """
        return self.id in map(clean, (passage.corpus_id, *passage.other_ids)) or nfkc(passage.text) == nfkc(self.text)

    def excluding_self(self) -> "Question":
        """The question with `Source.exclude_self`, without itself among its passages; `support` stays."""
        kept = [place for place, passage in enumerate(self.passages) if not self.is_itself(passage)]
        scores = tuple(self.scores[place] for place in kept) if self.scores else ()
        passages, source = tuple(self.passages[place] for place in kept), replace(self.source, exclude_self=True)
        return replace(self, passages=passages, scores=scores, source=source)

    @property
    def gold_groups(self) -> tuple[frozenset[str], ...]:
        """The ids of the gold passages, in groups: those with one id in the corpus, such as the chunks of a document,
        are one group. A group is found when one of its passages is. A gold passage without such an id is its own
        group.
        """
        own_ids = {passage.id: passage.corpus_id for passage in self.passages}
        groups: dict[tuple[str, str], set[str]] = {}
        for id_ in self.support:
            own = own_ids.get(id_, "")
            groups.setdefault(("", id_) if not own else ("corpus", own), set()).add(id_)
        return tuple(map(frozenset, groups.values()))

    @property
    def given_scores(self) -> tuple[float, ...]:
        """The retriever scores of `passages` if the file gives one for every passage; else empty."""
        known = tuple(score for score in self.scores if score is not None)
        return known if len(known) == len(self.passages) else ()

    @property
    def ranking(self) -> tuple[Passage, ...]:
        """`passages` in the retriever's order: by `given_scores`, best first; in file order if there are none."""
        scores = self.given_scores
        if not scores:
            return self.passages
        return tuple(self.passages[place] for place in sorted(range(len(scores)), key=lambda place: -scores[place]))


Asked = str | Question | Sequence[str | Question]  # what a system answers: one text or record, or several


def as_texts(texts: Sequence[str]) -> Sequence[str]:
    """Texts, or one text as a list of it: a string is itself a sequence of strings, its characters."""
    return [texts] if isinstance(texts, str) else texts


def as_questions(asked: Asked) -> list[Question]:
    """Questions as records, also one alone.  The id of a text is its place, from 1.

    Raises:
        UserError: If a text is empty.
    """
    questions = []
    for place, one in enumerate([asked] if isinstance(asked, str | Question) else asked, start=1):
        if isinstance(one, Question):
            questions.append(one)
        elif text := clean(one):
            questions.append(Question(str(place), text))
        else:
            raise UserError(f'question {place} is empty: give a text, e.g. "Who wrote Hamlet?"')
    return questions


@dataclass(frozen=True, slots=True)
class Ranked:
    """A passage with its retrieval or reranking score.  Greater is better; only scores of one ranker compare."""

    passage: Passage
    score: float


@dataclass(frozen=True, slots=True)
class Answer:
    """What a system returns for one question."""

    question_id: str
    text: str  # empty when no reader is configured
    evidence: tuple[Ranked, ...]  # best first; never more than the system's budget k
    logprob: float | None = None  # log-probability of `text`, nats; None without a reader
    costs: dict[str, float] = field(default_factory=dict)  # retriever_calls, model_calls, tokens, seconds/<stage>, ...
    notes: dict[str, object] = field(default_factory=dict)  # further information about the answer; JSON types only
