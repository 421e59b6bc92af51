"""Markdown tables of what stages cost: one size in full, and several sizes beside each other."""

from collections.abc import Mapping, Sequence

from benchmarks.full_scale.process_memory import NO_RANK
from benchmarks.full_scale.stage import Cost

MEGA = 1e6


def table(system: str, share: float, costs: Sequence[Cost]) -> str:
    """A row per stage."""
    ranks = sorted({rank for cost in costs for rank in cost.own_bytes if rank != NO_RANK})
    head = ["stage", "seconds", "core-seconds", "to the first step, s", *(f"rank {rank}, MB" for rank in ranks)]
    rows = [
        [
            cost.stage,
            f"{cost.seconds:.1f}",
            f"{cost.core_seconds:.1f}",
            "" if cost.first_step_seconds is None else f"{cost.first_step_seconds:.1f}",
            *(f"{cost.own_bytes[rank] / MEGA:.0f}" if rank in cost.own_bytes else "" for rank in ranks),
            f"{cost.all_own_bytes / MEGA:.0f}",
            f"{cost.all_mapped_bytes / MEGA:.0f}",
        ]
        for cost in costs
    ]
    title = (
        f"## {system}, {100 * share:g}% of full size\n\nMemory: peaks of what the machine cannot drop, and of mapped "
        "files.\n"
    )
    return f"{title}\n{_markdown([*head, 'all processes, MB', 'mapped files, MB'], rows)}"


def growth(system: str, costs: Mapping[float, Sequence[Cost]]) -> str:
    """A row per stage and measure, a column per share of full size; how often the last is the first."""
    shares = sorted(costs)
    names = list(dict.fromkeys(cost.stage for share in shares for cost in costs[share]))
    of = {(share, cost.stage): cost for share in shares for cost in costs[share]}
    measures = {
        "seconds": lambda cost: cost.seconds,
        "core-seconds": lambda cost: cost.core_seconds,
        "to the first step, s": lambda cost: cost.first_step_seconds,
        "largest process group, MB": lambda cost: max(cost.own_bytes.values(), default=0) / MEGA,
    }
    rows = []
    for name in names:
        for what, measure in measures.items():
            values = [measure(of[share, name]) if (share, name) in of else None for share in shares]
            if any(value is not None for value in values):
                ratio = f"{values[-1] / values[0]:.1f}" if values[0] and values[-1] else ""
                rows.append([name, what, *("" if value is None else f"{value:.1f}" for value in values), ratio])
    head = ["stage", "", *(f"{100 * share:g}%" for share in shares), "last / first"]
    return f"## {system}, growth\n\n{_markdown(head, rows)}"


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
