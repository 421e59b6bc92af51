"""The table of the stages, with bytes per passage and what they come to at Wikipedia's size."""

import platform
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.large_indexes.measured import Measured

WIKIPEDIA = 21_015_324  # passages of 100 words (Karpukhin et al. 2020)


def report(out: Path, given: Mapping[str, Any], stages: Mapping[str, Measured]) -> None:
    """Write the table.

    Args:
        out: The Markdown file.
        given: The options of the command.
        stages: By name, in order.
    """
    count = given["passages"]
    options = " ".join(
        f"--{name} {value}"
        for name, value in given.items()
        if name not in ("kind", "folder", "out") and value is not None
    )
    lines = [
        f"# {given['kind']}: {count:,} generated passages",
        "",
        f"    python -m benchmarks.large_indexes {given['kind']} --folder FOLDER {options}",
        "",
        f"{_machine()}. *Held* is the peak of memory that the system cannot drop, of all processes together; *mapped* "
        "that of pages of files,",
        "which it drops where memory is short.",
        "",
        "| stage | seconds | core-seconds | held, MiB | held, bytes a passage | mapped, MiB |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
        *(_row(name, each, count) for name, each in stages.items()),
        "",
        *(f"- {name}: {_figures(each.result)}" for name, each in stages.items()),
        "",
        f"On disk at Wikipedia's {WIKIPEDIA:,} passages, in proportion:",
        "",
        *(
            f"- {name}, {key}: {value / count:,.0f} bytes a passage, {value / count * WIKIPEDIA / 2**30:,.1f} GiB"
            for name, each in stages.items()
            for key, value in each.result.items()
            if isinstance(value, int) and value > count
        ),
    ]
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _row(name: str, stage: Measured, count: int) -> str:
    held, mapped = stage.held_bytes / 2**20, stage.mapped_bytes / 2**20
    cells = (
        f"{stage.seconds:,.1f}",
        f"{stage.core_seconds:,.1f}",
        f"{held:,.0f}",
        f"{stage.held_bytes / count:,.0f}",
        f"{mapped:,.0f}",
    )
    return f"| {name} | {' | '.join(cells)} |"


def _figures(result: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{key} {value:,}" if isinstance(value, int) else f"{key} {value:.3f}" for key, value in result.items()
    )


def _machine() -> str:
    import os

    cpu = next(
        (
            line.split(":")[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        "",
    )
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    return f"{os.cpu_count()} cores ({cpu or platform.machine()}), commit {commit or 'unknown'}"
