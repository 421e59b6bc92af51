"""Controls: what a trained part finds when it alone is asked with another question's text.

They are measured once, on the checkpoint that is exported, by the process that exports. A part that finds as much as
with the question itself has learned the style of gold passages, not what is relevant. Nothing is drawn at random.
"""

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import pytorch_lightning as pl
import torch

from common.other_questions import FEWEST, MOST, other_texts
from common.progress import say
from common.records import Question

Item = TypeVar("Item")


def asked_otherwise(figure: str, questions: Iterable[Question], examples: Sequence[Item]) -> list[tuple[str, Item]]:
    """The validation examples of at most 200 questions, each with another question's text (`other_texts`).

    Args:
        figure: What is measured with them, for the line that says why it is not.
        questions: That of every example, in order; they are read once, and the texts of gold passages alone are kept.
        examples: Only those asked are read.

    Returns:
        In order; none, which is printed, where fewer than 30 questions have another one.
    """
    rows: list[tuple[str, str]] = []
    distinct: dict[tuple[str, str], Question] = {}
    for question in questions:
        rows.append((question.id, question.text))
        distinct.setdefault(rows[-1], replace(question, passages=question.gold_passages))
    found, names = other_texts([*distinct.values()], MOST), [*distinct]
    if len(found) < FEWEST:
        say(f"{figure}: not measured, {len(found)} validation questions have another one ({FEWEST} needed)", sys.stdout)
        return []
    texts = {names[place]: text for place, text in found.items()}
    return [(texts[name], examples[row]) for row, name in enumerate(rows) if name in texts]


def scored(part: Any, trainer: pl.Trainer, score: Callable[..., list[float]], *given: Any) -> list[float]:
    """What a trained part scores as in validation: on the trainer's device, in its precision, in evaluation mode.

    Lightning moves the part to the CPU when training ends, and the export that follows does so too.

    Args:
        part: With `inference_dtype`, which also holds in the threads that score on a CPU.
        trainer: In fp32 or bf16-mixed.
        score: The part's method.
        given: Its arguments.
    """
    training = part.training
    part.eval().to(trainer.strategy.root_device)
    part.inference_dtype = torch.bfloat16 if trainer.precision == "bf16-mixed" else torch.float32
    scores = score(*given)
    part.train(training).cpu()
    part.inference_dtype = None
    return scores
