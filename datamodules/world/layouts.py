"""Converts generated questions and passages to rows of the HotpotQA, FiD and FlashRAG layouts."""

import re

from datamodules.world.entities import Entity
from datamodules.world.passages import WrittenPassage
from datamodules.world.questions import contains
from datamodules.world.rephrasing import RephrasedQuestion
from datamodules.world.several_sources import SourcedQuestion
from datamodules.world.world import QuestionWithContext

TYPES = {  # question kind -> HotpotQA's `type`; other kinds are kept
    "comparison_fact": "comparison",
    "comparison_name": "comparison",
    "comparison_same": "comparison",
}
LEVELS = {1: "easy", 2: "medium", 3: "hard", 4: "hard"}
_WORD = re.compile(r"\w+")
Passages = dict[Entity, WrittenPassage]


def hotpotqa(row: QuestionWithContext, name: str, passages: Passages) -> dict:
    """A row as in `hotpot_dev_distractor_v1.json`.  `type` may also be single, bridge3 or bridge4."""
    generated = row.generated
    facts = [(passages[step.entity], step.relation) for step in generated.steps]
    return {
        "_id": name,
        "answer": generated.answer,
        "question": generated.question,
        "supporting_facts": [[passage.title, passage.sentence_of[relation]] for passage, relation in facts],
        "context": [[passages[e].title, list(passages[e].sentences)] for e in row.context],
        "type": TYPES.get(generated.kind, generated.kind),
        "level": LEVELS[len(generated.steps)],
    }


def rephrased_hotpotqa(one: RephrasedQuestion, name: str, passages: Passages) -> dict:
    """A row as of `hotpotqa`, whose `type` is the way of rephrasing.

    Readers of the layout ignore the fields after it.
    """
    row = hotpotqa(one.base, name, passages)
    source = {"source_id": one.source, "source_type": row["type"], "clean_question": one.base.generated.clean}
    return {**row, "question": one.question, "type": one.kind, **source}


def fid(row: QuestionWithContext, name: str, passages: Passages) -> dict:
    """A row of FiD and DPR, with the `hasanswer` and `isgold` fields of the "Lost in the Middle" files."""
    generated = row.generated
    gold = {step.entity for step in generated.steps}
    contexts = [(passages[entity], entity in gold) for entity in row.context]
    contexts += [(part, False) for part in row.parts]
    words = set(_WORD.findall(generated.question.casefold()))

    def shared_words(one: tuple[WrittenPassage, bool]) -> tuple[int, str]:
        text = f"{one[0].title} {one[0].text}"
        return -len(words & set(_WORD.findall(text.casefold()))), text

    contexts.sort(key=shared_words)  # in retrieval order, as in such files: by words shared with the question
    rows = [
        {
            "title": passage.title,
            "text": passage.text,
            "hasanswer": contains(passage.text, generated.answer),
            "isgold": is_gold,
        }
        for passage, is_gold in contexts
    ]
    return {"id": name, "question": generated.question, "answers": [generated.answer], "ctxs": rows}


def flashrag_passage(number: int, passage: WrittenPassage) -> dict:
    """A row of a FlashRAG corpus: quoted title, line break, text."""
    return {"id": str(number), "contents": f'"{passage.title}"\n{passage.text}'}


def sourced_flashrag(one: SourcedQuestion, name: str) -> dict:
    """A row of FlashRAG's questions, whose `type` is the share: which sources state the fact."""
    return {
        "id": name,
        "question": one.base.question,
        "golden_answers": [one.base.answer],
        "metadata": {"type": one.share, "source_id": one.source, "knowledge": one.knowledge},
    }
