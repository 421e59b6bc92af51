"""Fits the weight of the fused ranks beside the scorer's logits (DMQR-RAG, Eq. 3) on validation questions."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from common.errors import UserError
from common.records import Question, Ranked
from harness.evaluation.settings import Settings
from harness.retrievers.multi_query import EVERY
from harness.retrievers.rerank_prior import PRIOR
from harness.systems.dmqr import Dmqr
from harness.tuning.rerank_prior import Labels, fit_prior, score_all


class Tuning:
    """Fits `prior`: how much the fused order of all queries' passages counts beside the scorer's logits.

    Args:
        labels: What is relevant: `gold` passages, or passages that have an answer (`has_answer`).
    """

    output = PRIOR.output

    def __init__(self, labels: Labels = "gold") -> None:
        self.labels: Labels = labels

    def check(self, system: Dmqr) -> None:
        """Raise UserError if the system does not rerank, or has a prior."""
        if system.search.fusion != "rerank":
            raise UserError("Tuning fits the prior of reranking, and fusion is rrf: set fusion to rerank.")
        if system.search.prior is not None:
            raise UserError("prior is what is fitted: omit it.")

    def tune(self, system: Dmqr, questions: Sequence[Question], out: Path, settings: Settings) -> list[str]:
        """Fit on the questions with gold passages, and write the file.

        Raises:
            UserError: If there are none, or all passages that were found are gold, or none is.
        """

        memo = settings.shared_memo()
        search = system.search.with_settings(memo=memo)

        def score(batch: Sequence[Question]) -> Iterator[tuple[list[Ranked], list[float]]]:
            for each in search.find(batch, EVERY).results:
                logit_of = {hit.passage.id: hit.score for hit in each.ranked}  # each text once
                found = search.candidates([query.hits for query in each.searches])
                kept = [hit for hit in found if hit.passage.id in logit_of]
                yield kept, [logit_of[hit.passage.id] for hit in kept]
            memo.end_batch()

        scored = score_all(questions, score, self.labels)
        prior, told = fit_prior(
            questions, scored, system.k, system.search.serving, {"per_query": system.search.per_query}
        )
        PRIOR.write(out, prior.content)
        return told
