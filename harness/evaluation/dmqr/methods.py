"""The methods of DMQR-RAG's study: the rows of Tables 2 to 4, derived from one configured system.

A method is a set of queries (the question, rewrites of it), a retriever, a depth per query, and a fusion.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from common.errors import UserError
from common.records import Answer
from harness.retrievers.multi_query import ORIGINAL, MultiQueryFusion, MultiQueryHits
from harness.runtime.memo import FOR_STUDY

if TYPE_CHECKING:
    from harness.systems.dmqr import Dmqr

OQR = "OQR"  # original query retrieval (Section 3.1.3)
OQR_DEEP = "OQR deep"  # with as many passages as all queries of the system retrieve together
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
    def queries(self) -> int:
        """Queries per question, if each strategy makes one."""
        return len(self.strategies) + self.original

    @classmethod
    def of(cls, system: "Dmqr", name: str = OWN, rewriter: str = OWN_REWRITER, retriever: str = "") -> "Method":
        """A whole system as a row.

        Args:
            system: The system.
            name: Of the row; the configured system with one strategy is named after it, and without a rewriter OQR.
            rewriter: Name of its rewriter.
            retriever: Name of its retriever.
        """
        search = system.search
        if system.rewriter is None:
            name = OQR if name == OWN else name
            return cls(name, None, (), search.per_query, search.fusion, retriever=retriever)
        if name == OWN and len(search.strategies) == 1:
            name = search.strategies[0]
        return cls(
            name, rewriter, search.strategies, search.per_query, search.fusion, search.original, retriever,
            judged_by=search.judged_by,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class MethodHits:
    """The results of one method, one entry per question; `ranked` is the whole fused list."""

    method: Method
    hits: list[MultiQueryHits]

    @classmethod
    def of(cls, method: Method, answers: Sequence[Answer]) -> Self:
        """From the answers of its row; a question that failed has none."""
        nothing = MultiQueryHits((), None, (), 0)
        found: list[Any] = [answer.notes.get(FOR_STUDY, nothing) for answer in answers]
        return cls(method, found)


def methods_of(own: Method, further: Iterable[Method], deep: int | None = None) -> dict[str, Method]:
    """All rows by name, the baselines first, the ablation last.

    Args:
        own: The configured system.
        further: Systems with other rewriters; of ALL_STRATEGIES there is only one row.
        deep: Passages of OQR deep, which is left out where that is not more than the system's `per_query`; as many as
            all queries of the system with the most retrieve when None.
    """
    further = [*further]
    deep = deep or max(each.queries * each.per_query for each in (own, *further))
    rows = [Method(OQR, None, (), own.per_query, own.fusion)]
    if deep > own.per_query:
        rows.append(replace(rows[0], name=OQR_DEEP, per_query=deep))
    if own.judged_by != ORIGINAL:  # what judging by a rewrite does without searching with it
        by = own.judged_by
        rows += [replace(row, name=f"{row.name}{JUDGED_BY}{by}", judged_by=by) for row in rows]
    for each in further:
        whole = replace(each, fusion="rerank" if own.fusion == each.fusion == "rerank" else "rrf")
        if len(each.strategies) > 1 and each.name != ALL_STRATEGIES:
            rows += [_with(whole, (one,), f"{each.name}, {one}") for one in each.strategies]
        rows.append(whole)
    if own.rewriter is not None:
        several = own.strategies if len(own.strategies) > 1 else ()
        rows += [_with(own, (one,), one) for one in several]
        rows.append(own)
        if own.fusion == "rerank":
            rows.append(replace(own, name=f"{own.name}{FUSED}", fusion="rrf", judged_by=ORIGINAL))
        if len(several) > 2:  # of two, one without the other is the other alone
            rows += [
                replace(_with(own, tuple(each for each in several if each != one), f"w/o {one}"), without=one)
                for one in several
            ]
    return {each.name: each for each in rows}


def _with(whole: Method, strategies: tuple[str, ...], name: str) -> Method:
    """A row with some of the strategies of another one."""
    return replace(whole, name=name, strategies=strategies, part=True)


def check_names(own: Iterable[str], further: Iterable[str]) -> None:
    """Refuse names of further rewriters that are those of other rows.

    Args:
        own: Names of the system's own.
        further: Names to check.

    Raises:
        UserError: Names the first one.
    """
    taken = {OQR, OQR_DEEP, OWN, ALL_STRATEGIES, *own}
    for name in further:
        if name in taken or not name.strip() or name.startswith("w/o ") or name.endswith(FUSED) or JUDGED_BY in name:
            raise UserError(f"study.rewriters: {name!r} is the name of another row: choose another one.")


def selected(methods: Mapping[str, Method], rows: Sequence[str] | None, own: str) -> dict[str, Method]:
    """The requested rows, the baselines and the configured system; all rows without a request.

    Raises:
        UserError: If a row is unknown.
    """
    if unknown := [name for name in rows or () if name not in methods]:
        raise UserError(f"study.rows contains {unknown[0]!r}; allowed: {', '.join(methods)}.")
    wanted = {*(methods if rows is None else (*rows, *BASELINES)), own}
    return {name: each for name, each in methods.items() if name in wanted}
