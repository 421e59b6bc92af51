"""Processes that begin with the packages of train.py loaded, which takes a new Python seconds: forks of one server.

Several are ranks: they find torchrun's variables, and all end soon after one has failed.  Run as a module this is the
server.
"""

import atexit
import gc
import json
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
from functools import cache
from importlib import import_module
from multiprocessing import connection, get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

ROOT = Path(__file__).parents[2]
# A process of its own gets as many threads as this one, or its runs would not repeat ours to the last bit.
SAME_THREADS = {name: str(torch.get_num_threads()) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
Done = subprocess.CompletedProcess[str]
LIMIT_S, GRACE_S = 1200, 10  # of a process, and of the others after one has failed


def forked(module: str, folder: Path, *arguments: str, processes: int = 1, **environment: str) -> Done:
    """Run a module in `folder` by so many processes; the first exit code that is not 0, and what all have printed."""
    server = _server()
    assert server.stdin is not None
    assert server.stdout is not None
    with TemporaryDirectory() as printed:
        given = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
        asked = {"module": module, "folder": str(folder), "arguments": arguments, "processes": processes,
                 "environment": given, "printed": printed}  # fmt: skip
        server.stdin.write(f"{json.dumps(asked)}\n")
        server.stdin.flush()
        code = int(server.stdout.readline())
        out, err = (Path(printed, name).read_text() for name in ("out", "err"))
    return subprocess.CompletedProcess([module, *arguments], code, out, err)


@cache
def _server() -> subprocess.Popen[str]:
    server = subprocess.Popen(
        [sys.executable, "-m", __name__], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, **SAME_THREADS},
    )  # fmt: skip
    atexit.register(server.communicate)  # it ends when there are no more requests
    return server


def _serve() -> None:
    import trainers

    for name in ["trainers.run.cli", *(f"trainers.{found.name}" for found in pkgutil.iter_modules(trainers.__path__))]:
        import_module(name)
    gc.collect()
    gc.freeze()  # a collection in a fork would copy the memory of all that is loaded
    fork = get_context("fork")
    for line in sys.stdin:
        asked = json.loads(line)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        started = [fork.Process(target=_run, args=(asked, rank, port)) for rank in range(asked["processes"])]
        for process in started:
            process.start()
        running, code = {process.sentinel: process for process in started}, 0
        while running:
            ended = [running.pop(each) for each in connection.wait(list(running), GRACE_S if code else None)]
            for process in ended:
                process.join()
                code = code or process.exitcode
            for process in () if ended else running.values():
                process.kill()
        print(code, flush=True)


def _run(asked: dict[str, Any], rank: int, port: int) -> None:
    """In a fork: run the module as a program."""
    signal.alarm(LIMIT_S)
    for number, name in ((1, "out"), (2, "err")):
        file = os.open(Path(asked["printed"], name), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(asked["environment"])
    if asked["processes"] > 1:
        from pytorch_lightning.utilities import rank_zero_only

        rank_zero_only.rank = rank  # it has been read from the server's environment
        of_torchrun = {
            "RANK": rank, "LOCAL_RANK": rank, "GROUP_RANK": 0, "WORLD_SIZE": asked["processes"],
            "LOCAL_WORLD_SIZE": asked["processes"], "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
            "TORCHELASTIC_RUN_ID": "forked", "TORCHELASTIC_RESTART_COUNT": 0,
        }  # fmt: skip
        os.environ.update({name: str(value) for name, value in of_torchrun.items()})
    os.chdir(asked["folder"])
    sys.argv = [asked["module"], *asked["arguments"]]
    runpy.run_module(asked["module"], run_name="__main__")


if __name__ == "__main__":
    _serve()
