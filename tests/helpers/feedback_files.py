"""Folders of retrieval feedback, as `infer.py feedback` writes them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from common.feedback import Candidate, RewriteFeedback
from datamodules.formats.feedback import MANIFEST, REWRITE, ROWS, feedback_lines


def greedy_feedback(
    question: str, gains: Mapping[str, float], history: Sequence[str] = (), reward: float = 0.2
) -> list[RewriteFeedback]:
    """One row per strategy, with its greedy rewrite alone.

    Args:
        question: Its text.
        gains: Strategy -> reward of the rewrite minus that of the question.
        history: Earlier turns.
        reward: Of the question.
    """
    return [
        RewriteFeedback(
            question, question, name, reward, (Candidate(f"{name} of it", reward + gain, times=0, greedy=True),),
            tuple(history)
        )
        for name, gain in gains.items()
    ]  # fmt: skip


def write_feedback(folder: Path, rows: Sequence[RewriteFeedback]) -> Path:
    """The folder, with its manifest."""
    folder.mkdir(exist_ok=True)
    (folder / ROWS).write_text("".join(feedback_lines(rows)))
    (folder / MANIFEST).write_text(json.dumps({"layout": REWRITE, "round": 1}))
    return folder
