"""Trains one model of a RAG system.

    python train.py fit --config configs/train/drrag_hotpotqa.yaml
    python train.py fit --config configs/train/drrag_hotpotqa.yaml --model.optimizer.learning_rate 5e-5 --name try-2
    torchrun --nproc-per-node 8 train.py fit --config configs/train/rerag_nq.yaml --trainer.devices 8
    python train.py fit --config checkpoints/drrag-hotpotqa/config.yaml --resume auto
    python train.py validate --config checkpoints/drrag-hotpotqa/config.yaml --resume auto
    python train.py fit --model.help trainers.drrag.DrRagTrainer

`fit` writes checkpoints/<name>/ with checkpoints, metrics, plots and the serving folder; `validate` measures a
checkpoint on the validation data.

A config names a trainer (`trainers/`), a data module (`datamodules/`) and options of Lightning's Trainer. Every key is
a constructor parameter: a misspelt key or a wrong type is an error before anything is loaded.
"""

import os
import sys

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # idle threads must not occupy the cores that other ranks need

from common.beginning import begin

if __name__ == "__main__":
    begin("train.py")  # before the imports that take seconds

from contextlib import ExitStack
from typing import TYPE_CHECKING

from common.errors import UserError, exit_code
from common.warning_filters import unwanted_hidden
from trainers.run.help import quick_answer

if TYPE_CHECKING:
    from trainers.run.cli import TrainCLI


def main(args: list[str] | None = None) -> "TrainCLI | None":
    """Run a command; help and version are printed without importing Lightning, and None is returned.

    Raises:
        UserError: For what Lightning finds wrong with the options.
        KeyboardInterrupt: At a second Ctrl-C, or at a signal before training; Lightning would exit with 1.
    """
    text = quick_answer(sys.argv[1:] if args is None else args)
    if text is not None:
        print(text)
        return None
    from pytorch_lightning.utilities.exceptions import MisconfigurationException

    from trainers.run.cli import TrainCLI

    with ExitStack() as locks, unwanted_hidden():
        try:
            return TrainCLI(args, locks=locks)
        except MisconfigurationException as error:
            raise UserError(" ".join(str(error).split())) from error
        except SystemExit as stop:
            if isinstance(stop.__context__, KeyboardInterrupt):
                raise stop.__context__ from None
            raise


def run() -> int:
    """Run the command line; returns the exit code."""
    return exit_code("train.py", main, lambda: "A run that had begun continues with --resume auto.")


if __name__ == "__main__":
    raise SystemExit(run())
