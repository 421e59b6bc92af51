"""A tiny causal LM that has learned rewrites of a few questions of `tests.helpers.tiny_lm`.

By two strategies, and by its own choice.

Where it chooses, it takes both strategies for the first place and keywords alone for the others. For one place it
replies in no form that can be used.
"""

from pathlib import Path
from string import Template

import yaml

from models.dmqr.strategies import Pool
from tests.helpers.tiny_lm import PLACES, Case, question, save_chat_lm

STRATEGIES = ("kwr", "par")
KNOWN = PLACES[:4]  # the places that it is asked about
UNUSABLE = KNOWN[-1]  # the place for which it replies nonsense
POOL = {
    "strategies": [
        {"name": "kwr", "title": "Keywords", "description": "Its keywords.", "guideline": "for all."},
        {"name": "par", "title": "Answer", "description": "An answer.", "guideline": "for rivers."},
    ],
    "demonstrations": [
        {"question": "?", "rewrites": {"kwr": "river", "par": "The river"}, "reason": "river"},
    ],
}


def rewrites(place: str) -> dict[str, str]:
    """What it makes of a question."""
    return {"kwr": f"river, {place}", "par": f"The river of {place} is"}


def write_pool(folder: Path) -> Path:
    """The pool whose prompts it was trained on."""
    file = folder / "pool.yaml"
    file.write_text(yaml.safe_dump(POOL))
    return file


def rewriting_cases(pool: Pool) -> list[Case]:
    """What it learns."""
    cases = []
    prompts = {adaptive: Template(_prompt(pool, adaptive)) for adaptive in (False, True)}
    for place in KNOWN:
        made = rewrites(place)
        lines = [f"Keywords: {made['kwr']}", f"Answer: {made['par']}"]
        chosen = [*(lines if place == KNOWN[0] else lines[:1]), "reason: river"]
        for adaptive, reply in ((False, lines), (True, chosen)):
            text = "Sure" if place == UNUSABLE else "\n".join(reply)
            cases.append((prompts[adaptive].substitute(question=question("river", place)), text))
    return cases


def _prompt(pool: Pool, adaptive: bool) -> str:
    return pool.selection_prompt(STRATEGIES) if adaptive else pool.rewriting_prompt(STRATEGIES)


def save_rewriter(folder: Path, steps: int = 110) -> Path:
    """The trained model; its pool lies beside it as `pool.yaml`."""
    folder.mkdir()
    return save_chat_lm(folder, rewriting_cases(Pool.load(write_pool(folder))), steps, 6e-3)
