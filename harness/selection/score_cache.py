"""Cache of pair scores: each pair is scored once; finished chunks are saved and reused (`harness.runtime.memo`)."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from common.files import sha256
from common.records import Passage
from harness.interfaces import PairScorer
from harness.runtime.memo import Memo
from models.serving_manifest import MANIFEST
from models.token_count import tokens_read

Triple = tuple[str, Passage, Passage]  # question text, d1, d2
_PAIRS_PER_CHUNK = 512  # scored, then saved: an interruption loses at most this many
_FORMAT = 3  # version of the lines; increase it when their meaning changes


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
        file: For the scores, read and appended to; None keeps them in memory only. `scores_file` names it after the
            classifier and the precision, and the name is the file's first line: scores of different classifiers or
            precisions are not mixed.

    Raises:
        ArtifactError: If the file is corrupt, see `harness.runtime.memo.Memo`.
    """

    def __init__(self, scorer: PairScorer, file: Path | None = None) -> None:
        self.scorer = scorer
        head = {"scores": file.stem, "format": _FORMAT} if file else None
        self.memo = Memo(file, head, "pair scores", "--study.scores or --out")

    @property
    def seconds_per_pair(self) -> float:
        """Mean scoring time; 0 before the first pair."""
        return self.memo.seconds / self.memo.count if self.memo.count else 0.0

    @property
    def tokens_per_pair(self) -> float:
        """Mean tokens of a pair; 0 before the first pair."""
        return self.memo.tokens / self.memo.count if self.memo.count else 0.0

    def probabilities(self, triples: Sequence[Triple]) -> list[float]:
        """P(positive | q, d1, d2) of every triple, in order; unknown ones are scored and saved, chunk by chunk."""

        def score(places: Sequence[int]) -> list[float]:
            return [float(each) for each in self.scorer.probabilities([triples[place] for place in places])]

        return self.memo.values(
            [*map(_key, triples)], score, "scoring pairs", _PAIRS_PER_CHUNK,
            lambda place: _length(triples[place]), lambda: tokens_read(self.scorer),
        )  # fmt: skip


def _key(triple: Triple) -> str:
    question, d1, d2 = triple
    return "\n".join([hashlib.sha256(question.encode()).hexdigest()[:16], d1.id, d2.id])


def _length(triple: Triple) -> int:
    return sum(len(part if isinstance(part, str) else part.text) for part in triple)
