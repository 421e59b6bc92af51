"""The baseline of RE-RAG's Table 7.

A generator that was trained under the retriever's weights (Eq. 1-2), without the estimator, reads the contexts of the
study.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from common.errors import UserError
from common.files import sha256
from common.ranges import Precision
from harness.evaluation.rerag.candidates import CandidateSet, pack_matrix, unpack_matrix
from harness.evaluation.rerag.retrieval import QUESTIONS_AT_ONCE
from harness.runtime.resumable import ResumableBatches
from models.rerag.generator import Generator
from models.rerag.marginal_reader import MarginalReader
from models.rerag.model import GENERATOR, ReRagModel
from models.serving_manifest import MANIFEST


@dataclass(frozen=True)
class Baseline:
    """A generator trained with the retriever's weights, with the temperature of these weights."""

    serving: Path
    generator: Generator
    max_answer_tokens: int
    temperature: float

    @classmethod
    def load(cls, serving: Path, device: str, precision: Precision = "auto") -> "Baseline":
        """Load the generator of a serving folder.

        Raises:
            UserError: If it was trained with other weights, or with an estimator.
            MissingInputError: If the folder is missing.
            ArtifactError: If it is corrupt, of another kind or text format, or has no generator.
        """
        model = ReRagModel.load(serving, device, (GENERATOR,), precision)
        assert model.generator is not None  # required above
        if model.estimator is not None or model.relevance != "retriever" or model.retriever_temperature is None:
            found = "with an estimator" if model.estimator else f"with relevance {model.relevance or 'not recorded'}"
            raise UserError(
                f"study.baseline_serving: {serving} was trained {found}, and Table 7's baseline with relevance "
                "retriever: train it with configs/train/rerag_nq_baseline.yaml, or omit the option."
            )
        return cls(serving, model.generator, model.max_answer_tokens, model.retriever_temperature)

    @property
    def digest(self) -> str:
        """sha256 of the serving folder's manifest, which holds that of every file."""
        return sha256(self.serving / MANIFEST)

    def read(self, candidate_sets: Sequence[CandidateSet], saved: ResumableBatches) -> list[CandidateSet]:
        """The same candidates, read by this generator, with the retriever's weights that it was trained with.

        Args:
            candidate_sets: With the contexts that the study's generator has read.
            saved: Resumable batches for the results; must depend on all of the candidates, and on this generator.
        """
        reader = MarginalReader(self.generator, "thorough", self.max_answer_tokens)

        def work(batch: Sequence[CandidateSet]) -> list[dict[str, Any] | None]:
            contexts = [[each.passages[candidate] for candidate in each.column_of] for each in batch]
            return [pack_matrix(m) for m in reader.matrices([each.question.text for each in batch], contexts)]

        size = QUESTIONS_AT_ONCE
        batches = [candidate_sets[start : start + size] for start in range(0, len(candidate_sets), size)]
        read: list[CandidateSet] = []
        results = saved.run(batches, work, "reading by the baseline, batches")
        for batch, matrices in zip(batches, results, strict=True):
            for each, matrix in zip(batch, matrices, strict=True):
                logits_C = each.retriever_C * (each.retriever_temperature / self.temperature)
                read.append(
                    replace(
                        each, matrix=unpack_matrix(matrix), retriever_C=logits_C, retriever_temperature=self.temperature
                    )
                )
        return read
