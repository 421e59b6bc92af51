"""Batches that worker processes make ahead of the training, in the order of small requests from the training process.

PyTorch's DataLoader runs the processes. This module adds what it lacks:

- Tensors are sent by value. By default each of them takes a file descriptor and shared memory: a batch of RE-RAG has
  hundreds of tensors, most systems allow a process 1,024 descriptors, and most containers have 64 MiB of shared memory.
- An error that a user can correct is sent as data and raised here: DataLoader would put a traceback into its message.
- A worker ends with the training process, however that ends: DataLoader's workers watch their parent, here a server
  that lives as long as they do.
- Signals that stop a run are for the training process alone: it still needs batches until the step that it computes is
  done.
- DataLoader would draw a seed from torch's generator, and so change the training.
"""

import io
import os
import pickle
import signal
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from multiprocessing import get_context, parent_process, resource_tracker
from threading import Thread
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler

from common.errors import MemoryShortError, UserError
from datamodules.examples.batches import Batch

Request = TypeVar("Request")
Made = TypeVar("Made", bound=Batch)
Make = Callable[[Request], Made]

AHEAD = 2  # batches that a worker makes before the first of them is taken
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
_SLOW_IMPORTS = ["torch", "transformers"]  # by the server, once for all workers that it forks


class Prefetcher(Generic[Request, Made]):
    """Makes batches of requests in worker processes.

    Args:
        make: Makes a batch of a request; it is sent to each worker once.
        workers: Number of processes, at least 1.
        pin: Whether a batch is copied into pinned memory.
        keep: Whether the workers live on, idle, until the next requests; else until these are done.

    Raises:
        UserError: If this system lacks what workers need to end with the training process: macOS and Windows do.
    """

    def __init__(self, make: Make[Request, Made], workers: int, pin: bool = False, keep: bool = False) -> None:
        if not hasattr(signal, "sigtimedwait"):
            raise UserError(f"data.workers is {workers}, and worker processes need Linux: set data.workers to 0.")
        self._requests: _Requests[Request] = _Requests()
        context = get_context("forkserver")
        context.set_forkserver_preload([*_SLOW_IMPORTS, type(make).__module__])
        loader: DataLoader[Any] = DataLoader(
            _Maker(make), batch_size=None, sampler=self._requests, num_workers=workers, collate_fn=_as_it_is,
            pin_memory=pin, worker_init_fn=_begin_worker, multiprocessing_context=context, generator=torch.Generator(),
            prefetch_factor=AHEAD, persistent_workers=keep,
        )  # fmt: skip
        self._loader, self._keep = loader, keep
        self._passes: list[Any] = []  # whose workers run
        # Kept outside of this object, which may be part of a cycle of references: of one, Python collects the queues
        # before DataLoader has told the workers to end.
        self.close = weakref.finalize(self, _end, self._passes)

    def __call__(self, requests: Iterator[Request]) -> Iterator[Made]:
        """The batches, in order.  Requests are taken some batches ahead.

        Raises:
            UserError: As `make`, at the request's turn.
            MemoryShortError: If a worker has been killed.
        """
        first = list(islice(requests, 1))  # plans an epoch, which may take long, before signals are held
        self._requests.coming = chain(first, requests)
        with _stop_signals_held():
            answers = iter(self._loader)
        if answers not in self._passes:
            self._passes.append(answers)
        try:
            while (answer := _next(answers)) is not None:
                if isinstance(answer, UserError):
                    raise answer
                yield answer.batch() if isinstance(answer, _ByValue) else answer
        finally:
            if not self._keep:
                self._passes.remove(answers)
                _end([answers])


class PrefetchedSequence(Generic[Made]):
    """The same batches in every pass.

    Args:
        requests: Of the batches.
        ahead: Makes them.
    """

    def __init__(self, requests: Sequence[Any], ahead: Callable[[Iterator[Any]], Iterator[Made]]) -> None:
        self._requests, self._ahead = requests, ahead

    def __len__(self) -> int:
        return len(self._requests)

    def __iter__(self) -> Iterator[Made]:
        return self._ahead(iter(self._requests))


class _Requests(Sampler[Request]):
    """The requests of the next pass."""

    def __init__(self) -> None:
        self.coming: Iterator[Request] = iter(())

    def __iter__(self) -> Iterator[Request]:
        return self.coming


@dataclass(frozen=True, slots=True)
class _ByValue:
    """A batch on its way."""

    content: bytes

    def batch(self) -> Any:
        return pickle.loads(self.content)

    def pin_memory(self) -> Any:
        """Called by DataLoader's thread."""
        return self.batch().pin_memory()


class _Maker(Dataset[Any], Generic[Request, Made]):
    """What a worker does with a request."""

    def __init__(self, make: Make[Request, Made]) -> None:
        self._make = make

    def __getitem__(self, request: Request) -> _ByValue | UserError:
        try:
            content = io.BytesIO()
            _Pickler(content, pickle.HIGHEST_PROTOCOL).dump(self._make(request))
            return _ByValue(content.getvalue())
        except UserError as error:
            return error


class _Pickler(pickle.Pickler):
    """Writes tensors as arrays."""

    def reducer_override(self, obj: Any) -> Any:
        return (torch.from_numpy, (obj.numpy(),)) if isinstance(obj, Tensor) else NotImplemented


def _next(answers: Iterator[Any]) -> Any:
    """The next answer; None at the end."""
    try:
        return next(answers, None)
    except RuntimeError as error:
        if "exited unexpectedly" not in str(error):
            raise
        raise MemoryShortError(
            "a process that makes batches was killed, perhaps for lack of memory: lower data.workers; 0 makes the "
            "batches in the training process."
        ) from error


def _end(passes: list[Any]) -> None:
    """End the workers."""
    for each in passes:
        each._shutdown_workers()


def _as_it_is(answer: Any) -> Any:
    return answer


def _begin_worker(number: int) -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # each worker has one thread, as torch's
    Thread(target=_end_with_training, daemon=True).start()


def _end_with_training() -> None:
    """End this process when the training process has ended, or tells it to."""
    training = parent_process()
    assert training is not None
    while training.is_alive():
        told = signal.sigtimedwait([signal.SIGTERM], 1.0)
        if told is not None and told.si_pid == training.pid:
            break
    os._exit(1)


@contextmanager
def _stop_signals_held() -> Iterator[None]:
    """Hold back the signals that stop a run.

    Processes started meanwhile never get them; this one gets them afterwards.
    """
    resource_tracker.ensure_running()  # started later it would let them through
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
