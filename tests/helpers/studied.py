"""A study's answers and findings together, as the engine asks for them."""

from collections.abc import Sequence
from dataclasses import fields
from types import SimpleNamespace
from typing import Any

from common.records import Question
from harness.evaluation.engine import measure
from harness.evaluation.study import Settings


def studied(study: Any, system: Any, questions: Sequence[Question], settings: Settings) -> Any:
    """All fields of what was asked and of what was found."""
    measured = measure(system, questions, study, settings)
    both = [(each, field.name) for each in (measured.asked, measured.findings) for field in fields(each)]
    return SimpleNamespace(**{name: getattr(each, name) for each, name in both})
