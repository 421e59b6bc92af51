"""A small question-answering task that `tests.helpers.tiny_lm`'s causal LM has learned, as questions and prompts."""

import json
import random
from pathlib import Path

from common.records import Passage, Question
from tests.helpers.layout_rows import hotpot_row
from tests.helpers.tiny_lm import ATTRIBUTES, PLACES, VALUES, document, question

PROMPT = """\
source: tests
user: "${documents} Question: ${question}"
document: "${text}"
max_tokens: 8
"""


def write_prompt(folder: Path) -> Path:
    """The prompt that the tiny model was trained on; several documents are joined by empty lines."""
    file = folder / "tiny.yaml"
    file.write_text(PROMPT)
    return file


def reading_rows(count: int = 8, passages: int = 4, seed: int = 0) -> list[dict]:
    """Rows in HotpotQA's layout: each asks for one attribute of one place; other passages give it other values.

    The model reads what the last document says, so that it answers from each passage alone what stands in it.
    """
    chance, rows = random.Random(seed), []
    for number in range(count):
        attribute, place = chance.choice(ATTRIBUTES), PLACES[number % len(PLACES)]
        values = chance.sample(VALUES, passages - 1)
        values.append(values[0])  # two passages agree
        titles = [f"{place} {letter}" for letter in "ABCDEFGH"[:passages]]
        texts = [document(attribute, place, value) for value in values]
        context = zip(titles, texts, strict=True)
        rows.append(hotpot_row(f"q{number}", question(attribute, place), values[0], titles[:1], context))
    return rows


def write_rows(file: Path, **options: int) -> Path:
    """`reading_rows` as a file."""
    file.write_text(json.dumps(reading_rows(**options)))
    return file


def asked(count: int = 8, passages: int = 4, seed: int = 0) -> list[Question]:
    """`reading_rows` as records that ship their passages."""
    rows = reading_rows(count, passages, seed)
    shipped = [tuple(Passage.of(title, text) for title, (text,) in row["context"]) for row in rows]
    pairs = zip(rows, shipped, strict=True)
    return [Question(row["_id"], row["question"], (row["answer"],), own) for row, own in pairs]
