"""torchrun that ends with the exit code of the program that it runs, without a traceback.

    python -m lightning_rag.torchrun --nproc-per-node 8 train.py fit --config configs/train/rerag_nq.yaml

Its options are those of torchrun, which itself ends with 1 and a traceback whatever has happened.
"""

import signal

from common.beginning import begin
from common.errors import StoppedError, exit_code


def launch() -> None:
    """Run torchrun's command line.

    Raises:
        SystemExit: If a process has failed, with the code of the first one; of one that a signal has ended 128 and the
            signal's number, as of a shell.
        KeyboardInterrupt: After Ctrl-C, or as StoppedError after SIGTERM, when the processes have ended.
    """
    from torch.distributed.elastic.multiprocessing import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.run import main

    try:
        main()
    except SignalException as stopped:
        raise (KeyboardInterrupt if stopped.sigval == signal.SIGINT else StoppedError(stopped.sigval)) from None
    except ChildFailedError as error:
        code = error.get_first_failure()[1].exitcode
        raise SystemExit(code if code >= 0 else 128 - code) from None


if __name__ == "__main__":
    begin("torchrun")
    raise SystemExit(exit_code("torchrun", launch))
