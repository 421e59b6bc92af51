"""The serving folder that `trainers.rerag.ReRagTrainer` exports.

Models, calibration and thresholds, model card, and proof.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from datamodules.examples.context_sets import ContextBatch
from models.rerag.model import ReRagModel
from trainers.rerag_forward import score_contexts

if TYPE_CHECKING:
    from trainers.rerag import ReRagTrainer


def next_step(trainer: "ReRagTrainer", serving: Path) -> str:
    """What to type after training; see `RunModule`."""
    fit, report = "python train.py fit --config FILE", f"--questions FILE --out reports/{serving.parent.name}"
    if trainer.packed:
        return (
            "read the documents that DR-RAG selects: python infer.py evaluate --config FILE "
            "--strategy.init_args.reader harness.readers.t5.PackedReader "
            f"--strategy.init_args.reader.init_args.serving {serving} {report}"
        )
    if trainer.relevance == "retriever":
        return (
            "compare it with a RE-RAG: python infer.py evaluate --config FILE --layout fid "
            f"--study.baseline_serving {serving} {report}"
        )
    if trainer.estimator is None:
        return f"train it jointly with an estimator: {fit} --model.generator {serving}/generator"
    return (
        "python infer.py evaluate --strategy harness.strategies.rerag.ReRag --strategy.init_args.serving "
        f"{serving} --layout fid {report}"
    )


def export(trainer: "ReRagTrainer", folder: Path, provenance: dict[str, Any]) -> None:
    """Write the models, a model card and the manifest into a serving folder.

    Args:
        trainer: What was trained.
        folder: An empty folder.
        provenance: Versions, commit and data digests, stored unchanged.
    """
    values = {
        "calibration": None, "refusal_threshold": None, "refusal_cost": None, "relevance_temperature": None,
        **trainer.fitted, "retriever_temperature": trainer.retriever_temperature, "scorer": trainer.estimator,
        "text_format": trainer.choices.format,
    }  # fmt: skip
    template = Path(__file__).with_name("rerag_card.md")
    trainer.write_card(folder, template, values, provenance, starts=("estimator", "generator"))
    trainer.model().save(folder, validation=trainer.validation_metrics, **provenance)


def export_difference(trainer: "ReRagTrainer", folder: Path, batch: ContextBatch) -> float:
    """Largest difference in relevance and answer log-probability (nats) to the models in `folder`, in fp32."""
    trainer.eval().cpu().float()
    loaded = ReRagModel.load(folder, "cpu")
    with torch.inference_mode():
        there = score_contexts(
            batch, loaded.estimator, loaded.generator, retriever_temperature=loaded.retriever_temperature
        )
        here = trainer(batch)
    relevance = (here.relevance_BN - there.relevance_BN).abs().max()
    return float(torch.maximum(relevance, (here.answer_logp_BN - there.answer_logp_BN).abs().max()))
