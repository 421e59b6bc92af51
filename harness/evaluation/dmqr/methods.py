"""The methods of DMQR-RAG's study: the rows of Tables 2 to 4, each a system with other settings of its search."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from common.errors import UserError
from harness.interfaces import ChoosingRewriter
from harness.retrievers.multi_query import ORIGINAL, MultiQueryRetriever

if TYPE_CHECKING:
    from harness.systems.dmqr import Dmqr

OQR = "OQR"  # original query retrieval (Section 3.1.3)
OQR_DEEP = "OQR deep"  # with as many passages as all queries of the system retrieve together
OWN = "DMQR-RAG"
JUDGED_BY = ", judged by "  # before the strategy whose rewrite takes the question's place in reranking
FUSED = ", rrf"  # ending of the row that fuses by reciprocal ranks where the others rerank
ALL_STRATEGIES = "all strategies"  # a system whose rewriter chooses strategies for each question, without the choice
BASELINES = (OQR, OQR_DEEP, ALL_STRATEGIES)  # measured wherever they are defined: differences are to them


@dataclass(frozen=True, slots=True)
class Method:
    """One row."""

    name: str
    settings: Mapping[str, Any]  # in which it differs from the measured system: see `Dmqr.with_settings`
    part: bool = False  # whether its queries are among those of another row
    without: str = ""  # the strategy that an ablation leaves out


def own_name(system: "Dmqr") -> str:
    """The row of the measured system; one with one strategy is named after it, and without a rewriter OQR."""
    if system.rewriter is None:
        return OQR
    strategies = system.search.strategies
    return OWN if len(strategies) > 1 else strategies[0]


def methods_of(system: "Dmqr", further: Mapping[str, "Dmqr"], deep: int | None = None) -> dict[str, Method]:
    """All rows by name, the baselines first, the ablation last.

    Args:
        system: The measured one.
        further: Systems with other rewriters, by name.
        deep: Passages of OQR deep, which is left out where that is not more than the system's `per_query`; as many as
            all queries of the system with the most retrieve when None.
    """
    search, rewriter = system.search, system.rewriter
    alone = {"rewriter": None, "feedback_retriever": None, "original": True, **_searching((), ORIGINAL)}
    deep = deep or max(_queries(each.search) * each.search.per_query for each in (system, *further.values()))
    rows = [Method(OQR, alone if rewriter else {})]
    if deep > search.per_query:
        rows.append(Method(OQR_DEEP, {**alone, "per_query": deep}))
    if search.judged_by != ORIGINAL:  # what judging by a rewrite does without searching with it
        by = _searching((), search.judged_by) | {"original": True}
        rows += [
            Method(f"{each.name}{JUDGED_BY}{search.judged_by}", by | {"per_query": own}, part=True)
            for each, own in zip([*rows], (search.per_query, deep), strict=False)
        ]
    for name, other in further.items():
        theirs = other.search
        whole = {each: getattr(theirs, each) for each in ("retriever", "rewriter", "feedback_retriever", "per_query")}
        reranked = search.fusion == theirs.fusion == "rerank"
        judged_by = theirs.judged_by if reranked else ORIGINAL
        strategies = theirs.strategies if theirs.rewriter else ()
        whole |= {"fusion": "rerank" if reranked else "rrf", "original": theirs.original, "judged_by": judged_by}
        if len(strategies) > 1:
            rows += [Method(f"{name}, {one}", whole | _searching((one,), judged_by), part=True) for one in strategies]
        rows.append(Method(name, whole | _searching(strategies, judged_by)))
    if isinstance(rewriter, ChoosingRewriter) and rewriter.adaptive:
        rows.append(Method(ALL_STRATEGIES, {"rewriter": rewriter.without_choice()}))
    if rewriter is not None:
        several = search.strategies if len(search.strategies) > 1 else ()
        rows += [Method(one, _searching((one,), search.judged_by), part=True) for one in several]
        rows.append(Method(own_name(system), {}))
        if search.fusion == "rerank":
            rows.append(Method(f"{own_name(system)}{FUSED}", {"fusion": "rrf"}, part=True))
        for one in several if len(several) > 2 else ():  # of two, one without the other is the other alone
            others = tuple(each for each in several if each != one)
            rows.append(Method(f"w/o {one}", _searching(others, search.judged_by), part=True, without=one))
    return {each.name: each for each in rows}


def _queries(search: MultiQueryRetriever) -> int:
    """Queries per question, if each strategy makes one."""
    return len(search.strategies if search.rewriter else ()) + search.original


def _searching(strategies: tuple[str, ...], judged_by: str) -> dict[str, Any]:
    """The settings with which the rewrites by some strategies search; that by another one may be what judges."""
    judging = () if judged_by == ORIGINAL else (judged_by,)
    made = tuple(dict.fromkeys([*strategies, *judging]))
    return {"strategies": made, "searching": strategies, "judged_by": judged_by}


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
