"""Trains DMQR-RAG's generative rewriters by imitation: supervised fine-tuning on given rewrites, whole or with LoRA.

Shape legend: P rewrites, T tokens, A tokens of a rewrite.
"""

from pathlib import Path
from typing import ClassVar

from torch import Tensor

from common.answer_metrics import usual_scores
from common.records import clean
from common.rewrites import Rewrites
from datamodules.dmqr import RewriteBatch
from datamodules.dmqr_recall import Recall, recalls
from models.length_batching import IGNORE
from trainers.dmqr_rewriter_module import RewriterModule
from trainers.dmqr_validation import RewriteValidation, is_question, summary


class RewriterTrainer(RewriterModule):
    """Mean cross-entropy of the rewrites' tokens in an optimizer step, their ends included; inputs are not learned.

    Options and errors are those of `RewriterModule`.
    """

    lower: ClassVar = (
        "lower data.rewrites_per_step or model.max_tokens, raise trainer.accumulate_grad_batches, or set "
        "model.gradient_checkpointing"
    )

    def forward(self, batch: RewriteBatch) -> Tensor:
        """Negative log-likelihood of every token of the rewrites, (P, A), nats, fp32; 0 for padding."""
        return -self.rewriter(batch.ids_PT, batch.attention_PT, batch.labels_PA, batch.strategies)

    def training_step(self, batch: RewriteBatch, batch_index: int) -> Tensor:
        """This rank's share of the step's loss, scaled to undo Lightning's mean over ranks and accumulated batches."""
        share = (self(batch).sum(dim=1) * batch.weights_P).sum() / batch.step_tokens
        per_input, per_target = self.flops_per_token
        self.flops_per_batch = per_input * batch.ids_PT.numel() + per_target * batch.labels_PA.numel()
        self.add_shares({"train/loss_nats": share})
        return self._scaled(share, batch.strategies, batch.step_strategies)

    def validation_step(self, batch: RewriteBatch, batch_index: int) -> None:
        """Collect each row's loss and tokens, the scores of generated rewrites, and searched questions' recall."""
        data = self.trainer.datamodule
        nll_P = self(batch).double().sum(dim=1).tolist()
        tokens_P = (batch.labels_PA != IGNORE).sum(dim=1).tolist()
        rows = batch.rows_P.tolist()
        generated = [row for row in rows if row in data.generated]
        chosen = [data.held_out[row] for row in generated]
        written = self.rewriter.write([each.input for each in chosen], [each.example.strategy for each in chosen])
        texts = dict(zip(generated, written, strict=True))
        recall_of = self._recalls([row for row in rows if row in data.gold])
        for row, nll, tokens in zip(rows, nll_P, tokens_P, strict=True):
            example, text = data.held_out[row].example, texts.get(row)
            scores = None if text is None else usual_scores(text, [example.rewrite])
            queries = () if text is None else self.rewriter.queries(text, example.strategy)
            self.validated[row] = RewriteValidation(
                nll, tokens, example.strategy, scores, text is not None and not queries, recall_of.get(row),
                is_question(queries, example.question),
            )  # fmt: skip

    def _recalls(self, rows: list[int]) -> dict[int, Recall]:
        """The recall of these rows' questions, each rewritten by every strategy of the training files."""
        if not rows:
            return {}
        data = self.trainer.datamodule
        questions = [(clean(each.question), each.history) for each in (data.held_out[row].example for row in rows)]
        queries = []
        for (question, _), texts in zip(questions, self.rewriter.rewrite(questions, data.strategies), strict=True):
            made = {name: self.rewriter.queries(text or "", name) for name, text in texts.items()}
            queries.append(Rewrites(made).distinct(question))
        found = recalls(data.retriever, data.recall_k, queries, [data.gold[row] for row in rows])
        return dict(zip(rows, found, strict=True))

    @property
    def metric_names(self) -> tuple[str, ...]:
        """See `RunModule`; recall is measured where the data module has a retriever."""
        recall = (self._recall_name,) if self.trainer.datamodule.gold else ()
        return "f1", "em", "loss_nats", *recall

    @property
    def _recall_name(self) -> str:
        return f"recall_at_{self.trainer.datamodule.recall_k}"

    def nats(self, result: RewriteValidation) -> float:
        """See `RunModule`."""
        return result.nll

    def summarize(self, results: list[RewriteValidation]) -> dict[str, float]:
        """See `trainers.dmqr_validation.summary`."""
        return summary(results, self._recall_name)

    def export_difference(self, folder: Path, batch: RewriteBatch) -> float:
        """Largest difference of a token's log-probability, nats, to the exported files; see `trainers.dmqr_export`."""
        return self._difference(folder, batch)
