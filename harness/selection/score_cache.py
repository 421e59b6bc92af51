"""Cache of pair scores: each pair is scored once; finished chunks are saved as JSON Lines and reused."""

import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from common.errors import ArtifactError
from common.files import sha256, write_errors
from common.progress import say, track_batches
from common.records import Passage
from harness.interfaces import PairScorer
from models.serving_manifest import MANIFEST

Triple = tuple[str, Passage, Passage]  # question text, d1, d2
_Key = tuple[str, str, str]
_PAIRS_PER_CHUNK = 512  # scored, then saved: an interruption loses at most this many


def scores_file(folder: Path, serving: Path, scorer: PairScorer) -> Path:
    """The file in a folder for the scores of a served classifier: another one for other weights, and for another precision."""
    half = "-bf16" if "bfloat16" in str(getattr(scorer, "inference_dtype", "")) else ""
    return folder / f"scores-{sha256(serving / MANIFEST)[:16]}{half}.jsonl"


class ScoreCache:
    """Scores each triple once.

    Args:
        scorer: The classifier.
        file: JSON Lines file of finished chunks, read and appended to; None keeps scores in memory only.  `scores_file`
            names it: scores of different classifiers or precisions must not be mixed.

    Raises:
        ArtifactError: If the file is corrupt before its last line (an interruption may leave an incomplete last line).
    """

    def __init__(self, scorer: PairScorer, file: Path | None = None) -> None:
        self.scorer, self.file = scorer, file
        self.scored, self.seconds = 0, 0.0  # pairs and scoring time, earlier runs included
        self._known: dict[_Key, float] = {}
        if file is not None and file.exists():
            self._resume(file)

    @property
    def seconds_per_pair(self) -> float:
        """Mean scoring time; 0 before the first pair."""
        return self.seconds / self.scored if self.scored else 0.0

    def probabilities(self, triples: Sequence[Triple]) -> list[float]:
        """P(positive | q, d1, d2) of every triple, in order; unknown ones are scored and saved, chunk by chunk."""
        keys = [_key(triple) for triple in triples]
        todo = {key: triple for key, triple in zip(keys, triples, strict=True) if key not in self._known}
        for chunk in track_batches(_by_length(todo), len(todo), "scoring pairs"):
            started = time.perf_counter()
            scores = self.scorer.probabilities([todo[key] for key in chunk])
            self._add(chunk, scores, time.perf_counter() - started)
        return [self._known[key] for key in keys]

    def _add(self, chunk: Sequence[_Key], scores: Sequence[float], seconds: float) -> None:
        self._known.update(zip(chunk, scores, strict=True))
        self.scored += len(chunk)
        self.seconds += seconds
        if self.file is None:
            return
        row = {"seconds": seconds, "pairs": [[*key, score] for key, score in zip(chunk, scores, strict=True)]}
        with write_errors(self.file, "Free space or choose another --out."):
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with self.file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")

    def _resume(self, file: Path) -> None:
        end_bytes = 0
        lines = file.read_bytes().splitlines(keepends=True)
        for number, line in enumerate(lines, start=1):
            try:
                if not line.endswith(b"\n"):
                    raise ValueError("incomplete")
                row = json.loads(line)
                chunk = {(question, d1, d2): float(score) for question, d1, d2, score in row["pairs"]}
                seconds = float(row["seconds"])
            except (ValueError, KeyError, TypeError) as error:
                if number == len(lines):
                    break
                raise ArtifactError(f"{file}, line {number} is corrupt: delete the file and run again.") from error
            self._known.update(chunk)
            self.scored += len(chunk)
            self.seconds += seconds
            end_bytes += len(line)
        if end_bytes < file.stat().st_size:
            with file.open("rb+") as incomplete:
                incomplete.truncate(end_bytes)
        say(f"{file}: reusing {self.scored:,} pair scores from earlier runs.")


def _key(triple: Triple) -> _Key:
    question, d1, d2 = triple
    return hashlib.sha256(question.encode()).hexdigest()[:16], d1.id, d2.id


def _by_length(todo: dict[_Key, Triple]) -> Iterator[list[_Key]]:
    """Chunks of triples of similar length, longest first, to reduce padding."""
    order = sorted(todo, key=lambda key: -sum(len(part if isinstance(part, str) else part.text) for part in todo[key]))
    for start in range(0, len(order), _PAIRS_PER_CHUNK):
        yield order[start : start + _PAIRS_PER_CHUNK]
