"""Selection options: the method, its budget k, how many documents it needs from retrieval, and its choice.

No model's library: the command line builds them before any model is loaded.
"""

from dataclasses import dataclass
from typing import Literal

from common.errors import UserError
from common.ranges import NonNegativeFloat, NonNegativeInt, PositiveInt, Share
from harness.selection import algorithms
from harness.selection.algorithms import CandidatePool, CfsRule, CisScope, PairScore, Prior, Rankings

Method = Literal["sm", "qdc", "walk", "cis", "cfs", "ranked"]
_OWN = ("walk", "ranked")  # not in the paper; with options of their own


@dataclass(frozen=True)  # no slots: jsonargparse reads the default with vars()
class SelectionOptions:
    """How documents are selected.  Options that the method does not use are ignored.

    Args:
        method: `sm` (similarity matching: the top k), `qdc`, `cis`, `cfs` (the paper's); `walk`, which needs no
            classifier, and `ranked` (not in the paper).
        k: Document budget: the most documents to choose.
        k1: Number of first-stage documents; ceil(k / 2) when None.
        depth: Candidates per d_i for the paper's selections; 2k when None.
        threshold: A pair is positive if P(positive) >= threshold; the exported one when None, 0.5 without a classifier.
        cfs_rule: For `cfs`: `first` (Eq. 4) or `all` (Algorithm 1 under the budget).
        cis_scope: For `cis`: `second` (Eq. 3) or `all` (the paper's text).
        fill_budget: For `cis` and `cfs`: fill up to k documents from the first stage's ranking.
        second_stage: Source of candidates for `cis` and `cfs`: `qdc`, or `ranking` (Table 4's "w/o QDC").
        question_weight: How often the question stands before d_i in q*_i = Concat(q, d_i); 1 when None, as in the
            paper.
        anchors: For `walk` and `ranked`: number of first-stage documents used as d_i; max(3, ceil(k / 2)) when None.
        anchor_depth: For `walk` and `ranked`: candidates per d_i and source.
        candidate_pool: For `ranked`: source of candidates: `qdc`, `ranking` or `both`.
        keep_first: For `ranked`: number of top first-stage documents that are always chosen.
        prior_weight: For `ranked`: weight of the first stage's reciprocal ranks, nats.
        score_weight: For `ranked`: weight of the retriever's scores, of both documents in Retriever(q) and of d' in
            Retriever(q*_i), each scaled to 0 to 1 within its search; nats.
        symmetric: For `cfs` and `ranked`: average the log-odds of both orders of a pair, which doubles the scored
            pairs; off when None.

    Raises:
        UserError: If `k1` or `keep_first` is above `k`.
    """

    method: Method = "cfs"
    k: PositiveInt = 4
    k1: PositiveInt | None = None
    depth: PositiveInt | None = None
    threshold: Share | None = None
    cfs_rule: CfsRule = "first"
    cis_scope: CisScope = "second"
    fill_budget: bool = False
    second_stage: Literal["qdc", "ranking"] = "qdc"
    question_weight: PositiveInt | None = None
    anchors: PositiveInt | None = None
    anchor_depth: PositiveInt = 12
    candidate_pool: CandidatePool = "qdc"
    keep_first: NonNegativeInt = 1
    prior_weight: NonNegativeFloat = 0.0
    score_weight: NonNegativeFloat = 0.0
    symmetric: bool | None = None

    def __post_init__(self) -> None:
        if self.k1 is not None and self.k1 > self.k:
            raise UserError(f"k1 is {self.k1}, above the budget k = {self.k}: lower k1 or raise k.")
        if self.keep_first > self.k:
            raise UserError(f"keep_first is {self.keep_first}; allowed: 0 to k = {self.k}.")

    @property
    def first_size(self) -> int:
        """Number of documents used as d_i."""
        if self.method in _OWN:
            return self.anchors or max(3, algorithms.first_stage_size(self.k))
        return self.k1 or algorithms.first_stage_size(self.k)

    @property
    def pool_depth(self) -> int:
        """Candidates per d_i."""
        return self.anchor_depth if self.method in _OWN else self.depth or 2 * self.k

    @property
    def question_copies(self) -> int:
        """How often the question stands in q*_i."""
        return self.question_weight or 1

    @property
    def source(self) -> CandidatePool:
        """Source of the second stage's candidates."""
        if self.method in ("qdc", "walk"):
            return "qdc"
        return self.candidate_pool if self.method == "ranked" else self.second_stage

    @property
    def needs_classifier(self) -> bool:
        """Whether the method uses pair scores."""
        return self.method in ("cis", "cfs", "ranked")

    @property
    def ranking_size(self) -> int:
        """Number of documents needed from Retriever(q)."""
        # scores are scaled within as many documents as candidates
        scores = self.method == "walk" or (self.method == "ranked" and self.score_weight > 0)
        further = self.pool_depth if self.method != "sm" and (self.source != "qdc" or scores) else 0
        return max(self.k, self.first_size + further)

    @property
    def concatenations(self) -> int:
        """Number of queries q*_i."""
        return 0 if self.method == "sm" or self.source == "ranking" else self.first_size

    @property
    def concatenated_size(self) -> int:
        """Number of documents needed from each Retriever(q*_i), first-stage documents (later removed) included."""
        return self.pool_depth + self.first_size if self.concatenations else 0

    def stages(self, rankings: Rankings) -> tuple[list[str], list[list[str]]]:
        """The first stage's documents and the second stage's candidate pools."""
        first = list(rankings.ranking[: self.first_size])
        return first, algorithms.second_stage(rankings, self.first_size, self.pool_depth, self.source)

    def choose(self, rankings: Rankings, score: PairScore) -> list[str]:
        """The chosen documents, never more than k.

        Args:
            rankings: Ranked lists of at least `ranking_size` and `concatenated_size` documents, if the corpus has as
                many.
            score: P(positive | q, d1, d2); called only for the pairs that the selection needs.
        """
        threshold = 0.5 if self.threshold is None else self.threshold

        def positive(d1: str, d2: str) -> bool:
            return score(d1, d2) >= threshold

        def positive_in_both(d1: str, d2: str) -> bool:
            return algorithms.mean_log_odds(score, d1, d2) >= algorithms.log_odds_of(threshold)

        if self.method == "sm":
            return list(rankings.ranking[: self.k])
        sizes = self.ranking_size, self.concatenated_size
        if self.method == "walk":
            return algorithms.walk(rankings, self.first_size, self.k, *sizes)
        first, pools = self.stages(rankings)
        if self.method == "ranked":
            return algorithms.ranked(
                rankings.ranking,
                first,
                pools,
                self.k,
                score,
                self.keep_first,
                self._prior(rankings),
                bool(self.symmetric),
            )
        if self.method == "cfs":
            test = positive_in_both if self.symmetric else positive
            chosen, rejected = algorithms.cfs(first, pools, self.k, test, self.cfs_rule), set()
        else:
            concatenated = algorithms.qdc(first, pools, self.k)
            chosen = (
                algorithms.cis(concatenated, first, positive, self.cis_scope) if self.method == "cis" else concatenated
            )
            rejected = set(concatenated) - set(chosen)
        ranking = rankings.ranking[: self.ranking_size]  # a search shared by several selections may be deeper
        return algorithms.filled(chosen, ranking, self.k, rejected) if self.fill_budget else chosen

    def _prior(self, rankings: Rankings) -> Prior | None:
        if not self.prior_weight and not self.score_weight:
            return None
        sizes = self.ranking_size, self.concatenated_size
        return algorithms.retrieval_prior(rankings, self.prior_weight, self.score_weight, *sizes)
