"""Runs a module command of the installed package: `python -m lightning_rag trainers.t5_from_scratch --help`."""

import runpy
import sys

COMMANDS = ("trainers.t5_from_scratch", "datamodules.world")

if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in COMMANDS:
        del sys.argv[0]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        print(f"usage: python -m lightning_rag {{{','.join(COMMANDS)}}} ...", file=sys.stderr)
        raise SystemExit(2)
