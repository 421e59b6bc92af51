"""A RE-RAG serving folder: estimator, generator or both, with the calibration and thresholds chosen on validation.

serving/serving.json   kind "re_rag", input formats and lengths, calibration, temperature, refusal threshold
serving/estimator/     scores (question, passage) pairs
serving/generator/     generates answers from one context at a time, or, in the format `packed`, from all in one call
serving/base/          of causal LMs with LoRA: the model that estimator and generator are adapters of, in peft's files;
                       two models if they differ: estimator_base, generator_base
"""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import NoneType
from typing import Any, Literal, Self

from common.ranges import Precision
from common.sealed_json import check_fields
from models.calibration import Calibration
from models.causal_part import load_adapted, save_causal
from models.context_tokenizer import is_packed, text_format
from models.cross_encoder import ESTIMATOR as ESTIMATOR
from models.cross_encoder import FORMATS, KIND, TRUE_FALSE, RelevanceEstimator, checked_parts, input_of, load_estimator
from models.devices import compute_dtype, resolve_device
from models.lora import adapters_of, save_adapter
from models.onnx_network import with_backend
from models.prompt_tokenizer import PromptEncoder
from models.rerag.causal_generator import CausalGenerator
from models.rerag.generator import GENERATOR as GENERATOR
from models.rerag.generator import Generator
from models.rerag.parts import load_generator
from models.serving_manifest import CURE, manifest_sha256, read_manifest, write_manifest

Relevance = Literal["estimator", "retriever", "uniform"]  # what weighted the contexts while the generator was trained
BASE = "base"
FIELDS = {
    "parts": dict,
    "answer_prefix": str,
    "calibration": {"scale": float, "offset": float},
    "refusal_threshold": (float, NoneType),
    "max_answer_tokens": int,
}
LATER_FIELDS: dict[str, tuple[Any, Any]] = {  # name -> (value in folders of releases that did not write it, types)
    "relevance_temperature": (1.0, float),
    "refusal_contexts": (None, (int, NoneType)),
    "refusal_cost": (None, (float, NoneType)),
    "relevance": (None, (str, NoneType)),
    "retriever_temperature": (None, (float, NoneType)),
}


@dataclass
class ReRagModel:
    """The trained parts of RE-RAG, in evaluation mode."""

    estimator: RelevanceEstimator | None
    generator: Generator | None
    calibration: Calibration = field(default_factory=Calibration)
    refusal_threshold: float | None = None  # unanswerable if no context reaches this calibrated P(relevant)
    max_answer_tokens: int = 32
    relevance_temperature: float = 1.0  # softmax temperature of P_RE in `thorough`
    refusal_contexts: int | None = None  # number of best contexts that the threshold was chosen for; None if unknown
    refusal_cost: float | None = None  # cost of a wrong refusal in wrong answers; None: chosen by F1
    relevance: Relevance | None = None  # None: exported by a release that did not record it
    retriever_temperature: float | None = None  # T of P_R = softmax(S / T); None unless relevance is `retriever`

    @classmethod
    def of(
        cls,
        estimator: RelevanceEstimator | None,
        generator: Generator | None,
        chosen: dict[str, Any],
        max_answer_tokens: int,
    ) -> Self:
        """A model with the values that training and validation chose: {"calibration": {...}, "refusal_threshold": ...,
        "refusal_contexts": ..., "refusal_cost": ..., "relevance_temperature": ..., "relevance": ...,
        "retriever_temperature": ...}; each key is optional."""
        others = {name: value for name, value in chosen.items() if name != "calibration"}
        calibration = Calibration(**chosen.get("calibration", {}))
        return cls(estimator, generator, calibration, max_answer_tokens=max_answer_tokens, **others)

    def save(self, folder: Path, **facts: Any) -> None:
        """Write the parts and the manifest into an empty folder.

        Args:
            folder: The folder.
            facts: Validation metrics, versions, commit, data digests; JSON types only.
        """
        parts: dict[str, dict[str, Any]] = {}
        for name, part in ((ESTIMATOR, self.estimator), (GENERATOR, self.generator)):
            if part is not None:
                parts[name] = {"text_format": text_format(part.encode.format), "max_tokens": part.encode.max_tokens}
                if base := self.base_of(name):
                    assert isinstance(part.encode, PromptEncoder)  # others have no adapters
                    parts[name]["base"] = base
                    if not (folder / base).exists():
                        save_causal(part.network, part.encode, folder / base)
                    if name in adapters_of(part.network):
                        save_adapter(part.network, folder / name, name)
                else:
                    part.save(folder / name)
        if self.estimator is not None and self.estimator.generative:
            parts[ESTIMATOR] |= {
                "label_words": dict(zip(TRUE_FALSE, self.estimator.label_words, strict=True)),
                "label_ids": dict(zip(TRUE_FALSE, (self.estimator.true_id, self.estimator.false_id), strict=True)),
            }
        head = parts.get(GENERATOR) or parts[ESTIMATOR]
        write_manifest(
            folder, KIND, head["text_format"], head["max_tokens"],
            parts=parts,
            answer_prefix=self.generator.answer_prefix if self.generator else "",
            calibration=asdict(self.calibration),
            refusal_threshold=self.refusal_threshold,
            max_answer_tokens=self.max_answer_tokens,
            **{name: getattr(self, name) for name in LATER_FIELDS},
            **facts,
        )  # fmt: skip

    def base_of(self, name: str) -> str:
        """Name of the folder of the model that a part is an adapter of; empty for one that is none."""
        parts = {ESTIMATOR: self.estimator, GENERATOR: self.generator}
        networks = {each: id(part.network) for each, part in parts.items() if part and adapters_of(part.network)}
        return "" if name not in networks else BASE if len(set(networks.values())) == 1 else f"{name}_{BASE}"

    @classmethod
    def load(
        cls,
        serving: Path,
        device: str = "auto",
        needs: tuple[str, ...] = (),
        precision: Precision = "auto",
        unneeded: tuple[str, ...] = (),
    ) -> Self:
        """Load the model of a serving folder; the files' checksums are verified.

        Args:
            serving: Folder that training exported, e.g. checkpoints/rerag-nq/serving.
            device: auto, cpu, cuda or cuda:N.
            needs: Required parts: ESTIMATOR, GENERATOR.
            precision: Of scoring and reading: auto, fp32 or bf16; see `models.devices.compute_dtype`.
            unneeded: Parts that are not loaded: ESTIMATOR, GENERATOR.

        Raises:
            UserError: If the device is not possible here, or the precision is unknown.
            MissingInputError: If the folder does not exist.
            ArtifactError: If it is corrupt, was made for another text format, or lacks a required part.
        """
        serving = Path(serving)
        where = resolve_device(device)
        dtype = compute_dtype(precision, where)
        manifest = read_model_manifest(serving, needs)
        parts = {name: part for name, part in manifest["parts"].items() if name not in unneeded}
        estimator: RelevanceEstimator | None = None
        generator: Generator | None = None
        lms = {
            base: load_adapted(serving, base, [name for name in parts if parts[name].get("base") == base
                                               and (serving / name).is_dir()])
            for base in sorted({part["base"] for part in parts.values() if "base" in part})
        }  # fmt: skip
        if ESTIMATOR in parts:
            part = parts[ESTIMATOR]
            estimator = load_estimator(serving, part, lms.get(part.get("base", ""))).eval().to(where)
        if GENERATOR in parts:
            part, prefix = parts[GENERATOR], manifest["answer_prefix"]
            if lm := lms.get(part.get("base", "")):
                max_tokens, form = input_of(serving, part)
                generator = CausalGenerator(lm, max_tokens, prefix, is_packed(form))
            else:
                generator = load_generator(str(serving / GENERATOR), *input_of(serving, part), prefix)
            generator = generator.eval().to(where)
        for part in (estimator, generator):
            if part is not None:
                part.inference_dtype, part.serving_sha256 = dtype, manifest_sha256(serving)
        if estimator is not None and not estimator.generative:
            estimator = with_backend(estimator, serving)
        return cls(
            estimator,
            generator,
            Calibration(**manifest["calibration"]),
            manifest["refusal_threshold"],
            manifest["max_answer_tokens"],
            **{name: manifest[name] for name in LATER_FIELDS},
        )


def read_model_manifest(serving: Path, needs: tuple[str, ...] = ()) -> dict[str, Any]:
    """The manifest of a RE-RAG serving folder, with the default of every field that its release did not write.

    Args:
        serving: The serving folder.
        needs: Required parts: ESTIMATOR, GENERATOR.

    Raises:
        MissingInputError: If the folder does not exist.
        ArtifactError: If it is corrupt, was made for another text format, or lacks a required part.
    """
    manifest = read_manifest(serving, KIND, tuple(FORMATS), FIELDS)
    checked_parts(serving, manifest, needs)
    later = {name: manifest.get(name, default) for name, (default, _) in LATER_FIELDS.items()}
    check_fields(str(serving), later, {name: types for name, (_, types) in LATER_FIELDS.items()}, CURE)
    return {**manifest, **later}
