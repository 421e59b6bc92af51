"""Questions and passages of the world as rows of the official layouts."""

import re

from datamodules.world.entities import Entity
from datamodules.world.passages import Written
from datamodules.world.questions import Asked, contains
from datamodules.world.world import Shipped

TYPES = {  # our kinds as HotpotQA's `type`; chains beyond two hops keep their own
    "comparison_fact": "comparison",
    "comparison_name": "comparison",
    "comparison_same": "comparison",
}
LEVELS = {1: "easy", 2: "medium", 3: "hard", 4: "hard"}
_WORD = re.compile(r"\w+")
Passages = dict[Entity, Written]


def hotpotqa(shipped: Shipped, name: str, passages: Passages) -> dict:
    """A row as in `hotpot_dev_distractor_v1.json`.  `type` is bridge or comparison as there, or single, bridge3, bridge4."""
    asked = shipped.asked
    support = []
    for step in asked.steps:
        passage = passages[step.entity]
        support.append([passage.title, passage.said_in[step.relation]])
    return {
        "_id": name,
        "answer": asked.answer,
        "question": asked.question,
        "supporting_facts": support,
        "context": [[passages[e].title, list(passages[e].sentences)] for e in shipped.context],
        "type": TYPES.get(asked.kind, asked.kind),
        "level": LEVELS[len(asked.steps)],
    }


def musique(shipped: Shipped, name: str, passages: Passages) -> dict:
    """A row as in `musique_ans_*.jsonl`; a comparison is decomposed into its two look-ups."""
    asked, context = shipped.asked, shipped.context
    gold = {step.entity for step in asked.steps}
    return {
        "id": f"{len(asked.steps)}hop__{name}",
        "paragraphs": [
            {
                "idx": number,
                "title": passages[entity].title,
                "paragraph_text": passages[entity].text,
                "is_supporting": entity in gold,
            }
            for number, entity in enumerate(context)
        ],
        "question": asked.question,
        "question_decomposition": [
            {
                "id": number,
                "question": step.question,
                "answer": step.answer,
                "paragraph_support_idx": context.index(step.entity),
            }
            for number, step in enumerate(asked.steps, start=1)
        ],
        "answer": asked.answer,
        "answer_aliases": [],
        "answerable": True,
    }


def fid(shipped: Shipped, name: str, passages: Passages) -> dict:
    """A row as FiD and DPR read it, with the marks of NQ's "Lost in the Middle" files."""
    asked = shipped.asked
    gold = {step.entity for step in asked.steps}
    shown = [(passages[entity], entity in gold) for entity in shipped.context]
    shown += [(part, False) for part in shipped.parts]
    words = set(_WORD.findall(asked.question.casefold()))

    def shared_words(one: tuple[Written, bool]) -> tuple[int, str]:
        text = f"{one[0].title} {one[0].text}"
        return -len(words & set(_WORD.findall(text.casefold()))), text

    shown.sort(
        key=shared_words
    )  # as in such files: in the order of a retriever, here of words shared with the question
    contexts = [
        {
            "title": passage.title,
            "text": passage.text,
            "hasanswer": contains(passage.text, asked.answer),
            "isgold": is_gold,
        }
        for passage, is_gold in shown
    ]
    return {"id": name, "question": asked.question, "answers": [asked.answer], "ctxs": contexts}


def flashrag_passage(number: int, passage: Written) -> dict:
    """A corpus row as FlashRAG reads it: quoted title, line break, text."""
    return {"id": str(number), "contents": f'"{passage.title}"\n{passage.text}'}


def kinds(asked: list[Asked]) -> dict[str, int]:
    """Number of questions of each kind."""
    counts: dict[str, int] = {}
    for one in asked:
        counts[one.kind] = counts.get(one.kind, 0) + 1
    return dict(sorted(counts.items()))
