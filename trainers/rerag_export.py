"""The serving folder that `trainers.rerag.ReRagTrainer` exports.

Models, calibration and thresholds, model card, and proof.
"""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from datamodules.examples.context_sets import ContextBatch
from models.rerag.model import Relevance, ReRagModel
from trainers.rerag_forward import score_contexts
from trainers.rerag_validation import ReRagValidation


class ReRagExport(ReRagValidation):
    """What a trained module hands over to serving."""

    relevance: Relevance
    retriever_temperature: float | None

    def model(self) -> ReRagModel:
        """The model to serve, with the calibration, threshold and temperature of the last validation."""
        chosen = {
            **self.fitted, "relevance": self.relevance, "retriever_temperature": self.retriever_temperature,
        }  # fmt: skip
        return ReRagModel.of(self.estimator, self.generator, chosen, self.hparams.max_answer_tokens)

    def next_step(self, serving: Path) -> str:
        """See `RunModule`."""
        fit, report = "python train.py fit --config FILE", f"--questions FILE --out reports/{serving.parent.name}"
        if self.packed:
            return (
                "read the documents that DR-RAG selects: python infer.py evaluate --config FILE "
                "--strategy.init_args.reader harness.readers.t5.PackedReader "
                f"--strategy.init_args.reader.init_args.serving {serving} {report}"
            )
        if self.relevance == "retriever":
            return (
                "compare it with a RE-RAG: python infer.py evaluate --config FILE --layout fid "
                f"--study.baseline_serving {serving} {report}"
            )
        if self.estimator is None:
            return f"train it jointly with an estimator: {fit} --model.generator {serving}/generator"
        return (
            "python infer.py evaluate --strategy harness.strategies.rerag.ReRag --strategy.init_args.serving "
            f"{serving} --layout fid {report}"
        )

    def export(self, folder: Path, provenance: dict[str, Any]) -> None:
        """Write the models, a model card and the manifest into a serving folder.

        Args:
            folder: An empty folder.
            provenance: Versions, commit and data digests, stored unchanged.
        """
        values = {
            "calibration": None, "refusal_threshold": None, "refusal_cost": None, "relevance_temperature": None,
            **asdict(self.choices), **self.fitted, "retriever_temperature": self.retriever_temperature,
            "scorer": self.estimator,
        }  # fmt: skip
        self.write_card(
            folder, Path(__file__).with_name("rerag_card.md"), values, provenance, starts=("estimator", "generator")
        )
        self.model().save(folder, validation=self.validation_metrics, **provenance)

    def export_difference(self, folder: Path, batch: ContextBatch) -> float:
        """Largest difference in relevance and answer log-probability (nats) to the models in `folder`, in fp32."""
        self.eval().cpu().float()
        loaded = ReRagModel.load(folder, "cpu")
        with torch.inference_mode():
            there = score_contexts(
                batch, loaded.estimator, loaded.generator, retriever_temperature=loaded.retriever_temperature
            )
            here = self(batch)
        relevance = (here.relevance_BN - there.relevance_BN).abs().max()
        return float(torch.maximum(relevance, (here.answer_logp_BN - there.answer_logp_BN).abs().max()))
