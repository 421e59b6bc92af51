"""The report of a distillation: outcomes and costs of the rewrites, as text and as JSON, and the files."""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from common.files import digests, seal_all, write_json
from common.outputs import OutputFolder, listed_files
from harness.rewriters.distilled import REASONS, UNCHANGED, Distilled

FILE = "rewrites.jsonl"
MANIFEST = "distillation.json"
_EXAMPLES = 3  # of dropped rewrites, per reason
OUTPUT = OutputFolder("`infer.py distill`", "a folder of distilled rewrites", listed_files(MANIFEST))


def write_folder(folder: Path, distilled: Distilled, facts: Mapping[str, Any]) -> None:
    """Write the training examples as JSON Lines, and the manifest, which holds the counts and the costs.

    Args:
        folder: An empty folder.
        distilled: The examples.
        facts: What they depend on; part of the manifest.
    """
    dropped = {reason: [each for each in distilled.dropped if each["reason"] == reason] for reason in REASONS}
    rows = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in distilled.rows)
    (folder / FILE).write_text(rows, encoding="utf-8")
    manifest = {
        **facts,
        "rewrites": {
            "kept": Counter(row["strategy"] for row in distilled.rows),
            "dropped": {reason: Counter(each["strategy"] for each in own) for reason, own in dropped.items()},
            "with_the_same_words_as_the_question": distilled.unchanged,
        },
        "failures": Counter(each["why"] for each in distilled.dropped if each["reason"] != UNCHANGED),
        "examples_of_dropped": {reason: own[:_EXAMPLES] for reason, own in dropped.items() if own},
        "costs": dict(distilled.costs),
        "sha256": digests(folder),
    }
    write_json(folder / MANIFEST, manifest)
    seal_all(folder)


def counts_text(distilled: Distilled) -> str:
    """What was kept and dropped, in one line."""
    kept = Counter(row["strategy"] for row in distilled.rows)
    dropped = Counter(each["reason"] for each in distilled.dropped)
    by_strategy = ", ".join(f"{strategy} {count:,}" for strategy, count in kept.items())
    told = [f"{kept.total():,} rewrites kept ({by_strategy or 'none'})"]
    if same := distilled.unchanged - dropped[UNCHANGED]:
        told.append(f"of these {REASONS[UNCHANGED]}: {same:,}")
    told += [f"dropped, {words}: {dropped[reason]:,}" for reason, words in REASONS.items() if dropped[reason]]
    return "; ".join(told)


def costs_text(costs: Mapping[str, float]) -> str:
    """The costs in one line."""
    counted = ", ".join(f"{name.replace('_', ' ')} {value:,.0f}" for name, value in costs.items() if name != "usd")
    return f"{counted}, " + (f"${costs['usd']:,.4f}" if "usd" in costs else "US dollars unknown (no prices)")
