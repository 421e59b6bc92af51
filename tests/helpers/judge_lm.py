"""A tiny causal LM trained to judge.

Its verdict depends on the value that it is asked about, as in `tests.helpers.tiny_lm`.

With the values in their order: every fifth is correct, the next incorrect, partly correct, correct, and judged by no
valid JSON. Passages are relevant by turns.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import yaml

from common.records import Answer, Question, Ranked
from tests.helpers.tiny_lm import PLACES, VALUES, Case, document, question, save_chat_lm

JUDGED = VALUES[:8]  # the values that it knows
INVALID = "maybe"
GRADES = ("correct", "incorrect", "partly correct", "correct", "")
PROMPTS = {  # the judge's prompts, in the few words that a tiny model learns
    "answer_prompt": {"user": "${question} Accepted: ${gold} Grade: ${answer} ."},
    "passage_prompt": {"user": "${question} Passage: ${documents}", "document": "${text}"},
}


class FirstPassage:
    """A reader: the value in the first passage, its last word."""

    def read(self, questions: Sequence[Question], evidence: Sequence[Sequence[Ranked]]) -> list[Answer]:
        """One answer per question; empty without a passage."""
        texts = [hits[0].passage.text.rstrip(" .").split()[-1] if hits else "" for hits in evidence]
        return [Answer(each.id, text, (), -0.5) for each, text in zip(questions, texts, strict=True)]


class LastPassage(FirstPassage):
    """A reader: the value in the last passage."""

    def read(self, questions: Sequence[Question], evidence: Sequence[Sequence[Ranked]]) -> list[Answer]:
        """One answer per question; empty without a passage."""
        return super().read(questions, [hits[::-1] for hits in evidence])


def judge_cases() -> list[Case]:
    """What the judge learns."""
    cases: list[Case] = []
    for number, value in enumerate(JUDGED):
        for place in PLACES:
            for gold in JUDGED:
                asked = question("river", place)
                grade = GRADES[number % len(GRADES)]
                reply = json.dumps({"reason": "so", "verdict": grade}) if grade else INVALID
                cases.append((f"{asked} Accepted: {gold} Grade: {value} .", reply))
                told = document("river", place, value)
                reply = json.dumps({"reason": "so", "relevant": number % 2 == 0})
                cases.append((f"{asked} Passage: <passage>\n{told}\n</passage>", reply))
    return cases


def save_judge(folder: Path, steps: int = 180) -> Path:
    """The trained model; its prompts lie beside it as `<option>.yaml`."""
    save_chat_lm(folder, judge_cases(), steps)
    for option, prompt in PROMPTS.items():
        (folder / f"{option}.yaml").write_text(yaml.safe_dump({**prompt, "max_tokens": 120}))
    return folder


def judge_options(folder: Path) -> list[str]:
    """The options of a command line that name the model and its prompts."""
    prompts = [word for option in PROMPTS for word in (f"--judge.{option}", str(folder / f"{option}.yaml"))]
    return [
        "--judge.llm",
        "harness.llm.local.CausalLm",
        "--judge.llm.model",
        str(folder),
        "--judge.llm.device",
        "cpu",
        *prompts,
    ]
