"""Where FAISS searches: in RAM, on one GPU, or split over all GPUs.

Shape legend: N vectors, D dimensions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from common.errors import UserError
from common.progress import in_bytes
from harness.indexing.faiss_library import FaissIndex, import_faiss

GPU_SCRATCH_BYTES = 3 * 2**29  # that FAISS reserves on a GPU of more than 8 GB
_LISTS_GROWTH = 1.25  # of inverted lists on a GPU, which are allocated in steps


@dataclass(frozen=True, slots=True)
class Placement:
    """The GPUs on which an index is searched; none: in RAM.

    `why` says so in one line for the user, empty without GPUs.
    """

    gpus: tuple[int, ...]
    why: str = ""


def check_gpu(device: str) -> None:
    """Raise UserError unless FAISS is installed and sees a GPU, for a device that needs one."""
    faiss = import_faiss()
    wants_gpu(device, "flat", faiss.get_num_gpus() if faiss is not None else 0)


def wants_gpu(device: str, kind: FaissIndex, gpus: int) -> bool:
    """Whether an index of this kind is to be searched on a GPU, if it fits.

    Raises:
        UserError: If the device is not possible with that many GPUs that FAISS sees.
    """
    possible = gpus > 0 and kind != "hnsw"
    if device in ("cuda", "all") and not possible:
        why = "an HNSW index cannot be searched on a GPU" if gpus else "this FAISS sees no GPU"
        raise UserError(f"index device {device} is not possible: {why}. Choose cpu or auto, or pip install faiss-gpu.")
    return possible and device != "cpu"


def gpu_bytes(kind: FaissIndex, searched_bytes: int, gpus: int) -> int:
    """Memory on each of some GPUs over which an index is split."""
    growth = 1.0 if kind == "flat" else _LISTS_GROWTH
    return round(growth * searched_bytes / gpus) + GPU_SCRATCH_BYTES


def place(
    device: str, kind: FaissIndex, searched_bytes: int, gpus: int, free_bytes: Callable[[int], int], local_rank: int = 0
) -> Placement:
    """Where an index is searched.

    Args:
        device: `cpu`, `cuda` (the GPU of this rank), `all` (split over all GPUs), or `auto`: `cuda` if the index fits,
            otherwise `cpu`.
        kind: Of the index.
        searched_bytes: Its size.
        gpus: How many GPUs FAISS sees.
        free_bytes: The free memory of a GPU; to ask takes some of it, so only those are asked on which the index could
            be.
        local_rank: Of this process on its machine.

    Raises:
        UserError: If the device is unknown or not possible, or a GPU that was asked for has too little memory; names
            the sizes.
    """
    if not wants_gpu(device, kind, gpus):
        return Placement(())
    if device == "all":
        split, least = gpu_bytes(kind, searched_bytes, gpus), min(map(free_bytes, range(gpus)))
        if split > least:
            raise UserError(
                f"index device all: the index takes {in_bytes(split)} on each of {gpus} GPUs, and {in_bytes(least)} "
                "are free. Choose cpu, or build it with --dense.faiss_index ivfpq."
            )
        return Placement(tuple(range(gpus)), f"split over {gpus} GPUs, {in_bytes(split)} each")
    one = local_rank % gpus
    needed, free = gpu_bytes(kind, searched_bytes, 1), free_bytes(one)
    sizes = f"it takes {in_bytes(needed)}, and GPU {one} has {in_bytes(free)} free"
    if needed <= free:
        return Placement((one,), f"on GPU {one}: {sizes}")
    cure = "index device all splits it over the GPUs" if gpus > 1 else "--dense.faiss_index ivfpq makes it smaller"
    if device == "cuda":
        raise UserError(f"index device cuda: {sizes}. Choose cpu; {cure}.")
    return Placement((), f"in RAM: {sizes}; {cure}")


def flat_on_gpus(faiss: ModuleType, vectors_ND: np.ndarray, gpus: Sequence[int]) -> Any:
    """An exact index of vectors that are copied straight from their mapped file to the GPUs, an equal part to each."""

    def on_one(gpu: int, part_ND: np.ndarray) -> Any:
        config = faiss.GpuIndexFlatConfig()
        config.device = gpu
        resources = faiss.StandardGpuResources()
        index = faiss.GpuIndexFlatIP(resources, vectors_ND.shape[1], config)
        index.referenced_objects = [resources]  # as FAISS's own functions keep what an index needs
        index.add(part_ND)  # at once: FAISS reserves the memory and copies in pages
        return index

    return in_parts(faiss, vectors_ND, gpus, on_one)


def in_parts(
    faiss: ModuleType, vectors_ND: np.ndarray, gpus: Sequence[int], build: Callable[[int, np.ndarray], Any]
) -> Any:
    """An index of indexes over consecutive vectors, one for each GPU, searched at the same time.

    Of one GPU just its index.
    """
    parts = [build(gpu, part_ND) for gpu, part_ND in zip(gpus, np.array_split(vectors_ND, len(gpus)), strict=True)]
    if len(parts) == 1:
        return parts[0]
    shards = faiss.IndexShards(vectors_ND.shape[1], True, True)  # in threads; positions go on from part to part
    for part in parts:
        shards.add_shard(part)
    return shards


def lists_on_gpus(faiss: ModuleType, index: Any, gpus: Sequence[int]) -> Any:
    """An IVF index in RAM copied to one GPU, or split over several.

    Raises:
        UserError: If FAISS cannot search such an index on a GPU, for example for its number of bytes of a compressed
            vector.
    """
    options = faiss.GpuMultipleClonerOptions()
    options.shard = len(gpus) > 1  # split over the GPUs instead of copied to each
    options.useFloat16 = True  # of lookup tables: 64 bytes of a compressed vector need it
    try:
        return faiss.index_cpu_to_gpus_list(index, co=options, gpus=list(gpus))
    except RuntimeError as error:
        raise UserError(
            f"FAISS cannot search this index on a GPU ({str(error).splitlines()[0]}). Choose index device cpu."
        ) from error
