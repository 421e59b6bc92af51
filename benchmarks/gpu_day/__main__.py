"""One step of what only a GPU can show; `scripts/gpu_day.sh` runs them all, each in a process of its own.

    python -m benchmarks.gpu_day STEP --out FOLDER [--rehearse]

A step writes FOLDER/STEP.json anew after each row of its results.  With --rehearse it measures tiny sizes on the CPU.
"""

import argparse
import json
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from common.errors import UserError
from common.files import write_text

STEPS = {  # name -> module, and what it is called with
    "card": ("card", None),
    "training-triples": ("training", "triples"),
    "training-contexts": ("training", "contexts"),
    "training-rewrites": ("training", "rewrites"),
    "scoring": ("scoring", None),
}


def parser() -> argparse.ArgumentParser:
    """The command line."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("step", choices=[*STEPS, "table"])
    options.add_argument("--out", type=Path, required=True)
    options.add_argument("--rehearse", action="store_true")
    return options


def matrix_rate(folder: Path) -> float | None:
    """TFLOP/s of a bf16 matrix product, which the step `card` has measured; None if it has not."""
    file = folder / "card.json"
    rows = json.loads(file.read_text())["rows"] if file.is_file() else []
    return next((each["ours"] for each in rows if "in bfloat16" in each["what"]), None)


def run(step: str, folder: Path, rehearse: bool) -> None:
    """Measure a step and write its rows.

    Raises:
        UserError: If there is no GPU, and it is no rehearsal.
    """
    import torch

    from benchmarks.gpu_day.sizes import CARD, REHEARSAL

    if not rehearse and not torch.cuda.is_available():
        raise UserError("torch sees no GPU: add --rehearse to try all steps in tiny sizes on the CPU.")
    name, case = STEPS[step]
    module = import_module(f"benchmarks.gpu_day.{name}")
    measure = module.measure if case is None else module.measures(case)
    sizes, device = (REHEARSAL, "cpu") if rehearse else (CARD, "cuda")
    rows = []
    for row in measure(sizes, torch.device(device), matrix_rate(folder)):
        rows.append(row)
        write_text(folder / f"{step}.json", json.dumps({"rehearsal": rehearse, "rows": rows}, indent=1))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a step, or make the table."""
    options = parser().parse_args(arguments)
    if options.step == "table":
        from benchmarks.gpu_day.table import write_table

        print(write_table(options.out), end="")
    else:
        run(options.step, options.out, options.rehearse)


if __name__ == "__main__":
    main()
