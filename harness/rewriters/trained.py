"""Rewrites questions with a trained rewriter: a T5 or a causal LM that `trainers.dmqr` has exported."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from common.ranges import Precision
from common.records import Question, as_questions, as_texts, clean
from common.rewrites import Rewrites
from harness.rewriters.fallbacks import tell_fallbacks, with_fallbacks
from harness.rewriters.strategy_checks import check_known
from harness.runtime.provenance import computed_in

if TYPE_CHECKING:
    from models.dmqr.rewriter import RewriterModel

EMPTY = "the rewrite is empty"


class TrainedRewriter:
    """A generative rewriter.  Rewrites are greedy and do not depend on what else is in the call.

    The costs of a question are its calls of the model, its share of the tokens read, and its fallbacks if there are
    any.

    Args:
        serving: Folder that training exported, e.g. checkpoints/dmqr-rrr-hotpot/serving.
        device: auto, cpu or cuda.
        precision: auto (bf16 where the device has it in hardware), fp32 or bf16.

    Raises:
        UserError: If the device is not possible here.
        MissingInputError: If the serving folder is missing.
        ArtifactError: If it is corrupt, of another kind or text format.
    """

    reads_history = True

    def __init__(self, serving: Path, device: str = "auto", precision: Precision = "auto") -> None:
        self.name, self.serving = f"trained rewriter {serving}", Path(serving)
        self.device, self.precision = device, precision

    def load(self) -> None:
        """Load the model."""
        _ = self.model

    @cached_property
    def model(self) -> "RewriterModel":
        """Writes the rewrites."""
        from models.dmqr.rewriter import RewriterModel

        return RewriterModel.load(self.serving, self.device, self.precision)

    @cached_property
    def strategies(self) -> tuple[str, ...]:
        """Names of the strategies that it was trained on."""
        from models.dmqr.rewriter import read_rewriter_manifest

        return tuple(read_rewriter_manifest(self.serving, check_files=False)["strategies"])

    @property
    def facts(self) -> list[str]:
        """The model, for reports."""
        return [f"rewriter: {self.name}, on {', '.join(self.strategies)}, computed in {computed_in(self.model.lm)}"]

    def rewrite(self, questions: Sequence[Question], strategies: Sequence[str]) -> list[Rewrites]:
        """The queries of every question by every strategy, in order; batched over questions and strategies.

        A question whose rewrite is empty falls back to itself.

        Raises:
            UserError: If the rewriter was not trained on a strategy.
        """
        questions, strategies = as_questions(questions), as_texts(strategies)
        from models.token_count import tokens_read

        check_known(self, strategies)
        tokens = tokens_read(self.model.lm)
        written = self.model.rewrite([(each.text, each.history) for each in questions], strategies)
        tokens_each = (tokens_read(self.model.lm) - tokens) / max(1, len(questions))
        found = []
        for question, texts in zip(questions, written, strict=True):
            queries = {name: self.model.queries(text, name) for name, text in texts.items()}
            why = dict.fromkeys(texts, EMPTY)
            costs = {"model_calls": float(len(texts)), "tokens": tokens_each}
            found.append(with_fallbacks(clean(question.text), strategies, queries, why, costs=costs))
        return tell_fallbacks(self.name, found)
