"""The report of a distillation: outcomes and costs of the rewrites, as text and as JSON, and the files."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from common.files import digests, seal_all, write_json
from common.outputs import OutputFolder, listed_files
from harness.rewriters.distilled import REASONS, UNCHANGED, Distilled

FILE = "rewrites.jsonl"
MANIFEST = "distillation.json"
OUTPUT = OutputFolder("`infer.py distill`", "a folder of distilled rewrites", listed_files(MANIFEST))


def write_folder(folder: Path, distilled: Distilled, facts: Mapping[str, Any]) -> None:
    """Write the training examples as JSON Lines, and the manifest, which holds the counts and the costs.

    Args:
        folder: An empty folder.
        distilled: The examples.
        facts: What they depend on; part of the manifest.
    """
    rows = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in distilled.rows)
    (folder / FILE).write_text(rows, encoding="utf-8")
    manifest = {
        **facts,
        "rewrites": {
            "kept": dict(distilled.kept),
            "dropped": {reason: dict(counts) for reason, counts in distilled.dropped.items()},
            "with_the_same_words_as_the_question": distilled.unchanged,
        },
        "failures": dict(distilled.words_of_failures.most_common()),
        "examples_of_dropped": distilled.examples,
        "costs": dict(distilled.costs),
        "sha256": digests(folder),
    }
    write_json(folder / MANIFEST, manifest)
    seal_all(folder)


def counts_text(distilled: Distilled) -> str:
    """What was kept and dropped, in one line."""
    dropped = {reason: sum(counts.values()) for reason, counts in distilled.dropped.items()}
    by_strategy = ", ".join(f"{strategy} {count:,}" for strategy, count in distilled.kept.items())
    told = [f"{distilled.kept.total():,} rewrites kept ({by_strategy or 'none'})"]
    if same := distilled.unchanged - dropped[UNCHANGED]:
        told.append(f"of these {REASONS[UNCHANGED]}: {same:,}")
    told += [f"dropped, {REASONS[reason]}: {count:,}" for reason, count in dropped.items() if count]
    return "; ".join(told)


def costs_text(costs: Mapping[str, float]) -> str:
    """The costs in one line."""
    counted = ", ".join(f"{name.replace('_', ' ')} {value:,.0f}" for name, value in costs.items() if name != "usd")
    return f"{counted}, " + (f"${costs['usd']:,.4f}" if "usd" in costs else "US dollars unknown (no prices)")
