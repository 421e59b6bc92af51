"""Adaptive choice for any rewriter (DMQR-RAG, Section 2.2.2, which asks an LLM).

A trained encoder predicts for each question which strategies' rewrites will add relevant passages, and only these are
made.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.ranges import Precision, Share
from common.records import Question, Ranked, as_questions, as_texts
from common.rewrites import Rewrites
from harness.interfaces import FeedbackRewriter, Rewriter
from harness.rewriters.fallbacks import told_together
from harness.rewriters.strategy_checks import check_found, check_known
from harness.runtime.loading import load
from harness.runtime.provenance import computed_in

if TYPE_CHECKING:
    from models.dmqr.strategy_classifier import StrategyClassifier


class AdaptiveRewriter:
    """Asks a rewriter for those strategies alone that a model of `trainers.dmqr_adaptive` chooses for each question.

    It makes no rewrite of a question for which no strategy is chosen: the question then searches alone. Questions with
    the same choice are rewritten in one call. The costs of a question are those of the rewriter, one call of the model
    (choice_calls), and the tokens of both.

    Args:
        rewriter: Makes the rewrites; any rewriter, also one that reads what a first search found.
        serving: Folder that training exported, e.g. checkpoints/dmqr-adaptive-world/serving.
        threshold: Least probability of a strategy that is chosen; as training chose it when null.
        always: Strategies that are asked for every question, such as the one that `judged_by` names; the model need not
            know them.
        device: Of the model: auto, cpu or cuda.
        precision: Of the model: auto (bf16 where the device has it in hardware), fp32 or bf16.

    Raises:
        UserError: If the device is not possible here.
        MissingInputError: If the serving folder is missing.
        ArtifactError: If it is corrupt, of another kind or text format.
    """

    adaptive = True

    def __init__(
        self,
        rewriter: Rewriter,
        serving: Path,
        threshold: Share | None = None,
        always: tuple[str, ...] = (),
        device: str = "auto",
        precision: Precision = "auto",
    ) -> None:
        self.rewriter, self.always, self._threshold = rewriter, tuple(always), threshold
        self.serving, self.device, self.precision = Path(serving), device, precision
        self._choice = f"choice {serving}"
        if hasattr(rewriter, "feedback_passages"):
            self.feedback_passages = rewriter.feedback_passages  # makes this one a `FeedbackRewriter`, too

    def load(self) -> None:
        """Load the model and the rewriter."""
        _ = self.model
        load(self.rewriter)

    @cached_property
    def model(self) -> "StrategyClassifier":
        """Chooses the strategies."""
        from models.dmqr.strategy_classifier import StrategyClassifier

        return StrategyClassifier.load(self.serving, self.device, self.precision)

    @cached_property
    def threshold(self) -> float:
        """Least probability of a strategy that is chosen."""
        return self.model.threshold if self._threshold is None else self._threshold

    @property
    def name(self) -> str:
        """For reports."""
        return f"{self.rewriter.name}, adaptive"

    @cached_property
    def strategies(self) -> tuple[str, ...]:
        """Names of the strategies that it chooses from."""
        from models.dmqr.strategy_classifier import read_choice_manifest

        known = read_choice_manifest(self.serving, check_files=False)["strategies"]
        return tuple(dict.fromkeys([*self.always, *known]))

    @property
    def facts(self) -> list[str]:
        """The rewriter and the model, for reports."""
        always = f", always {', '.join(self.always)}" if self.always else ""
        return [
            *getattr(self.rewriter, "facts", [f"rewriter: {self.rewriter.name}"]),
            f"{self._choice}: strategies with P {self.threshold:.3f} or more{always}, computed in "
            f"{computed_in(self.model)}",
        ]

    @property
    def recipe(self) -> dict[str, Any] | None:
        """Everything else that the rewrites depend on, besides the options: as for the rewriter's own."""
        recipe: dict[str, Any] | None = getattr(self.rewriter, "recipe", None)
        return recipe

    def without_choice(self) -> Rewriter:
        """The rewriter that makes the rewrites by all strategies."""
        return self.rewriter

    def rewrite(
        self, questions: Sequence[Question], strategies: Sequence[str], found: Sequence[Sequence[Ranked]] = ()
    ) -> list[Rewrites]:
        """The queries of every question by the strategies that are chosen for it, in order.

        The reason names all probabilities.

        Args:
            questions: The questions.
            strategies: To choose from.
            found: What the first search found for each question, best first, for a rewriter that reads it.

        Raises:
            UserError: If the model or the rewriter does not know a strategy, or what the first search found is missing.
        """
        questions, strategies = as_questions(questions), as_texts(strategies)
        check_known(self, strategies)
        tokens = self.model.tokens_read
        scored = self.model.probabilities([(each.text, each.history) for each in questions])
        tokens_each = (self.model.tokens_read - tokens) / max(1, len(questions))
        choices = [self._choose(each, strategies) for each in scored]
        result: dict[int, Rewrites] = {}
        with told_together(self.name):
            for chosen in dict.fromkeys(names for names, _ in choices):
                places = [place for place, (names, _) in enumerate(choices) if names == chosen]
                result |= zip(places, self._rewritten(chosen, places, questions, found), strict=True)
        made = []
        for place, (_, why) in enumerate(choices):
            costs, reason = result[place].costs, result[place].reason
            own = {"choice_calls": 1.0, "tokens": costs.get("tokens", 0.0) + tokens_each}
            made.append(replace(result[place], reason="; ".join(filter(None, (why, reason))), costs={**costs, **own}))
        return made

    def _choose(self, scored: Sequence[float], strategies: Sequence[str]) -> tuple[tuple[str, ...], str]:
        """The chosen strategies of one question in their order, and why.

        Args:
            scored: Probabilities by strategy of the model.
            strategies: To choose from.
        """
        probabilities = dict(zip(self.model.strategies, scored, strict=True))
        chosen = tuple(name for name in strategies if name in self.always or probabilities[name] >= self.threshold)
        shown = ", ".join(
            f"{name} always" if name in self.always else f"{name} {probabilities[name]:.2f}" for name in strategies
        )
        return chosen, f"{', '.join(chosen) or 'no strategy'} by P of at least {self.threshold:.2f}: {shown}"

    def _rewritten(
        self,
        chosen: tuple[str, ...],
        places: Sequence[int],
        questions: Sequence[Question],
        found: Sequence[Sequence[Ranked]],
    ) -> list[Rewrites]:
        """The rewrites of the questions at some places by the strategies that were chosen for all of them."""
        if not chosen:
            return [Rewrites({}) for _ in places]
        asked = [questions[place] for place in places]
        if not isinstance(self.rewriter, FeedbackRewriter):
            return self.rewriter.rewrite(asked, chosen)
        check_found(self.rewriter, questions, found)
        return self.rewriter.rewrite(asked, chosen, [found[place] for place in places])
