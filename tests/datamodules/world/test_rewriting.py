"""Rewrites of the rephrased questions by every strategy.

What each says, that none reveals the answer, and splits without shared templates.
"""

import json
from pathlib import Path

from datamodules.formats.rewrites import read_rewrites
from datamodules.world.facts import RELATIONS
from datamodules.world.phrases import SPLITS
from datamodules.world.questions import contains
from datamodules.world.rephrasing import RephrasedQuestion
from datamodules.world.rewriting import APPEARED
from models.dmqr.strategies import POOL


def every(made: dict[str, list[RephrasedQuestion]], kind: str = "") -> list[RephrasedQuestion]:
    return [one for split in SPLITS for one in made[split] if one.base.generated.kind.startswith(kind)]


def test_every_question_has_a_rewrite_by_every_strategy(folder: Path) -> None:
    for split in SPLITS:
        rows = json.loads((folder / f"rephrased_{split}.json").read_text())
        pairs = list(read_rewrites("rewrites", str(folder / f"rewrites_{split}.jsonl")))
        assert [(pair.question, pair.strategy) for pair in pairs] == [
            (row["question"], strategy) for row in rows for strategy in POOL
        ]


def test_no_rewrite_reveals_the_answer_or_a_bridge_entity(made: dict[str, list[RephrasedQuestion]]) -> None:
    for one in every(made):
        generated = one.base.generated
        hidden = [] if generated.answer in ("yes", "no") else [generated.answer]
        if not generated.kind.startswith("comparison"):
            hidden += [step.entity.name for step in generated.steps[1:]]
        shown = hidden if generated.kind != "comparison_name" else []  # one of the two names in the question
        for text in one.rewrites.values():
            assert not any(contains(text, each) for each in shown)


def test_no_template_of_pseudo_answers_serves_two_splits() -> None:
    templates = [set(APPEARED.of(split)) for split in SPLITS]
    for relation in RELATIONS.values():
        for used, split in zip(templates, SPLITS, strict=True):
            used |= set(relation.statements.of(split))
    assert not (templates[0] & templates[1] | templates[0] & templates[2] | templates[1] & templates[2])
