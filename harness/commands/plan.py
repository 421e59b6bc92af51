"""`infer.py plan`: what a configured system will take of this machine's memory, before anything is loaded."""

import json as json_format
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from common.checks import check_above, check_at_least
from common.errors import MemoryShortError
from common.progress import in_bytes
from harness.interfaces import LanguageModel, Strategy
from harness.readers.llm import read_by

if TYPE_CHECKING:
    from harness.runtime.memory_plan import Change, Plan

_TIGHT = 0.9  # of what is free


def plan(
    strategy: Strategy,
    gpu_memory_gib: float | None = None,
    ram_gib: float | None = None,
    questions_at_once: int = 64,
    json: bool = False,
    llm: LanguageModel | None = None,
) -> None:
    """Say what index, weights and activations will take in bytes, and what to change where that does not fit.

    Only manifests, config.json files and tokenizers are read. Exit code 69: it does not fit.

    Args:
        strategy: The system; it is not built.
        gpu_memory_gib: Memory of one GPU in GiB, instead of the GPUs of this machine.
        ram_gib: Main memory in GiB that the program may take, instead of what is free here.
        questions_at_once: Questions answered together: 64 by `evaluate`, 1 by `ask`.
        json: Print the plan as JSON.
        llm: Language model that reads, in the place of the strategy's reader.
    """
    read_by(strategy, llm)
    check_plan(gpu_memory_gib, ram_gib, questions_at_once)
    from harness.runtime.memory_needs import Machine
    from harness.runtime.memory_plan import plan_memory

    machine = Machine.here(gpu_memory_gib, ram_gib)
    planned = plan_memory(machine, "strategy", strategy, questions_at_once)
    changed, made = planned.remedy()
    again = questions_at_once > 1 and (json or planned.short)
    one = plan_memory(machine, "strategy", strategy, 1, planned.process) if again else planned
    if json:
        print(json_format.dumps(as_json(planned, changed, made, one), indent=2, ensure_ascii=False))
    else:
        print("\n".join(_lines(planned, questions_at_once, changed, made, one)))
    if planned.short:
        raise MemoryShortError(
            "; ".join(
                f"{place} is short: {in_bytes(planned.needed(place))} are needed, {_free(planned, place)} are free"
                for place in planned.short
            )
            + f". {'Change the options above' if made else 'Name a smaller model or index, or a larger machine'}."
        )


def check_plan(gpu_memory_gib: float | None, ram_gib: float | None, questions_at_once: int) -> None:
    """Raise UserError if a number is out of range; called before anything is read."""
    check_above(0, gpu_memory_gib=gpu_memory_gib, ram_gib=ram_gib)
    check_at_least(1, questions_at_once=questions_at_once)


def as_json(planned: "Plan", changed: "Plan", made: "Sequence[Change]", one: "Plan") -> dict[str, Any]:
    """The plan as a JSON object; all sizes in bytes.

    Args:
        planned: The plan.
        changed: The plan after `made`.
        made: Changes that make it fit, or lower it.
        one: The plan of one question at a time.
    """
    needs = [("", need) for need in planned.process]
    needs += [(entry.key, need) for entry in planned.entries for need in entry.memory.needs]
    return {
        "fits": not planned.short,
        "places": {
            place: {
                "needed": planned.needed(place),
                "needed_one_question": one.needed(place),
                "needed_after_changes": changed.needed(place),
                "free": free,
                "fits": planned.fits(place),
            }
            for place, free in planned.machine.free.items()
        },
        "parts": [{"key": key, **asdict(need)} for key, need in needs],
        "unknown": {entry.key: entry.memory.unknown for entry in planned.entries if entry.memory.unknown},
        "changes": [
            {"change": change.typed(planned.entries[change.entry].key), "saves": dict(change.saves)} for change in made
        ],
    }


def _free(planned: "Plan", place: str) -> str:
    free = planned.machine.free[place]
    return "unknown" if free is None else in_bytes(free)


def _lines(planned: "Plan", questions: int, changed: "Plan", made: "Sequence[Change]", one: "Plan") -> list[str]:
    """The plan for people: a table of parts, a verdict per place, and what to change."""
    lines = _table(planned)
    lines += [f"Unknown: {entry.key}: {entry.memory.unknown}." for entry in planned.entries if entry.memory.unknown]
    counted = "the unknown parts left out" if lines[-1].startswith("Unknown") else "all parts counted"
    threads = planned.machine.threads
    lines += ["", f"Questions at once: {questions}; CPU threads: {threads}; {counted}:"]
    for place, free in planned.machine.free.items():
        needed = planned.needed(place)
        verdict = "fits" if planned.fits(place) else "DOES NOT FIT"
        if free is not None and planned.fits(place) and needed > _TIGHT * free:
            verdict = "fits, but less than a tenth of the memory is left"
        verdict = "what is free is not known on this system: name it with --ram_gib" if free is None else verdict
        lines.append(f"  {place}: {in_bytes(needed)} of {_free(planned, place)}: {verdict}")
    if not planned.short:
        return lines
    lines += ["", "What to change, the greatest saving first:"]
    lines += [f"  {change.typed(planned.entries[change.entry].key)}  ({_saved(change.saves)})" for change in made]
    lines += ["  nothing among the options lowers it"] * (not made)
    if made:
        after = ", ".join(f"{place} {in_bytes(changed.needed(place))}" for place in planned.machine.free)
        lines.append(f"With these changes: {after}: {'does not fit either' if changed.short else 'fits'}.")
    if one is not planned and not one.short:
        after = ", ".join(f"{place} {in_bytes(one.needed(place))}" for place in planned.machine.free)
        lines.append(f"One question at a time, as `infer.py ask` answers it, fits: {after}.")
    return lines


def _saved(saves: Mapping[str, int]) -> str:
    """Bytes saved by place, in words."""
    return ", ".join(f"{place} {in_bytes(abs(b))} {'less' if b > 0 else 'more'}" for place, b in saves.items() if b)


def _table(planned: "Plan") -> list[str]:
    """The parts as an aligned table."""
    head = ["part", "where", "weights", "index", "activations", "sum", "mapped files"]
    rows = [
        [need.what, need.place, *map(_size, (need.weights, need.index, need.activations, need.held + need.activations)),
         _size(need.mapped)]
        for need in planned.needs
    ]  # fmt: skip
    for place in planned.machine.free:
        here = [need for need in planned.needs if need.place == place]
        sums = (sum(n.weights for n in here), sum(n.index for n in here), max((n.activations for n in here), default=0))
        rows.append([f"all, with the largest activations: {place}", place, *map(_size, sums),
                     _size(planned.needed(place)), _size(sum(n.mapped for n in here))])  # fmt: skip
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    lines = [
        "  ".join(
            cell.rjust(width) if column > 1 else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in [head, ["-" * width for width in widths], *rows]
    ]
    return [line.rstrip() for line in lines]


def _size(count: int) -> str:
    return in_bytes(count) if count else ""
