"""A RE-RAG serving folder: an estimator, a generator or both, and what validation taught about their scores.

serving/serving.json   kind "re_rag", formats and lengths of the parts, calibration, temperature, refusal threshold
serving/estimator/     scores (question, passage)
serving/generator/     writes answers: from one context at a time, or, in the format `packed`, from all in one call
"""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self, get_args

from common.errors import ArtifactError
from models.devices import resolve_device
from models.rerag.calibration import Calibration
from models.rerag.context_tokenizer import ContextFormat, text_format
from models.rerag.estimator import RelevanceEstimator
from models.rerag.generator import Generator
from models.serving_manifest import read_manifest, write_manifest

KIND = "re_rag"
ESTIMATOR, GENERATOR = "estimator", "generator"
FORMATS = {text_format(name): name for name in get_args(ContextFormat)}


@dataclass
class ReRagModel:
    """Both learned parts of RE-RAG, in evaluation mode."""

    estimator: RelevanceEstimator | None
    generator: Generator | None
    calibration: Calibration = field(default_factory=Calibration)
    refusal_threshold: float | None = None  # calibrated P(relevant) that some context must reach, or none is answerable
    max_answer_tokens: int = 32
    relevance_temperature: float = 1.0  # of P_RE where every candidate is scored under every context (`thorough`)

    @classmethod
    def of(
        cls,
        estimator: RelevanceEstimator | None,
        generator: Generator | None,
        learnt: dict[str, Any],
        max_answer_tokens: int,
    ) -> Self:
        """The parts with what a validation learnt about their scores: {"calibration": {...}, "refusal_threshold": ...,
        "relevance_temperature": ...}, each of which may be missing."""
        calibration = Calibration(**learnt.get("calibration", {}))
        return cls(
            estimator, generator, calibration, learnt.get("refusal_threshold"), max_answer_tokens,
            learnt.get("relevance_temperature", 1.0),
        )  # fmt: skip

    def save(self, folder: Path, **facts: Any) -> None:
        """Write the parts and the sealed manifest into an empty folder.

        Args:
            folder: Where.
            facts: Validation figures, versions, commit, data digests; JSON types only.
        """
        parts: dict[str, dict[str, Any]] = {}
        for name, part in ((ESTIMATOR, self.estimator), (GENERATOR, self.generator)):
            if part is not None:
                part.save(folder / name)
                parts[name] = {"text_format": text_format(part.encode.format), "max_tokens": part.encode.max_tokens}
        if self.estimator is not None and self.estimator.generative:
            parts[ESTIMATOR]["label_ids"] = {"true": self.estimator.true_id, "false": self.estimator.false_id}
        head = parts.get(GENERATOR) or parts[ESTIMATOR]
        write_manifest(
            folder, KIND, head["text_format"], head["max_tokens"],
            parts=parts,
            answer_prefix=self.generator.answer_prefix if self.generator else "",
            calibration=asdict(self.calibration),
            refusal_threshold=self.refusal_threshold,
            relevance_temperature=self.relevance_temperature,
            max_answer_tokens=self.max_answer_tokens,
            **facts,
        )  # fmt: skip

    @classmethod
    def load(cls, serving: Path, device: str = "auto", needs: tuple[str, ...] = ()) -> Self:
        """The model of a serving folder, verified.

        Args:
            serving: Folder that training exported, e.g. checkpoints/rerag-nq/serving.
            device: auto, cpu or cuda.
            needs: Parts that must be there: ESTIMATOR, GENERATOR.

        Raises:
            MissingInputError: If the folder is missing.
            ArtifactError: If it is corrupt, made for another text format, or lacks a needed part.
        """
        serving = Path(serving)
        where = resolve_device(device)
        manifest = read_manifest(serving, KIND, tuple(FORMATS))
        parts = manifest["parts"]
        for name in needs:
            if name not in parts:
                raise ArtifactError(f"{serving} holds no {name}, only {sorted(parts)}: name a folder that has one.")
        estimator = generator = None
        if ESTIMATOR in parts:
            estimator = RelevanceEstimator.build(str(serving / ESTIMATOR), *_input(serving, parts[ESTIMATOR]))
            estimator = estimator.eval().to(where)
        if GENERATOR in parts:
            generator = Generator.build(
                str(serving / GENERATOR), *_input(serving, parts[GENERATOR]), manifest["answer_prefix"]
            )
            generator = generator.eval().to(where)
        return cls(
            estimator,
            generator,
            Calibration(**manifest["calibration"]),
            manifest["refusal_threshold"],
            manifest["max_answer_tokens"],
            manifest.get("relevance_temperature", 1.0),  # 1 in folders written before there was one
        )


def _input(serving: Path, part: dict[str, Any]) -> tuple[int, ContextFormat]:
    stored = part["text_format"]
    if stored not in FORMATS:
        raise ArtifactError(f"{serving} was made for the text format {stored!r}; this code writes {sorted(FORMATS)}.")
    return part["max_tokens"], FORMATS[stored]
