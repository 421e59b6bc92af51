"""The methods of DMQR-RAG's study: the rows of Tables 2 to 4, derived from one configured system.

A method is a set of queries (the question, rewrites of it), a retriever, a depth per query, and a fusion.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from common.errors import UserError
from harness.retrievers.multi_query import ORIGINAL, MultiQueryFusion

if TYPE_CHECKING:
    from harness.strategies.dmqr import Dmqr

OQR = "OQR"  # original query retrieval (Section 3.1.3)
OQR_DEEP = "OQR deep"  # with as many passages as all queries of the system retrieve together
RM3 = "RM3"
RM3_DEEP = "RM3 deep"
OWN = "DMQR-RAG"
JUDGED_BY = ", judged by "  # before the strategy whose rewrite takes the question's place in reranking
FUSED = ", rrf"  # ending of the row that fuses by reciprocal ranks where the others rerank
OWN_REWRITER = ""  # the name of the configured system's rewriter and retriever among those of the study
ALL_STRATEGIES = "all strategies"  # a system whose rewriter chooses strategies for each question, without the choice
BASELINES = (OQR, OQR_DEEP, ALL_STRATEGIES)  # measured wherever they are defined: differences are to them


@dataclass(frozen=True, slots=True)
class Method:
    """One row."""

    name: str
    rewriter: str | None  # name of the rewriter; None: the question alone
    strategies: tuple[str, ...]  # of that rewriter; only those that search
    per_query: int
    fusion: MultiQueryFusion
    original: bool = True  # whether the question itself searches, too
    retriever: str = OWN_REWRITER  # name of the retriever
    part: bool = False  # whether only some of its rewriter's strategies search
    without: str = ""  # the strategy that an ablation leaves out
    judged_by: str = ORIGINAL  # what passages are judged by: the question, or the rewrite by a strategy

    @property
    def judge(self) -> tuple[str, str] | None:
        """The rewriter and the strategy whose rewrite passages are judged by; None: the question."""
        if self.judged_by == ORIGINAL or self.fusion == "rrf":
            return None
        return (OWN_REWRITER if self.rewriter is None else self.rewriter), self.judged_by


@dataclass(frozen=True, slots=True)
class Rewriting:
    """The options of a system that count for its queries."""

    rewrites: bool  # whether it has a rewriter
    strategies: tuple[str, ...]
    per_query: int
    fusion: MultiQueryFusion
    original: bool
    retriever: str = OWN_REWRITER
    judged_by: str = ORIGINAL

    @property
    def queries(self) -> int:
        """Queries per question, if each strategy makes one."""
        return len(self.strategies) + self.original if self.rewrites else 1

    @classmethod
    def of(cls, strategy: "Dmqr") -> "Rewriting":
        """Those of a Dmqr."""
        search, rewrites = strategy.search, strategy.rewriter is not None
        return cls(
            rewrites, search.strategies, search.per_query, search.fusion, search.original or not rewrites,
            judged_by=search.judged_by,
        )  # fmt: skip


def own_name(own: Rewriting) -> str:
    """The row of the configured system itself: that of its only strategy where it has one, OQR without a rewriter."""
    if not own.rewrites:
        return OQR
    return OWN if len(own.strategies) > 1 else own.strategies[0]


def methods_of(
    own: Rewriting, further: Mapping[str, Rewriting], rm3: bool, deep: int | None = None
) -> dict[str, Method]:
    """All rows by name, the baselines first, the ablation last.

    Args:
        own: Of the configured system.
        further: Other rewriters by name; of ALL_STRATEGIES there is only one row.
        rm3: Whether there is a BM25 retriever for RM3's feedback.
        deep: Passages of the deep baselines, which are left out where that is not more than the system's `per_query`;
            as many as all queries of the system with the most retrieve when None.
    """
    most = max(each.queries * each.per_query for each in (own, *further.values()))
    deep = deep or max(most, own.per_query)
    rows = [
        Method(name, None, (), depth, own.fusion, retriever=retriever)
        for retriever, names in ((OWN_REWRITER, (OQR, OQR_DEEP)), (RM3, (RM3, RM3_DEEP) if rm3 else ()))
        for name, depth in zip(names, (own.per_query, deep), strict=False)
        if name in (OQR, RM3) or depth > own.per_query
    ]
    if own.judged_by != ORIGINAL:  # what judging by a rewrite does without searching with it
        for row in [each for each in rows if each.name in BASELINES]:
            rows.append(replace(row, name=f"{row.name}{JUDGED_BY}{own.judged_by}", judged_by=own.judged_by))
    for name, each in further.items():
        fusion: MultiQueryFusion = "rerank" if own.fusion == each.fusion == "rerank" else "rrf"
        all_of = (name, each.strategies)
        alone = [(f"{name}, {one}", (one,)) for one in each.strategies if len(each.strategies) > 1]
        alone = [] if name == ALL_STRATEGIES else alone
        rewriter = name if each.rewrites else None
        rows += [
            Method(
                row,
                rewriter,
                chosen,
                each.per_query,
                fusion,
                each.original,
                each.retriever,
                chosen != each.strategies,
                judged_by=each.judged_by,
            )
            for row, chosen in (*alone, all_of)
        ]
    if own.rewrites:
        several = len(own.strategies) > 1
        chosen_rows: list[tuple[str, tuple[str, ...], str]] = [(one, (one,), "") for one in own.strategies if several]
        chosen_rows += [(own_name(own), own.strategies, "")]
        without = [
            (f"w/o {one}", tuple(other for other in own.strategies if other != one), one)
            for one in own.strategies
            if len(own.strategies) > 2  # of two, one without the other is the other alone
        ]
        rows += [
            Method(
                row,
                OWN_REWRITER,
                chosen,
                own.per_query,
                own.fusion,
                own.original,
                OWN_REWRITER,
                chosen != own.strategies,
                left_out,
                own.judged_by,
            )
            for row, chosen, left_out in (*chosen_rows, *without)
        ]
        if own.fusion == "rerank":
            fused = Method(f"{own_name(own)}{FUSED}", OWN_REWRITER, own.strategies, own.per_query, "rrf", own.original)
            place = next(place for place, each in enumerate(rows) if each.name == own_name(own))
            rows.insert(place + 1, fused)
    return {each.name: each for each in rows}


def check_names(own: Iterable[str], further: Iterable[str]) -> None:
    """Refuse names of further rewriters that are those of other rows.

    Args:
        own: Names of the system's own.
        further: Names to check.

    Raises:
        UserError: Names the first one.
    """
    taken = {OQR, OQR_DEEP, RM3, RM3_DEEP, OWN, ALL_STRATEGIES, *own}
    for name in further:
        if name in taken or not name.strip() or name.startswith("w/o ") or name.endswith(FUSED) or JUDGED_BY in name:
            raise UserError(f"study.rewriters: {name!r} is the name of another row: choose another one.")


def selected(methods: Mapping[str, Method], rows: Sequence[str] | None, own: str) -> dict[str, Method]:
    """The requested rows, the baselines and the configured system.

    All rows without a request, none but it for an empty one.

    Raises:
        UserError: If a row is unknown.
    """
    check_rows(methods, rows, "rows")
    wanted = {*(methods if rows is None else (*rows, *BASELINES) if rows else ()), own}
    return {name: each for name, each in methods.items() if name in wanted}


def check_rows(methods: Iterable[str], rows: Sequence[str] | None, option: str) -> None:
    """Raise UserError if an option names a row that the study does not have."""
    allowed = [*methods]
    unknown = [name for name in rows or () if name not in allowed]
    if unknown:
        raise UserError(f"study.{option} contains {unknown[0]!r}; allowed: {', '.join(allowed)}.")
