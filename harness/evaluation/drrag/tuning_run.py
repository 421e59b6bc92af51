"""A tuning run of DR-RAG's study: tries the grid, writes the chosen options, and adds the tables to the findings."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from common.errors import UserError
from common.progress import say
from common.ranges import ranged
from common.records import Question
from harness.evaluation.drrag.tuning import Tried, try_grid
from harness.evaluation.drrag.tuning_grid import Grid, ceilings, recall_of, search_grid
from harness.evaluation.drrag.tuning_tables import ablation_table, ceiling_table, grid_tables
from harness.evaluation.serialization import digest
from harness.evaluation.study import Findings, Settings
from harness.retrievers.corpora import index_records
from harness.selection.score_cache import ScoreCache
from harness.selection.tuned import Tuned, is_selection_file, write_selection
from harness.strategies.drrag import DrRag, classifier_identity

if TYPE_CHECKING:
    Documents = float
else:
    Documents = ranged("Documents", float, (">=", 1))  # a mean number of them


@dataclass(frozen=True, slots=True)
class Tuning:
    """What `--study.tune`, `--study.grid`, `--study.most_documents` and `--study.ceilings` ask for.

    Args:
        path: File of the chosen options; None: nothing is chosen.
        grid: What is tried.
        most_documents: Greatest mean number of documents, one per k; None: k.
        ceilings: Whether to measure CFS with a perfect classifier, which needs none.
        ks: Document budgets.

    Raises:
        UserError: If there is not one limit per k.
    """

    path: Path | None
    grid: Grid
    most_documents: tuple[Documents, ...] | None
    ceilings: bool
    ks: tuple[int, ...]

    def __post_init__(self) -> None:
        limits = self.most_documents
        if limits is not None and len(limits) != len(self.ks):
            raise UserError(
                f"study.most_documents is {list(limits)}: give one number for each of study.ks {list(self.ks)}."
            )

    def check(self) -> None:
        """Raise UserError if something else is at the path."""
        if self.path is not None and self.path.exists() and not is_selection_file(self.path):
            raise UserError(
                f"study.tune: {self.path} exists and is no file of selection options: not replaced. Choose another "
                "file."
            )

    def run(
        self,
        strategy: DrRag,
        questions: Sequence[Question],
        cache: ScoreCache | None,
        settings: Settings,
        findings: Findings,
    ) -> None:
        """Choose and write the options, measure the ceilings.

        Args:
            strategy: Its retrievers and classifier count; its selection does not.
            questions: With gold passages.
            cache: Scores pairs; None without a classifier.
            settings: Of the evaluation.
            findings: Gets the tables and facts.

        Raises:
            UserError: If there is no question or no classifier, or no setting keeps to a limit of documents.
        """
        if self.path is None and not self.ceilings:
            return
        if self.path is not None and (cache is None or strategy.scorer is None):
            raise UserError("study.tune needs the trained classifier: name its folder with the strategy's serving.")
        if not questions:
            raise UserError("study.tune and study.ceilings need questions with all of their gold passages.")
        results = search_grid(strategy.retriever, questions, self.ks, self.grid, strategy.second_retriever)
        if self.path is None or cache is None or strategy.scorer is None:
            rankings = [each.rankings.ranking for each in results[1]]
            for k in self.ks:
                similar = [recall_of(q, ranking[:k]) for q, ranking in zip(questions, rankings, strict=True)]
                ceiling = ceilings(questions, results, k, self.grid)
                findings.tables.append(ceiling_table(k, ceiling, sum(similar) / len(similar)))
            return
        tried = try_grid(questions, results, self.ks, self.grid, cache, strategy.scorer.threshold)
        self._write(self.path, strategy, questions, tried, settings, findings)

    def _write(
        self,
        path: Path,
        strategy: DrRag,
        questions: Sequence[Question],
        tried: Sequence[Tried],
        settings: Settings,
        findings: Findings,
    ) -> None:
        limits = self.most_documents or tuple(float(each.k) for each in tried)
        chosen: dict[int, Tuned] = {}
        for each, limit in zip(tried, limits, strict=True):
            row = each.best(limit)
            if row is None:
                fewest = each.means()[1].min()
                raise UserError(
                    f"study.most_documents: no setting for k = {each.k} hands over at most {limit:g} documents; the "
                    f"fewest are {fewest:.2f}."
                )
            chosen[each.k] = each.settings[row]
            findings.tables.append(ablation_table(each, limit, settings.bootstrap))
            findings.tables += grid_tables(each, limit)
            findings.tables.append(ceiling_table(each.k, each.ceiling, float(each.similarity_N.mean())))
        chosen_on = {
            "questions": len(questions),
            "sha256": digest(questions)[:12],
            "most_documents": dict(zip(chosen, limits, strict=True)),
            "indexes": index_records({"": strategy})[""],
        }
        write_selection(path, chosen, classifier_identity(strategy.serving), chosen_on)
        findings.settings["tuning"] = {
            "file": str(path),
            "grid": asdict(self.grid),
            "chosen": {str(k): asdict(each) for k, each in chosen.items()},
            **chosen_on,
        }
        for k, its in chosen.items():
            line = (
                f"k = {k}: k1 {its.k1}, depth {its.depth}, threshold {its.threshold:.4f}, question weight "
                f"{its.question_weight}" + ", both orders" * its.symmetric
            )
            findings.facts.append(f"{path}, chosen on these {len(questions):,} questions, {line}")
            say(f"{path}, {line}.")
