"""Cache of pair scores: each pair is scored once; finished chunks are saved in a journal and reused.

Each line of the journal is {"seconds": 1.2, "pairs": [[question, d1, d2, probability], ...]}. Several processes may use
one file at the same time: each appends its chunks under a lock, and reads those of the others before.
"""

import hashlib
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from common.files import sha256
from common.progress import say, track_batches
from common.records import Passage
from harness.interfaces import PairScorer
from harness.runtime.journal import Journal
from models.serving_manifest import MANIFEST
from models.token_count import tokens_read

Triple = tuple[str, Passage, Passage]  # question text, d1, d2
_Key = tuple[str, str, str]
_Chunk = tuple[dict[_Key, float], float, int]  # probabilities, and the seconds and tokens of computing them
_PAIRS_PER_CHUNK = 512  # scored, then saved: an interruption loses at most this many
_FORMAT = 2  # version of the lines; increase it when their meaning changes
_WAIT_SECONDS = 60.0  # for another process that is appending, which takes it a fraction of a second


def scores_file(folder: Path, serving: Path, scorer: PairScorer) -> Path:
    """The file in a folder for the scores of a served classifier.

    Another one for other weights, and for another precision.
    """
    half = "-bf16" if "bfloat16" in str(getattr(scorer, "inference_dtype", "")) else ""
    return folder / f"scores-{sha256(serving / MANIFEST)[:16]}{half}.jsonl"


class ScoreCache:
    """Scores each triple once.

    Args:
        scorer: The classifier.
        file: JSON Lines file of finished chunks, read and appended to; None keeps scores in memory only.  `scores_file`
            names it after the classifier and the precision, and the name is the file's first line: scores of different
            classifiers or precisions are not mixed.

    Raises:
        ArtifactError: If the file is corrupt before its last line (an interruption may leave an incomplete last line).
            Scoring raises it if saving fails.
    """

    def __init__(self, scorer: PairScorer, file: Path | None = None) -> None:
        self.scorer = scorer
        self.scored, self.seconds, self.tokens = 0, 0.0, 0  # pairs, scoring time and tokens, earlier runs included
        self._known: dict[_Key, float] = {}
        self._journal: Journal | None = None
        if file is not None:
            self._journal = Journal(file, {"scores": file.stem, "format": _FORMAT}, "--study.scores or --out")
            self._read(self._journal)
            if self.scored:
                say(f"{file}: reusing {self.scored:,} pair scores from earlier runs.")

    @property
    def seconds_per_pair(self) -> float:
        """Mean scoring time; 0 before the first pair."""
        return self.seconds / self.scored if self.scored else 0.0

    @property
    def tokens_per_pair(self) -> float:
        """Mean tokens of a pair; 0 before the first pair."""
        return self.tokens / self.scored if self.scored else 0.0

    def probabilities(self, triples: Sequence[Triple]) -> list[float]:
        """P(positive | q, d1, d2) of every triple, in order; unknown ones are scored and saved, chunk by chunk."""
        keys = [_key(triple) for triple in triples]
        todo = {key: triple for key, triple in zip(keys, triples, strict=True) if key not in self._known}
        for chunk in track_batches(_by_length(todo), len(todo), "scoring pairs"):
            started, tokens = time.perf_counter(), tokens_read(self.scorer)
            scores = self.scorer.probabilities([todo[key] for key in chunk])
            self._add(chunk, scores, time.perf_counter() - started, tokens_read(self.scorer) - tokens)
        return [self._known[key] for key in keys]

    def _add(self, chunk: Sequence[_Key], scores: Sequence[float], seconds: float, tokens: int) -> None:
        self._remember(dict(zip(chunk, scores, strict=True)), seconds, tokens)
        if self._journal is None:
            return
        pairs = [[*key, score] for key, score in zip(chunk, scores, strict=True)]
        row = {"seconds": seconds, "tokens": tokens, "pairs": pairs}
        with self._journal.locked(_WAIT_SECONDS):
            self._read(self._journal)
            self._journal.append(row)

    def _read(self, journal: Journal) -> None:
        """Take over the chunks that are new in the journal."""
        for probabilities, seconds, tokens in journal.read(_parse):
            self._remember(probabilities, seconds, tokens)

    def _remember(self, probabilities: dict[_Key, float], seconds: float, tokens: int) -> None:
        """Add the probabilities of a chunk; one that is known already stays as it was used."""
        for key, probability in probabilities.items():
            self._known.setdefault(key, probability)
        self.scored += len(probabilities)
        self.seconds += seconds
        self.tokens += tokens


def _parse(_: int, line: dict[str, Any]) -> _Chunk:
    """The chunk of a journal's line."""
    probabilities = {(question, d1, d2): float(score) for question, d1, d2, score in line["pairs"]}
    return probabilities, float(line["seconds"]), int(line["tokens"])


def _key(triple: Triple) -> _Key:
    question, d1, d2 = triple
    return hashlib.sha256(question.encode()).hexdigest()[:16], d1.id, d2.id


def _by_length(todo: dict[_Key, Triple]) -> Iterator[list[_Key]]:
    """Chunks of triples of similar length, longest first, to reduce padding."""
    order = sorted(todo, key=lambda key: -sum(len(part if isinstance(part, str) else part.text) for part in todo[key]))
    for start in range(0, len(order), _PAIRS_PER_CHUNK):
        yield order[start : start + _PAIRS_PER_CHUNK]
