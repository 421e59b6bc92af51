"""Loads a scorer of (question, passage) pairs: RE-RAG's exported estimator, or a cross-encoder of transformers."""

from pathlib import Path

from transformers import AutoConfig

from common.checks import Precision
from common.errors import MissingInputError, UserError
from models.devices import compute_dtype, resolve_device
from models.pretrained import resolve
from models.rerag.estimator import RelevanceEstimator, positions
from models.rerag.model import ESTIMATOR, GENERATOR, ReRagModel
from models.serving_manifest import MANIFEST

MAX_TOKENS = 512  # of a cross-encoder's input, or fewer if it has fewer positions


def load_scorer(name: str | Path, device: str = "auto", precision: Precision = "auto") -> RelevanceEstimator:
    """A scorer of (question, passage) pairs.

    Args:
        name: Serving folder with an estimator, or folder or hub id of a cross-encoder: a sequence classifier with one
            label, or two of which the second means relevant, such as BAAI/bge-reranker-base.
        device: auto, cpu, cuda or cuda:N.
        precision: auto (bf16 where the device has it in hardware), fp32 or bf16.

    Raises:
        UserError: If the device is not possible here, or the model is no cross-encoder.
        MissingInputError: If there is neither.
        ArtifactError: If a serving folder is corrupt, of another kind or text format, or has no estimator.
    """
    folder = _cross_encoder(name)
    if folder is None:
        model = ReRagModel.load(Path(name), device, (ESTIMATOR,), precision, (GENERATOR,))
        assert model.estimator is not None  # required above
        return model.estimator
    where = resolve_device(device)
    dtype = compute_dtype(precision, where)
    estimator = RelevanceEstimator.build(str(folder), _max_tokens(folder)).eval().to(where)
    estimator.inference_dtype = dtype
    return estimator


def _cross_encoder(name: str | Path) -> Path | None:
    """The folder of a cross-encoder; None if the name is that of a serving folder."""
    folder = Path(name)
    if folder.is_dir() and ((folder / MANIFEST).exists() or not (folder / "config.json").exists()):
        return None
    try:
        folder = resolve(str(name))
    except MissingInputError as error:
        raise MissingInputError(
            f"{name} does not exist: no serving folder there, and no cross-encoder of that name on this machine. Train "
            "one with train.py, name another, or get a cross-encoder of the hub: hf download ID."
        ) from error
    config = _config(folder)
    architecture = (config.architectures or ["model without a head"])[0]
    if config.is_encoder_decoder or not architecture.endswith("ForSequenceClassification") or config.num_labels > 2:
        labels = f" with {config.num_labels} labels" if architecture.endswith("Classification") else ""
        raise UserError(
            f"{name} is a {architecture}{labels}, not a cross-encoder: name a sequence classifier with 1 or 2 labels, "
            "such as BAAI/bge-reranker-base, or a serving folder with an estimator."
        )
    return folder


def _config(folder: Path) -> "AutoConfig":
    return AutoConfig.from_pretrained(str(folder))


def _max_tokens(folder: Path) -> int:
    return min(MAX_TOKENS, positions(_config(folder)))
