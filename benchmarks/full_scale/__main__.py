"""What training and evaluation cost at the data sets' own sizes.

Generated files, mining, tiny networks, two ranks, a kill, resuming, export.

    bash scripts/full_scale.sh --share 0.01 --out full_scale
    bash scripts/full_scale.sh --share 0.01 0.1 1 --out full_scale --systems rerag

Every stage is a command that works for real data too. A table of each system goes to OUT/SHARE/SYSTEM.md, and of
several shares to OUT/SYSTEM.md. Files and indexes of an earlier run are used again, mined passages among them.
"""

import argparse
import json
import shutil
from collections.abc import Sequence
from pathlib import Path

from benchmarks.full_scale.process_memory import check_proc
from benchmarks.full_scale.stage import Cost, measure
from benchmarks.full_scale.systems import ROOT, RUNS, SYSTEMS, arguments, stages
from benchmarks.full_scale.tables import growth, table
from common.errors import UserError, exit_code
from common.files import write_text
from common.progress import say

COMMAND = "python -m benchmarks.full_scale"
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "passive",
    "TOKENIZERS_PARALLELISM": "false",
    "WANDB_MODE": "disabled",
    "PYTHONPATH": str(ROOT),
}


def parser() -> argparse.ArgumentParser:
    """The command line."""
    options = argparse.ArgumentParser(
        COMMAND, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--share", type=float, nargs="+", default=[0.01], help="of the data sets' sizes: in (0, 1]")
    options.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    options.add_argument("--out", type=Path, required=True)
    return options


def measured(system: str, share: float, out: Path) -> list[Cost]:
    """Run a system's stages in a folder; their costs."""
    for end in RUNS:  # a run starts over
        shutil.rmtree(out / "checkpoints" / f"{system}{end}", ignore_errors=True)
    shutil.rmtree(out / "reports" / system, ignore_errors=True)
    log = out / "logs" / f"{system}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    costs = []
    for stage in stages(system, share, out):
        if stage.makes and (out / stage.makes).exists():
            continue
        say(f"== {system}, {share:.4g} of full size: {stage.name}")
        costs.append(measure(stage.name, arguments(stage), out, ENVIRONMENT, log, stage.training))
        say(f"   {costs[-1].seconds:.0f} s, {costs[-1].core_seconds:.0f} core-seconds")
        rows = [cost.to_row() for cost in costs]  # written after each stage: a run of hours may be stopped
        write_text(out / f"{system}.json", json.dumps({"share": share, "stages": rows}, indent=1))
        write_text(out / f"{system}.md", table(system, share, costs))
    print(table(system, share, costs), flush=True)
    return costs


def main(given: Sequence[str] | None = None) -> None:
    """Run the command."""
    options = parser().parse_args(given)
    check_proc()
    for share in options.share:
        if not 0 < share <= 1:
            raise UserError(f"--share {share}: give a number above 0, at most 1.")
    out = options.out.resolve()
    for system in options.systems:
        costs = {share: measured(system, share, out / f"{share:g}") for share in options.share}
        if len(costs) > 1:
            write_text(out / f"{system}.md", text := growth(system, costs))
            print(text, flush=True)


if __name__ == "__main__":
    raise SystemExit(exit_code(COMMAND, main))
