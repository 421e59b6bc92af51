"""Rewrites questions with a trained rewriter: a T5 or a causal LM that `trainers.dmqr` has exported."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from common.checks import Precision
from common.errors import UserError
from common.records import Question, clean
from common.rewrites import Rewrites
from harness.rewriters.fallbacks import tell_fallbacks, with_fallbacks
from harness.runtime.memory_needs import Load, Machine, Memory
from harness.runtime.provenance import computed_in

EMPTY = "the rewrite is empty"


class TrainedRewriter:
    """A generative rewriter.  Rewrites are greedy and do not depend on what else is in the call.

    The costs of a question are its calls of the model, its share of the tokens read, and its fallbacks if there are any.

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
        from models.dmqr.rewriter import Rewriter

        self.model = Rewriter.load(Path(serving), device, precision)
        self.name = _name(serving)

    @property
    def strategies(self) -> tuple[str, ...]:
        """Names of the strategies that it was trained on."""
        return tuple(self.model.strategies)

    @property
    def facts(self) -> list[str]:
        """The model, for reports."""
        return [f"rewriter: {self.name}, on {', '.join(self.strategies)}, computed in {computed_in(self.model.lm)}"]

    @staticmethod
    def check_strategies(strategies: Sequence[str], serving: Path) -> None:
        """Raise UserError if the rewriter was not trained on one; called before anything is loaded."""
        from models.dmqr.rewriter import read_rewriter_manifest

        known = read_rewriter_manifest(Path(serving), check_files=False)["strategies"]
        _check_known(_name(serving), known, strategies)

    @staticmethod
    def memory(machine: Machine, load: Load, serving: Path, device: str, precision: Precision) -> Memory:
        """The network, with a rewrite by each strategy of every question."""
        from models.dmqr.rewriter_memory import rewriter_memory

        needs = machine.networks(
            serving, device, precision,
            lambda compute: {"rewriter": rewriter_memory(Path(serving), compute, load.questions)},
        )  # fmt: skip
        return Memory(needs, (("device", "cpu"), ("precision", "bf16"), ("precision", "fp32")))

    def rewrite(self, questions: Sequence[Question], strategies: Sequence[str]) -> list[Rewrites]:
        """The queries of every question by every strategy, in order; batched over questions and strategies.

        A question that is longer than the model reads, and one whose rewrite is empty, falls back to itself.

        Raises:
            UserError: If the rewriter was not trained on a strategy.
        """
        from models.token_count import tokens_read

        _check_known(self.name, self.strategies, strategies)
        tokens = tokens_read(self.model.lm)
        written = self.model.rewrite([(each.text, each.history) for each in questions], strategies)
        tokens_each = (tokens_read(self.model.lm) - tokens) / max(1, len(questions))
        too_long = f"the question is longer than the {self.model.encode.max_tokens} tokens that the rewriter reads"
        found = []
        for question, texts in zip(questions, written, strict=True):
            queries = {name: self.model.queries(text or "", name) for name, text in texts.items()}
            why = {name: too_long if text is None else EMPTY for name, text in texts.items()}
            calls = sum(text is not None for text in texts.values())
            costs = {"model_calls": float(calls), "tokens": tokens_each}
            found.append(with_fallbacks(clean(question.text), strategies, queries, why, costs=costs))
        tell_fallbacks(self.name, found)
        return found


def _name(serving: Path) -> str:
    return f"trained rewriter {serving}"


def _check_known(name: str, known: Iterable[str], strategies: Sequence[str]) -> None:
    """Raise UserError if a rewriter of this name was not trained on one of the strategies."""
    unknown = [each for each in strategies if each not in known]
    if unknown:
        raise UserError(f"{name} was not trained on the strategy {unknown[0]!r}; it knows: {', '.join(known)}.")
