"""A study's answers and findings together, as the engine asks for them."""

from collections.abc import Sequence
from dataclasses import fields
from types import SimpleNamespace
from typing import Any

from common.records import Question
from harness.evaluation.engine import measure
from harness.evaluation.settings import Settings


def studied(study: Any, system: Any, questions: Sequence[Question], settings: Settings) -> Any:
    """The system's answers, and all fields of what was found."""
    measured = measure(system, questions, study, settings)
    found = {field.name: getattr(measured.findings, field.name) for field in fields(measured.findings)}
    return SimpleNamespace(answers=measured.answers, **found)
