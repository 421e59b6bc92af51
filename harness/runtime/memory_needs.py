"""What parts of a system take of a machine's memory: the records that their `memory` methods take and return.

    @staticmethod
    def memory(machine: Machine, load: Load, index: Path, device: str) -> Memory

is a method of a class that takes memory, beside `check_options`, with the constructor's names for the options that it
needs. It reads manifests and `config.json` files, never weights or an index.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from common.checks import Precision
from common.errors import UserError

if TYPE_CHECKING:
    from models.live_memory import Compute, PartMemory

RAM = "RAM"
_CUDA_CONTEXT_BYTES = 2**29  # assumed of a GPU that is only named; torch leaves it out of what is free on a real one
GIB = 2**30
_HEAP = (
    2  # a CPU's heap keeps freed blocks: it grows by 1.2 to 2.0 times the largest sum of live tensors (measured, glibc)
)


@dataclass(frozen=True, slots=True)
class Load:
    """What a part gets at once."""

    questions: int  # texts that the strategy answers
    queries: int  # texts that a retriever searches with
    passages: int = 100  # passages of a question that a reader reads


@dataclass(frozen=True, slots=True)
class Need:
    """Memory of one part in one place, bytes."""

    what: str
    place: str  # RAM or "GPU 0"
    weights: int = 0
    index: int = 0
    activations: int = 0  # of all parts only the largest counts: they compute one after the other
    mapped: int = 0  # files mapped into memory, which the system drops where memory is short; they do not count
    libraries: int = 0

    @property
    def held(self) -> int:
        """Everything that is kept while other parts compute."""
        return self.weights + self.index + self.libraries


@dataclass(frozen=True, slots=True)
class Memory:
    """What a class says of one of its objects.

    Args:
        needs: Its memory, without that of the parts among its options.
        changes: Options with a value that may lower it; the plan computes whether it does.
        parts: What its parts get at once; as the object itself when None.
        unknown: Why nothing is known; empty if all is.
    """

    needs: tuple[Need, ...] = ()
    changes: tuple[tuple[str, object], ...] = ()
    parts: Load | None = None
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine whose memory is planned.

    Args:
        free: Bytes that are free, by place; None where the system does not say.  Without a GPU only RAM.
        threads: CPU threads.
        named: Whether the GPU was named instead of found.
        torch_bytes: Memory of torch in this process, if planning has loaded it: a system without networks does without.
    """

    free: Mapping[str, int | None]
    threads: int
    named: bool = False
    torch_bytes: int = 0

    @classmethod
    def here(cls, gpu_memory_gib: float | None = None, ram_gib: float | None = None) -> "Machine":
        """This machine, or one with the named memory.

        Args:
            gpu_memory_gib: Memory of one GPU, instead of those that are found here.
            ram_gib: RAM for this program, instead of what is free here.
        """
        before = resident_bytes()
        import torch

        from models.device_memory import available_bytes

        torch_bytes = resident_bytes() - before
        there = available_bytes(torch.device("cpu")) if ram_gib is None else round(ram_gib * GIB)
        if there is not None and ram_gib is None:
            there += resident_bytes()  # the plan counts what this process holds already
        free: dict[str, int | None] = {RAM: there}
        if gpu_memory_gib is not None:
            free["GPU 0"] = round(gpu_memory_gib * GIB)
        elif torch.cuda.is_available():
            free |= {f"GPU {n}": available_bytes(torch.device("cuda", n)) for n in range(torch.cuda.device_count())}
        return cls(free, torch.get_num_threads(), gpu_memory_gib is not None, torch_bytes)

    @property
    def gpus(self) -> list[str]:
        """Names of the GPUs, as places."""
        return [place for place in self.free if place != RAM]

    def process(self, networks: bool) -> tuple[Need, ...]:
        """Memory of the process itself with the libraries that are loaded; torch has computed once in each precision.

        Args:
            networks: Whether a part computes with torch.
        """
        if not networks:
            return (Need("Python and libraries", RAM, libraries=resident_bytes() - self.torch_bytes),)
        import torch

        for dtype in (torch.float32, torch.bfloat16):
            layer = torch.nn.TransformerEncoderLayer(64, 2, batch_first=True, dtype=dtype).eval()
            with torch.inference_mode():
                layer(torch.zeros(2, 8, 64, dtype=dtype))
        context = [Need("CUDA context (assumed)", self.gpus[0], libraries=_CUDA_CONTEXT_BYTES)] if self.named else []
        return (Need("Python and libraries", RAM, libraries=resident_bytes()), *context)

    def place(self, device: str) -> str:
        """Where a part with this `device` option computes.

        Raises:
            UserError: If the name is unknown, or names a GPU that the machine does not have.
        """
        if device == "cpu" or (device == "auto" and not self.gpus):
            return RAM
        number = 0 if device in ("auto", "cuda") else int(device[5:]) if device[5:].isdigit() else None
        if number is None or not (device == "auto" or device.startswith("cuda")):
            raise UserError(f"device {device!r} is unknown; allowed: auto, cpu, cuda, cuda:N.")
        if number >= len(self.gpus):
            raise UserError(
                f"device is {device!r}, but the plan is for {len(self.gpus)} GPUs: use auto or cpu, or name a GPU's "
                "memory with --gpu_memory_gib."
            )
        return self.gpus[number]

    def compute(self, device: str, precision: Precision) -> "Compute":
        """How a part with these options computes; on a GPU that is only named, `auto` is bf16 as on all since Ampere.

        Raises:
            UserError: As `place`, or if the precision is unknown.
        """
        import torch

        from models.devices import VARIABLE, compute_dtype
        from models.live_memory import Compute

        on_gpu = self.place(device) != RAM
        if on_gpu and self.named and precision == "auto":
            half = os.environ.get(VARIABLE, "auto") != "fp32"
        else:
            half = compute_dtype(precision, torch.device("cuda" if on_gpu else "cpu")) == torch.bfloat16
        return Compute(on_gpu, half, self.threads)

    def networks(
        self,
        folder: str | Path,
        device: str,
        precision: Precision,
        count: "Callable[[Compute], Mapping[str, PartMemory]]",
    ) -> tuple[Need, ...]:
        """The needs of a folder's networks, by name, as `count` gives them."""
        place = self.place(device)
        heap = _HEAP if place == RAM else 1
        return tuple(
            Need(f"{name} of {folder}", place, weights=each.weights, activations=each.activations * heap)
            for name, each in count(self.compute(device, precision)).items()
        )


def resident_bytes() -> int:
    """Bytes of RAM that this process holds; 0 if the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
