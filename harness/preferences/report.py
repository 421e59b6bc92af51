"""The folder of preferences: its rows, and the manifest with their origin and their counts."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from common.files import digests, read_json, seal_all, sha256, write_json
from common.outputs import OutputFolder, listed_files
from common.preferences import Candidate, RewritePreferences
from common.records import TEXT_VERSION
from common.words import words_of
from datamodules.formats.preferences import LAYOUT, MANIFEST, ROWS, preference_lines
from harness.runtime.provenance import configuration
from models.serving_manifest import CURE
from models.serving_manifest import MANIFEST as SERVING

OUTPUT = OutputFolder(
    "`infer.py preferences`",
    "a folder of preferences",
    listed_files(MANIFEST, lambda manifest: manifest.get("layout") == LAYOUT),
)
ROUND = "round"  # key of the manifests of preferences and of the models that learned from them


def sampler_facts(rewriter: object) -> dict[str, Any]:
    """The rewriter of the candidates, and the round.

    1, or one more than that of the preferences that the model has learned from.
    """
    folder = getattr(rewriter, "serving", None)
    facts: dict[str, Any] = {"rewriter": getattr(rewriter, "name", type(rewriter).__name__)}
    if folder is None:
        return {ROUND: 1, "sampler": {**facts, "configuration": configuration(rewriter)}}
    manifest = Path(folder) / SERVING
    before = read_json(manifest, CURE).get(ROUND, 0)
    return {ROUND: before + 1, "sampler": {**facts, "serving": str(folder), "sha256": sha256(manifest)}}


def counts_of(rows: Sequence[RewritePreferences], skipped: Mapping[str, int]) -> dict[str, Any]:
    """Counts and mean rewards.

    reward           means over the rows: of the question itself, the greedy candidate, a sample, the best sample; None
                     without one
    unchanged_share  share of greedy candidates, and of samples, that leave the question as it is
    """
    greedy = [next((each for each in row.candidates if each.greedy), None) for row in rows]
    best = [max((each.reward for each in row.candidates if each.times), default=None) for row in rows]
    samples = [_mean([(each.reward, each.times) for each in row.candidates]) for row in rows]
    unchanged = [(_unchanged(row, each), each) for row in rows for each in row.candidates]
    return {
        "questions": len({row.question_id for row in rows}),
        "rows": len(rows),
        "candidates": sum(len(row.candidates) for row in rows),
        "reward": {
            "question": _mean([(row.question_reward, 1) for row in rows]),
            "greedy": _mean([(each.reward, 1) for each in greedy if each is not None]),
            "sample": _mean([(each, 1) for each in samples if each is not None]),
            "best_of_n": _mean([(each, 1) for each in best if each is not None]),
        },
        "unchanged_share": {
            "greedy": _mean([(same, 1) for same, each in unchanged if each.greedy]),
            "sample": _mean([(same, each.times) for same, each in unchanged]),
        },
        "skipped": dict(Counter(skipped).most_common()),
    }


def _unchanged(row: RewritePreferences, candidate: Candidate) -> bool:
    return [word.text for word in words_of(candidate.rewrite)] == [word.text for word in words_of(row.question)]


def _mean(weighted: Sequence[tuple[float, int]]) -> float | None:
    count = sum(times for _, times in weighted)
    return round(sum(value * times for value, times in weighted) / count, 6) if count else None


def counts_text(counts: Mapping[str, Any]) -> str:
    """The counts in one line."""
    reward = {name: mean for name, mean in counts["reward"].items() if mean is not None}
    means = ", ".join(f"{name.replace('_', ' ')} {mean:.4f}" for name, mean in reward.items())
    skipped = "".join(f"; {count:,} skipped ({reason})" for reason, count in counts["skipped"].items())
    return f"{counts['questions']:,} questions, {counts['candidates']:,} candidates; mean reward: {means}{skipped}."


def write_folder(folder: Path, rows: Sequence[RewritePreferences], facts: Mapping[str, Any]) -> None:
    """Write rows and manifest into an empty folder."""
    with (folder / ROWS).open("w", encoding="utf-8") as file:
        file.writelines(preference_lines(rows))
    write_json(folder / MANIFEST, {"layout": LAYOUT, "text_version": TEXT_VERSION, **facts, "sha256": digests(folder)})
    seal_all(folder)
