"""The passages that each question's examples are drawn from, by number: a draw needs no text.

A question's passages are numbered: those of its file, then those of mined files that are no passage of its file. The
draws of `datamodules.examples` compare passages by their ids alone, so they are made on passages that have numbers for
ids, with the same results.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from common.progress import track
from common.records import Gold, Passage, Question, passage_text
from datamodules.cache.questions import CachedQuestions
from datamodules.cache.record_cache import Arrays
from datamodules.examples.triples import noise_of
from datamodules.formats.mined_negatives import Mined

_NOT_SHIPPED = ("not shipped",)  # no title of a passage without a text, which has none
_ABSENT = "absent"


class Candidates:
    """The numbered passages of questions.

    Args:
        questions: The questions.
        mined: Of all questions, by question id.
    """

    def __init__(self, questions: CachedQuestions, mined: Mapping[str, Mined]) -> None:
        self.questions, self._mined = questions, mined
        self.ids = [question.id for question in questions.without_passages()]
        self.whole = lru_cache(64)(self._whole)
        self._light = [Passage(str(number), "") for number in range(64)]

    def use(self, arrays: Arrays) -> None:
        """Take what `arrays` computed, perhaps at an earlier start."""
        self.copies = int(arrays["copies"])  # of gold passages, which are no negatives
        self.first, self._ends, self._notes = arrays["first"], arrays["ends"], arrays["notes"].tobytes()

    def arrays(self) -> Arrays:
        """Offsets: the number of each question's text (its passages' follow), and the numbers that draws need."""
        counts, notes, copies = [], [], 0
        for place in track(range(len(self.ids)), len(self.ids), "numbering the passages of questions"):
            question, passages = self._whole(place)
            number = {passage.id: n for n, passage in enumerate(passages)}
            mined = self._mined.get(question.id, Mined())
            noise = noise_of(question, mined)
            hits = {
                str(number[anchor]): [str(number[each]) for each in found if each in number]
                for anchor, found in mined.hits.items()
                if anchor in number
            }
            note = {
                "gold": [number[p.id] for p in question.gold_passages],
                "own": [number[p.id] for p in noise.own],
                "absent": sum(id_ not in number for id_ in question.support),
                "unshipped": bool(question.gold.titles),
                "mined": [number[p.id] for p in noise.mined],
                "hits": hits,
            }
            counts.append(1 + len(passages))
            copies += noise.copies
            notes.append(json.dumps({key: value for key, value in note.items() if value}).encode())
        return {
            "first": np.array([0, *counts], np.int64).cumsum(),
            "ends": np.array([0, *map(len, notes)], np.int64).cumsum(),
            "copies": np.array(copies),
            "notes": np.frombuffer(b"".join(notes), np.uint8),
        }

    def light(self, place: int) -> tuple[Question, Mined]:
        """A question for draws: its passages have their numbers as ids, and no text."""
        note: dict[str, Any] = json.loads(self._notes[self._ends[place] : self._ends[place + 1]])
        gold, own = (self._passages(note.get(name, ())) for name in ("gold", "own"))
        question = Question(
            self.ids[place], "", passages=(*gold, *own),
            support=(*(p.id for p in gold), *[_ABSENT] * note.get("absent", 0)),
            gold=Gold(titles=_NOT_SHIPPED if note.get("unshipped") else ()),
        )  # fmt: skip
        return question, Mined(self._passages(note.get("mined", ())), note.get("hits"))

    def texts(self) -> Iterator[str]:
        """All texts in the order of their numbers: each question, followed by its passages."""
        for place in range(len(self.ids)):
            question, passages = self._whole(place)
            yield question.text
            yield from map(passage_text, passages)

    def _whole(self, place: int) -> tuple[Question, list[Passage]]:
        """A question and its numbered passages."""
        question = self.questions[place]
        first: dict[str, Passage] = {}
        for passage in (*question.passages, *self._mined.get(question.id, ())):
            first.setdefault(passage.id, passage)
        return question, list(first.values())

    def _passages(self, numbers: Sequence[int]) -> tuple[Passage, ...]:
        while numbers and max(numbers) >= len(self._light):
            self._light.append(Passage(str(len(self._light)), ""))
        return tuple(self._light[number] for number in numbers)
