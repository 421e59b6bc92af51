"""The folder of feedback: its rows, and the manifest with what they came from and their counts."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from common.feedback import Candidate, RewriteFeedback, WordCandidate
from common.files import digests, read_json, sha256, write_json
from common.outputs import OutputFolder, listed_files
from common.words import words_of
from datamodules.formats.feedback import (
    FEEDBACK_LAYOUTS,
    MANIFEST,
    REWRITE,
    ROWS,
    WORD,
    feedback_lines,
    rewrite_feedback,
    word_feedback,
)
from harness.feedback.drafts import Row
from harness.runtime.provenance import configuration
from models.serving_manifest import CURE
from models.serving_manifest import MANIFEST as SERVING

OUTPUT = OutputFolder(
    "`infer.py feedback`",
    "a folder of retrieval feedback",
    listed_files(MANIFEST, lambda manifest: manifest.get("layout") in FEEDBACK_LAYOUTS),
)
ROUND = "round"  # key of the manifests of feedback and of the models that learned from it


def sampler_facts(rewriter: object) -> dict[str, Any]:
    """What wrote the candidates, and the round.

    1, or one more than that of the feedback that the model has learned from.
    """
    folder = getattr(rewriter, "serving", None)
    facts: dict[str, Any] = {"rewriter": getattr(rewriter, "name", type(rewriter).__name__)}
    if folder is None:
        return {ROUND: 1, "sampler": {**facts, "configuration": configuration(rewriter)}}
    manifest = Path(folder) / SERVING
    before = read_json(manifest, CURE).get(ROUND, 0)
    return {ROUND: before + 1, "sampler": {**facts, "serving": str(folder), "sha256": sha256(manifest)}}


def counts_of(rows: Sequence[Row], skipped: Mapping[str, int]) -> dict[str, Any]:
    """Counts and mean rewards.

    reward           means over the rows: of the question itself, the greedy candidate, a sample, the best sample; None
                     without one
    unchanged_share  share of greedy candidates, and of samples, that leave the question as it is
    words            of choices of words: how many join and how many are left out
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
        **({"words": words} if (words := _words(rows)) else {}),
        "skipped": dict(Counter(skipped).most_common()),
    }


def _words(rows: Sequence[Row]) -> dict[str, dict[str, float | None]]:
    """Mean numbers of words that join and that are left out, of greedy choices and of samples; empty for texts."""
    choices = [each for row in rows for each in row.candidates if isinstance(each, WordCandidate)]
    if not choices:
        return {}
    return {
        name: {
            "greedy": _mean([(of(each), 1) for each in choices if each.greedy]),
            "sample": _mean([(of(each), each.times) for each in choices]),
        }
        for name, of in (("join", lambda each: len(each.joins)), ("left_out", lambda each: len(each.left_out)))
    }


def _unchanged(row: Row, candidate: Candidate | WordCandidate) -> bool:
    if isinstance(candidate, WordCandidate):
        return not candidate.left_out and not candidate.joins
    return [word.text for word in words_of(candidate.rewrite)] == [word.text for word in words_of(row.question)]


def _mean(weighted: Sequence[tuple[float, int]]) -> float | None:
    count = sum(times for _, times in weighted)
    return round(sum(value * times for value, times in weighted) / count, 6) if count else None


def counts_text(counts: Mapping[str, Any]) -> str:
    """The counts in one line."""
    reward = {name: mean for name, mean in counts["reward"].items() if mean is not None}
    means = ", ".join(f"{name.replace('_', ' ')} {mean:.4f}" for name, mean in reward.items())
    words = counts.get("words", {})
    sampled = ", ".join(f"{each['sample']:.1f} {name.replace('_', ' ')}" for name, each in words.items())
    sampled = f"; words of a sample: {sampled}" if words else ""
    skipped = "".join(f"; {count:,} skipped ({reason})" for reason, count in counts["skipped"].items())
    return (
        f"{counts['questions']:,} questions, {counts['candidates']:,} candidates; mean reward: "
        f"{means}{sampled}{skipped}."
    )


def from_rows(rows: Sequence[Mapping[str, Any]]) -> list[Row]:
    """The records of rows as the file has them."""
    return [word_feedback(row) if "passages" in row else rewrite_feedback(row) for row in rows]


def write_folder(folder: Path, rows: Sequence[Row], facts: Mapping[str, Any]) -> None:
    """Write rows and manifest into an empty folder."""
    layout = REWRITE if isinstance(rows[0], RewriteFeedback) else WORD
    with (folder / ROWS).open("w", encoding="utf-8") as file:
        file.writelines(feedback_lines(rows))
    write_json(folder / MANIFEST, {"layout": layout, **facts, "sha256": digests(folder)})
