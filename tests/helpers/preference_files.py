"""Folders of preferences, as `infer.py preferences` writes them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from common.preferences import Candidate, RewritePreferences
from common.records import TEXT_VERSION
from datamodules.formats.preferences import LAYOUT, MANIFEST, ROWS, preference_lines


def greedy_preferences(
    question: str, gains: Mapping[str, float], history: Sequence[str] = (), reward: float = 0.2
) -> list[RewritePreferences]:
    """One row per strategy, with its greedy rewrite alone.

    Args:
        question: Its text.
        gains: Strategy -> reward of the rewrite minus that of the question.
        history: Earlier turns.
        reward: Of the question.
    """
    return [
        RewritePreferences(
            question, question, name, reward, (Candidate(f"{name} of it", reward + gain, times=0, greedy=True),),
            tuple(history)
        )
        for name, gain in gains.items()
    ]  # fmt: skip


def write_preferences(folder: Path, rows: Sequence[RewritePreferences], round_: int = 1) -> Path:
    """The folder, with its manifest."""
    folder.mkdir(exist_ok=True)
    (folder / ROWS).write_text("".join(preference_lines(rows)))
    (folder / MANIFEST).write_text(
        json.dumps({"layout": LAYOUT, "text_version": TEXT_VERSION, "round": round_, "fused": True, "depth": 5})
    )
    return folder
