"""The report of a synthesis: the outcomes of the drafts, as text and as JSON, and the files."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from common.files import digests, seal_all, write_json
from common.outputs import OutputFolder, listed_files
from harness.synthesis.checks import REASONS
from harness.synthesis.pipeline import SynthesisOutcome

MANIFEST = "synthesis.json"
OUTPUT = OutputFolder("`infer.py synthesize`", "a folder of synthetic questions", listed_files(MANIFEST))


def write_folder(folder: Path, outcomes: Mapping[str, SynthesisOutcome], facts: Mapping[str, Any]) -> None:
    """Write the questions of each split as a JSON list, and the manifest, which holds the counts.

    Args:
        folder: An empty folder.
        outcomes: By split; one without questions has no file.
        facts: What the questions depend on; part of the manifest.
    """
    for split, outcome in outcomes.items():
        if outcome.rows:
            rows = ",\n".join(json.dumps(row, ensure_ascii=False) for row in outcome.rows)
            (folder / f"{split}.json").write_text(f"[{rows}]\n", encoding="utf-8")
    manifest = {
        **facts,
        "splits": {
            split: {
                "questions": len(outcome.rows),
                "drafts": outcome.drafts,
                "dropped": {reason: outcome.dropped[reason] for reason in REASONS},
                "costs": outcome.costs,
            }
            for split, outcome in outcomes.items()
        },
        "examples_of_dropped": {split: outcome.examples for split, outcome in outcomes.items()},
        "sha256": digests(folder),
    }
    write_json(folder / MANIFEST, manifest)
    seal_all(folder)


def counts_text(outcomes: Mapping[str, SynthesisOutcome]) -> str:
    """The counts of all splits together, with the reasons that occurred."""
    drafts = sum(outcome.drafts for outcome in outcomes.values())
    dropped: Counter[str] = sum((outcome.dropped for outcome in outcomes.values()), Counter())
    kept = sum(len(outcome.rows) for outcome in outcomes.values())
    lines = [("drafts", drafts), *((f"  {REASONS[reason]}", dropped[reason]) for reason in REASONS if dropped[reason])]
    lines += [("questions", kept), *((f"  {split}", len(outcome.rows)) for split, outcome in outcomes.items())]
    return shares_text(lines)


def shares_text(lines: Sequence[tuple[str, int]]) -> str:
    """Names with their counts and the shares of these in the first one, a line each."""
    width, whole = max(len(name) for name, _ in lines), max(lines[0][1], 1)
    return "\n".join(f"{name:<{width}}  {count:>9,}  {100 * count / whole:5.1f}%" for name, count in lines)


def advice(outcomes: Mapping[str, SynthesisOutcome]) -> str:
    """What to type if most questions that the reader answered were dropped because one passage is enough.

    Else empty.
    """
    enough = sum(outcome.dropped["one_passage_is_enough"] for outcome in outcomes.values())
    if enough <= sum(len(outcome.rows) for outcome in outcomes.values()):
        return ""
    return (
        f"{enough:,} questions were dropped because one of their passages is enough. A reader that never says that it "
        "does not know, such as a T5, guesses the answer from one passage: type --alone false for it."
    )
