"""A corpus about people and towns, with a language model that writes questions about it and answers them.

What it says of each passage is in the tables below, planted mistakes too.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path

from common.chat import Chat, Reply
from common.records import Passage

TOWNS = {"Rome": ("Tiber", "Zoe"), "Oslo": ("Aker", "Kai"), "Bonn": ("Rhine", "Uwe"), "Bath": ("Avon", "Joy")}
PEOPLE = {"Ann": "Rome", "Bob": "Oslo", "Cid": "Bonn", "Dora": "Bath", "Eve": "Rome", "Finn": "Oslo"}
CORPUS = [
    *(Passage.of(name, f"{name} lives in {town} .") for name, town in PEOPLE.items()),
    *(
        Passage.of(town, f"{town} lies on the {river} . Its mayor is {mayor} .")
        for town, (river, mayor) in TOWNS.items()
    ),
]
BY_TITLE = {passage.title: passage for passage in CORPUS}
MISREAD = "Bob"  # a wrong answer is given about this person
TOLD = "Dora"  # the question about this person contains its answer
GUESSED = "Eve"  # the town's passage alone gives the answer about this person

Row = tuple[str, tuple[Passage, ...], str]  # what is asked, the passages, what is said


def asked_about(name: str) -> str:
    """The question about where a person lives."""
    return f"Does {name} live in {PEOPLE[name]} ?" if name == TOLD else f"Where does {name} live ?"


def linked(name: str, what: str) -> str:
    """The question about the town where a person lives."""
    return f"What is the {what} of the town where {name} lives ?"


def written() -> list[Row]:
    """The question to each answer from its passages."""
    rows: list[Row] = [(town, (BY_TITLE[name],), asked_about(name)) for name, town in PEOPLE.items()]
    for town, facts in TOWNS.items():
        for what, answer in zip(("river", "mayor"), facts, strict=True):
            rows.append((answer, (BY_TITLE[town],), f"What is the {what} of {town} ?"))
            for name in (name for name, own in PEOPLE.items() if own == town):
                rows.append((answer, (BY_TITLE[name], BY_TITLE[town]), linked(name, what)))
    return rows


def read() -> list[Row]:
    """The answer to each question from its passages, and from one of two passages alone."""
    rows: list[Row] = []
    for answer, passages, question in written():
        name = passages[0].title
        rows.append((question, passages, "Paris" if name == MISREAD else answer))
        if len(passages) == 2:
            rows.append((question, passages[:1], "unknown"))
            rows.append((question, passages[1:], answer if name == GUESSED else "unknown"))
    return rows


def write_corpus(file: Path) -> Path:
    """The corpus as JSON Lines."""
    rows = [{"_id": str(number), "title": p.title, "text": p.text} for number, p in enumerate(CORPUS)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def by_titles(rows: Sequence[Row]) -> dict[tuple[str, ...], str]:
    """What is said, by what is asked and the titles of the passages."""
    return {(asked, *(passage.title for passage in passages)): said for asked, passages, said in rows}


class PeopleLlm:
    """A language model that knows the tables above."""

    name = "people"

    def __init__(self) -> None:
        self.questions, self.answers = by_titles(written()), by_titles(read())

    def reply(self, chats: Sequence[Chat]) -> list[Reply]:
        """What the tables say to each chat: a question as the JSON object asked for, or an answer."""
        return [Reply(self._said(next(m.content for m in chat.messages if m.role == "user"))) for chat in chats]

    def _said(self, prompt: str) -> str:
        titles = re.findall(r"^Title: (.*)$", prompt, re.MULTILINE)
        if asked := re.search(r"^Question: (.*)$", prompt, re.MULTILINE):
            return self.answers.get((asked[1], *titles), "unknown")
        (answer,) = re.findall(r"^- Prefer a question about .*: (.*)$", prompt, re.MULTILINE)
        question = self.questions.get((answer, *titles))
        return json.dumps({"question": question, "answer": answer}) if question else "I cannot do that."
