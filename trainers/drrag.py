"""Trains DR-RAG's classifier C(q, d1, d2) (DR-RAG, Section 2.2.2).  Shape legend: P triples, T tokens."""

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from common.errors import UserError
from common.ranges import DropoutRate, PositiveInt
from datamodules.examples.triple_batches import TripleBatch
from models.bigbird.attention import AttentionKind
from models.drrag.triple_classifier import KIND, PART, TripleClassifier
from models.drrag.triple_tokenizer import TEXT_FORMAT
from models.lora import Lora
from models.metrics import auroc
from models.pair_export import SENTENCE_TRANSFORMERS
from models.serving_manifest import write_manifest
from models.text_formats import InputTokens
from trainers.drrag_losses import triple_loss
from trainers.run import classification_metrics as metrics
from trainers.run.controls import asked_otherwise, scored
from trainers.run.encoder_module import EncoderModule
from trainers.run.learning import EXPLAINED, explained
from trainers.run.optimizers import HeadOptimizer
from trainers.run.starting_weights import Start, StartOption
from trainers.run.validation_plots import validation_figures


class DrRagTrainer(EncoderModule):
    """Binary cross-entropy on balanced triples.

    AdamW with linear warm-up and decay; decision threshold from validation.

    Args:
        pretrained: What to start from: folder or hub id of a BigBird, of another encoder such as Longformer,
            ModernBERT, MPNet or DeBERTa, or of the BERT/RoBERTa family, which is converted to BigBird; or the serving
            folder or a checkpoint of an earlier run.
        max_tokens: Longest triple, in tokens; passages are truncated, and a question that leaves them no room.
        attention: fused, full, block_sparse, or auto (fused up to 1,024 tokens, block_sparse above).
        layers: Keep only the first n layers of a BERT/RoBERTa checkpoint; all when None.
        dropout: Dropout rate of hidden states and attention; the checkpoint's when None.  On a CPU, dropout more than
            halves the speed (no fused attention kernel has it): try 0.
        optimizer: AdamW.
        threshold_criterion: What the exported decision threshold maximizes on validation. CFS drops documents without a
            positive pair, so a missed gold pair costs more than a false positive: f2.
        freeze_embeddings: Do not train the token embeddings: a step takes about a tenth less time on a CPU, and half of
            a small model's optimizer states are not needed.
        gradient_checkpointing: Recompute activations in the backward pass: less memory, about a third slower.
        lora: An adapter that is trained with the head instead of the body's weights and merged into the export: less
            memory for large models. Use a learning rate about ten times higher, such as 3e-4.
    """

    starts: ClassVar = {"pretrained": StartOption("classifier", {KIND: PART})}

    def __init__(
        self,
        pretrained: str = "google/bigbird-roberta-base",
        max_tokens: InputTokens = 512,
        attention: AttentionKind = "auto",
        layers: PositiveInt | None = None,
        dropout: DropoutRate | None = None,
        optimizer: HeadOptimizer = HeadOptimizer(3e-5),
        threshold_criterion: metrics.Criterion = "f2",
        freeze_embeddings: bool = False,
        gradient_checkpointing: bool = False,
        lora: Lora = Lora(),
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.optimizer, self.lora = optimizer, lora

    def build(self) -> None:
        """See `RunModule`."""
        given, pretrained = self.hparams, self.start("pretrained")
        self.classifier = TripleClassifier.build(
            pretrained, given.max_tokens, given.attention, given.layers, given.dropout
        )
        if self.lora.rank is not None:
            self.classifier.add_adapter(pretrained, self.lora)
        self.prepare()

    def begin_from(self, option: str, start: Start) -> None:
        """See `RunModule`."""
        super().begin_from(option, start)
        self.classifier.new_head = False  # a trained one

    def setup(self, stage: str) -> None:
        """Check the precision, and center the inputs of a new head."""
        super().setup(stage)
        if stage == "fit" and self.classifier.new_head:  # a checkpoint's weights replace it when a run is resumed
            batch = self.trainer.datamodule.batch_of_all_lengths()
            self.classifier.center(batch.ids_PT, batch.attention_PT)

    @property
    def network_to_shard(self) -> PreTrainedModel:
        """See `RunModule`."""
        return self.classifier.network

    def training_step(self, batch: TripleBatch, batch_index: int) -> Tensor:
        """This rank's share of the step's loss, scaled to undo Lightning's mean over ranks and accumulated batches."""
        log_odds_P = self.classifier(batch.ids_PT, batch.attention_PT)
        labels_P, weights_P = batch.labels_P, batch.weights_P
        share = triple_loss(log_odds_P, labels_P, weights_P, batch.step_triples)
        self.flops_per_batch = self.flops_per_token * batch.tokens
        agree_P = ((log_odds_P > 0) == (labels_P > 0.5)).float() * weights_P
        self.add_shares({"train/loss_nats": share, "train/accuracy": agree_P.sum() / batch.step_triples})
        return share * self.backward_passes

    def validation_step(self, batch: TripleBatch, batch_index: int) -> None:
        """Collect scores; `summarize` computes the metrics of all ranks' scores."""
        log_odds_P = self.classifier(batch.ids_PT, batch.attention_PT)
        results = zip(log_odds_P.tolist(), batch.labels_P.tolist(), strict=True)
        self.validated |= zip(batch.rows_P.tolist(), results, strict=True)

    @property
    def metric_names(self) -> tuple[str, ...]:
        """See `RunModule`."""
        return ("auc", "average_precision", "loss_nats", "calibration_error", self.hparams.threshold_criterion)

    def summarize(self, results: list[tuple[float, float]]) -> dict[str, float]:
        """Metrics and the decision threshold, from the log-odds and label of every validation triple."""
        log_odds_P, labels_P = (np.array(column) for column in zip(*results, strict=True))
        if labels_P.all() or not labels_P.any():
            raise UserError("validation saw triples of one class only: raise --trainer.limit_val_batches.")
        probabilities_P = 1 / (1 + np.exp(-log_odds_P))
        threshold, value = metrics.best_threshold(probabilities_P, labels_P, self.hparams.threshold_criterion)
        self.classifier.threshold = threshold
        summary = {
            "auc": auroc(log_odds_P, labels_P > 0.5),
            "average_precision": metrics.average_precision(probabilities_P, labels_P),
            "loss_nats": float(np.logaddexp(0, np.where(labels_P > 0.5, -log_odds_P, log_odds_P)).mean()),
            "calibration_error": metrics.expected_calibration_error(probabilities_P, labels_P),
            EXPLAINED: explained([(log_odds_P, labels_P)]),
            "threshold": threshold,
            self.hparams.threshold_criterion: value,
            "triples": float(len(labels_P)),
        }
        self.probabilities_P = probabilities_P
        if self.trainer.is_global_zero:
            self.figures = validation_figures(probabilities_P, labels_P, threshold)
        return summary

    def controls(self) -> dict[str, float]:
        """See `RunModule`: `other_auc`, the AUC if the classifier reads another question's text.

        The documents of the triples, of at most 200 validation questions, stay their own.
        """
        data, score = self.trainer.datamodule, self.classifier.probabilities
        triples = data.validation_triples
        asked = asked_otherwise("val/other_auc", (triple.question for triple in triples), triples)
        rows = [(text, triple.first, triple.second) for text, triple in asked]
        scores = scored(self.classifier, self.trainer, score, rows, data.tokens_per_validation_batch)
        return {"other_auc": auroc(scores, [triple.positive for _, triple in asked])} if asked else {}

    def examples(self, count: int) -> tuple[list[str], list[list[Any]]]:
        """Columns and rows of a table of the first `count` validation triples with their probabilities."""
        triples = self.trainer.datamodule.validation_triples[:count]
        rows = [
            [t.question.text, " -> ".join(p.title or p.text[:40] for p in t.texts[1:]), t.kind, float(probability)]
            for t, probability in zip(triples, self.probabilities_P, strict=False)
        ]
        return ["question", "documents", "kind", "probability"], rows

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Restore the validation results and the threshold."""
        super().on_load_checkpoint(checkpoint)
        self.classifier.threshold = self.validation_metrics.get("threshold", 0.5)

    def next_step(self, serving: Path) -> str:
        """See `RunModule`."""
        retriever = "--system.init_args.retriever"
        bm25 = f"{retriever} harness.retrievers.bm25.Bm25Retriever {retriever}.init_args.index FOLDER "
        evaluate = "python infer.py evaluate --system harness.systems.drrag.DrRag --system.init_args.serving"
        asked = f"--questions FILE --out reports/{serving.parent.name}"
        return f"{evaluate} {serving} {self.retriever_options(bm25)}{asked}"

    def export(self, folder: Path, provenance: dict[str, Any]) -> None:
        """Write the classifier, a model card and the manifest into a serving folder.

        Args:
            folder: An empty folder.
            provenance: Versions, commit and data digests, stored unchanged.
        """
        self.classifier.save(folder)
        values = {"classifier": self.classifier, "text_format": TEXT_FORMAT}
        template = Path(__file__).with_name("drrag_card.md")
        self.write_card(folder, template, values, provenance, library=SENTENCE_TRANSFORMERS, reranks=True)
        write_manifest(
            folder, KIND, TEXT_FORMAT, self.classifier.encode.max_tokens,
            attention=self.hparams.attention, threshold=self.classifier.threshold,
            validation=self.validation_metrics, **provenance,
        )  # fmt: skip

    def export_difference(self, folder: Path, batch: TripleBatch) -> float:
        """Largest difference in log-odds (nats) between this module and the classifier in `folder`, in fp32."""
        loaded = TripleClassifier.load(folder, device="cpu")
        with torch.inference_mode():
            trained_P = self.classifier.eval().cpu().float()(batch.ids_PT, batch.attention_PT)
            loaded_P = loaded(batch.ids_PT, batch.attention_PT)
        return float((trained_P - loaded_P).abs().max())
