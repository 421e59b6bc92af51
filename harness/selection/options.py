"""The options of a selection: which documents it needs from retrieval, and which of them it chooses.

Standard library only: a command line builds them before any model is loaded.
"""

from dataclasses import dataclass
from typing import Literal, get_args

from common.errors import UserError
from harness.selection import algorithms
from harness.selection.algorithms import Candidates, PairScore, Scope, Source, Take

Method = Literal["sm", "qdc", "cis", "cfs", "ranked"]


@dataclass(frozen=True)  # no slots: jsonargparse reads the default with vars()
class SelectionOptions:
    """How documents are selected.  Options that the method has no use for are ignored.

    Args:
        method: `sm` (similarity matching: the top k), `qdc`, `cis`, `cfs` (the paper's), `ranked` (beyond it).
        k: Documents to choose, at most.
        k1: First-stage documents; ceil(k / 2) when None.
        depth: Candidates per d_i for the paper's selections; 2k when None.
        threshold: P(positive) from which a pair is positive; the exported one when None, 0.5 without a classifier.
        take: For `cfs`: `first` (Eq. 4) or `all` (Algorithm 1 under the budget).
        scope: For `cis`: `second` (Eq. 3) or `all` (the paper's text).
        fill: For `cis` and `cfs`: give places they leave empty to the first stage's ranking, as long as k allows.
        second_stage: Where `cis` and `cfs` find candidates: `qdc`, or `ranking` (Table 4's "w/o QDC").
        anchors: For `ranked`: first-stage documents used as d_i; max(3, ceil(k / 2)) when None.
        anchor_depth: For `ranked`: candidates per d_i and source.
        pool: For `ranked`: where candidates come from: `qdc`, `ranking` or `both`.
        keep_first: For `ranked`: documents at the top of the first stage that always stay.
        prior_weight: For `ranked`: weight of the reciprocal ranks of the first stage, nats.
        symmetric: For `ranked`: average both orders of a pair.

    Raises:
        UserError: If a value is not allowed.
    """

    method: Method = "cfs"
    k: int = 4
    k1: int | None = None
    depth: int | None = None
    threshold: float | None = None
    take: Take = "first"
    scope: Scope = "second"
    fill: bool = False
    second_stage: Literal["qdc", "ranking"] = "qdc"
    anchors: int | None = None
    anchor_depth: int = 12
    pool: Source = "qdc"
    keep_first: int = 1
    prior_weight: float = 0.0
    symmetric: bool = False

    def __post_init__(self) -> None:
        for name, allowed in (
            ("method", get_args(Method)),
            ("take", get_args(Take)),
            ("scope", get_args(Scope)),
            ("second_stage", ("qdc", "ranking")),
            ("pool", get_args(Source)),
        ):
            if getattr(self, name) not in allowed:
                raise UserError(f"{name} is {getattr(self, name)!r}; allowed: {', '.join(allowed)}.")
        for name in "k", "k1", "depth", "anchors", "anchor_depth":
            given = getattr(self, name)
            if given is not None and given < 1:
                raise UserError(f"{name} is {given}; it must be at least 1.")
        if self.k1 is not None and self.k1 > self.k:
            raise UserError(f"k1 is {self.k1}, beyond the budget k = {self.k}: lower k1 or raise k.")
        if not 0 <= self.keep_first <= self.k:
            raise UserError(f"keep_first is {self.keep_first}; allowed: 0 to k = {self.k}.")
        if self.threshold is not None and not 0 <= self.threshold <= 1:
            raise UserError(f"threshold is {self.threshold}; it is a probability: allowed 0 to 1.")

    @property
    def first_size(self) -> int:
        """Documents used as d_i."""
        if self.method == "ranked":
            return self.anchors or max(3, algorithms.first_stage_size(self.k))
        return self.k1 or algorithms.first_stage_size(self.k)

    @property
    def pool_depth(self) -> int:
        """Candidates per d_i."""
        return self.anchor_depth if self.method == "ranked" else self.depth or 2 * self.k

    @property
    def source(self) -> Source:
        """Where the second stage's candidates come from."""
        if self.method == "qdc":
            return "qdc"
        return self.pool if self.method == "ranked" else self.second_stage

    @property
    def needs_classifier(self) -> bool:
        """Whether it asks for pair scores."""
        return self.method in ("cis", "cfs", "ranked")

    @property
    def ranking_size(self) -> int:
        """Documents it needs of Retriever(q)."""
        further = self.pool_depth if self.method != "sm" and self.source != "qdc" else 0
        return max(self.k, self.first_size + further)

    @property
    def concatenations(self) -> int:
        """How many q*_i it searches for."""
        return 0 if self.method == "sm" or self.source == "ranking" else self.first_size

    @property
    def concatenated_size(self) -> int:
        """Documents it needs of each Retriever(q*_i): the depth counts after the first stage is taken out."""
        return self.pool_depth + self.first_size if self.concatenations else 0

    def stages(self, candidates: Candidates) -> tuple[list[str], list[list[str]]]:
        """The first stage's documents and the second stage's pools."""
        first = list(candidates.ranking[: self.first_size])
        return first, algorithms.second_stage(candidates, self.first_size, self.pool_depth, self.source)

    def choose(self, candidates: Candidates, score: PairScore) -> list[str]:
        """The chosen documents, never more than k.

        Args:
            candidates: What retrieval found: at least `ranking_size` and `concatenated_size` deep where the corpus is.
            score: P(positive | q, d1, d2); asked for nothing but the pairs the selection needs.
        """

        threshold = 0.5 if self.threshold is None else self.threshold

        def positive(d1: str, d2: str) -> bool:
            return score(d1, d2) >= threshold

        if self.method == "sm":
            return list(candidates.ranking[: self.k])
        first, pools = self.stages(candidates)
        if self.method == "ranked":
            return algorithms.ranked(
                candidates.ranking,
                first,
                pools,
                self.k,
                score,
                self.keep_first,
                self.prior_weight,
                self.symmetric,
            )
        if self.method == "cfs":
            chosen, refused = algorithms.cfs(first, pools, self.k, positive, self.take), set()
        else:
            every = algorithms.qdc(first, pools, self.k)
            chosen = algorithms.cis(every, first, positive, self.scope) if self.method == "cis" else every
            refused = set(every) - set(chosen)
        ranking = candidates.ranking[: self.ranking_size]  # as deep as this selection alone would have asked
        return algorithms.filled(chosen, ranking, self.k, refused) if self.fill else chosen
