"""CFS at several thresholds beside QDC, and with a classifier that is always right: what limits CFS on a data set.

    python -m benchmarks.cfs_thresholds --config configs/infer/drrag_world.yaml --questions data/world/test.json \
        --limit 400 --scores scores

Prints Markdown: recall of gold passages, documents, and questions on which CFS chooses other documents than QDC; then
how the classifier decides the pairs that CFS walks through. A pair (d_i, candidate) counts as gold if both passages
are.
"""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from jsonargparse import ArgumentParser, auto_cli

from common.command_line import CommandLine
from common.errors import UserError, exit_code
from common.records import Question
from datamodules.formats.reading import read_questions
from harness.evaluation.drrag import recall
from harness.evaluation.tables import markdown_table
from harness.runtime.provenance import construct
from harness.selection.score_cache import ScoreCache, Triple, scores_file
from harness.strategies.drrag import DrRag
from models.metrics import auroc

COMMAND = "python -m benchmarks.cfs_thresholds"
PERFECT = "CFS, perfect classifier"
NONE = 1.0  # as good as no pair reaches it, so CFS walks through all candidates


class Right:
    """A classifier that knows the gold passages."""

    threshold = 0.5

    def __init__(self, questions: Sequence[Question]) -> None:
        self.gold = {question.text: set(question.support) for question in questions}

    def probabilities(self, triples: Sequence[Triple]) -> list[float]:
        """1 for two gold passages, else 0."""
        return [float({d1.id, d2.id} <= self.gold[question]) for question, d1, d2 in triples]


def cfs_thresholds(
    strategy: DrRag,
    questions: str,
    layout: str = "hotpotqa",
    limit: int | None = None,
    ks: tuple[int, ...] = (3, 4, 6),
    thresholds: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7, 0.9),
    scores: Path | None = None,
) -> str:
    """Print the tables, and return them.

    Args:
        strategy: Its retrievers, classifier and options are used; its selection method, k and threshold are not.
        questions: Official data-set file.
        layout: Layout of the file.
        limit: Use only this many questions, from the beginning.
        ks: Document budgets.
        thresholds: Besides the exported one.
        scores: Folder that keeps pair scores for later runs.
    """
    if strategy.scorer is None:
        raise UserError("the strategy has no classifier: configure --strategy.init_args.serving.")
    asked = list(read_questions(layout, questions, limit=limit))
    used = [question for question in asked if question.support and not question.unshipped_support]
    if not used:
        raise UserError(
            f"None of the {len(asked)} questions ships its gold passages: choose a file with gold passages."
        )
    rows = recall.table_selections(strategy.selection, True)
    exported = strategy.scorer.threshold
    tried = [exported, *thresholds, NONE]
    selections = {name: rows[name] for name in ("SM", "QDC")}
    selections |= {f"CFS, {threshold:.2f}": replace(rows["CFS"], threshold=threshold) for threshold in tried}
    file = None
    if scores is not None and strategy.serving is not None:
        file = scores_file(scores, Path(strategy.serving), strategy.scorer)
    cache = ScoreCache(strategy.scorer, file)
    second = strategy.second_retriever
    measured = recall.run(
        used, strategy.retriever, {}, selections, ks, cache, strategy.lookahead, second_retriever=second
    )
    always_right = {"SM": rows["SM"], "CFS": rows["CFS"]}
    ideal = recall.run(used, strategy.retriever, {}, always_right, ks, ScoreCache(Right(used)), second_retriever=second)

    lines = []
    perfect = {outcome.k: outcome for outcome in ideal.outcomes if outcome.name == "CFS"}
    for k in ks:
        shown = [outcome for outcome in measured.outcomes if outcome.k == k and outcome.name in selections]
        (qdc,) = (outcome for outcome in shown if outcome.name == "QDC")
        cells = []
        for name, outcome in [*((o.name, o) for o in shown[:-1]), (PERFECT, perfect[k])]:
            pairs = zip(outcome.documents, qdc.documents, strict=True)
            cells.append([
                name, f"{100 * measured.recall(outcome).mean():.1f}",
                f"{sum(map(len, outcome.documents)) / len(used):.2f}", str(sum(set(a) != set(b) for a, b in pairs)),
            ])  # fmt: skip
        lines += [f"k = {k}", "", *markdown_table(["", "recall %", "documents", "not QDC's"], cells), ""]
    walked = [
        (probability, {d1, d2} <= set(question.support))
        for outcome in measured.outcomes
        if outcome.name == f"CFS, {NONE:.2f}" and outcome.k == max(ks)
        for question, by_pair in zip(used, outcome.scores, strict=True)
        for (d1, d2), probability in by_pair.items()
    ]
    probability_P, gold_P = (np.array(column) for column in zip(*walked, strict=True))
    shares = [
        [
            f"{threshold:.2f}",
            *(f"{100 * (probability_P[which] >= threshold).mean():.1f}" for which in (gold_P, ~gold_P)),
        ]
        for threshold in itertools.islice(tried, len(tried) - 1)
    ]
    lines += [
        f"Candidates of CFS, k = {max(ks)}: {len(gold_P):,} pairs, {100 * gold_P.mean():.1f}% gold; AUROC of the "
        f"classifier {auroc(probability_P, gold_P):.3f}. Share called positive:", "",
        *markdown_table(["threshold", "gold pairs %", "other pairs %"], shares),
    ]  # fmt: skip
    text = "\n".join(lines)
    print(text)
    return text


class Parser(CommandLine, ArgumentParser):  # type: ignore[misc]
    """ArgumentParser with one-line errors."""

    command = COMMAND


def main(args: list[str] | None = None) -> None:
    """Run the command."""
    auto_cli(
        cfs_thresholds, args=args, as_positional=False, instantiators=[(construct, object, True)], allow_abbrev=False,
        description=__doc__, parser_class=Parser, prog=COMMAND,
    )  # fmt: skip


if __name__ == "__main__":
    raise SystemExit(exit_code(COMMAND, main))
