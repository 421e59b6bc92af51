"""Rewrites questions with a trained rewriter: a T5 or a causal LM that `trainers.dmqr` has exported."""

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from common.checks import Precision
from common.errors import UserError
from common.records import Question
from common.rewrites import Rewrites
from harness.runtime.memory_needs import Load, Machine, Memory

EMPTY = "the rewrite is empty"


class TrainedRewriter:
    """A generative rewriter.  Rewrites are greedy and do not depend on what else is in the call.

    The costs of a question are its calls of the model, and its share of the tokens read and of the seconds of the whole call.

    Args:
        serving: Folder that training exported, e.g. checkpoints/dmqr-rrr-hotpot/serving.
        device: auto, cpu or cuda.
        precision: auto (bf16 where the device has it in hardware), fp32 or bf16.

    Raises:
        UserError: If the device is not possible here.
        MissingInputError: If the serving folder is missing.
        ArtifactError: If it is corrupt, of another kind or text format.
    """

    def __init__(self, serving: Path, device: str = "auto", precision: Precision = "auto") -> None:
        from models.dmqr.rewriter import Rewriter

        self.model = Rewriter.load(Path(serving), device, precision)
        self.name = f"trained rewriter {serving}"
        self.fallbacks: Counter[str] = (
            Counter()
        )  # reason -> rewrites that were replaced by their question, in all calls

    @property
    def strategies(self) -> tuple[str, ...]:
        """Names of the strategies that it was trained on."""
        return tuple(self.model.strategies)

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

        unknown = [name for name in strategies if name not in self.model.strategies]
        if unknown:
            raise UserError(
                f"{self.name} was not trained on the strategy {unknown[0]!r}; it knows: {', '.join(self.strategies)}."
            )
        started, tokens = time.perf_counter(), tokens_read(self.model.lm)
        tasks = [self.model.task(each.text, name, each.history) for each in questions for name in strategies]
        inputs = self.model.encode(tasks)
        fitting = {row: ids for row, ids in enumerate(inputs) if ids is not None}
        written = dict(zip(fitting, self.model.write(list(fitting.values())), strict=True))
        share = 1 / max(1, len(questions))
        tokens_each = (tokens_read(self.model.lm) - tokens) * share
        seconds = (time.perf_counter() - started) * share
        too_long = f"the question is longer than the {self.model.encode.max_tokens} tokens that the rewriter reads"
        found = []
        for number, question in enumerate(questions):
            queries, fallbacks, calls = {}, {}, 0
            for place, name in enumerate(strategies, start=number * len(strategies)):
                calls += place in written
                made = self.model.queries(written.get(place, ""), name)
                if not made:
                    fallbacks[name] = EMPTY if place in written else too_long
                queries[name] = made or (question.text,)
            self.fallbacks.update(fallbacks.values())
            costs = {"model_calls": float(calls), "tokens": tokens_each, "seconds/rewriting": seconds}
            found.append(Rewrites(queries, fallbacks, costs=costs))
        return found
