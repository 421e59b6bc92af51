"""Where FAISS searches: in RAM, on one GPU, or split over all GPUs."""

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from common.errors import UserError
from common.progress import in_bytes
from harness.indexing.faiss_library import FLAT, import_faiss

GPU_SCRATCH_BYTES = 3 * 2**29  # that FAISS reserves on a GPU of more than 8 GB
_LISTS_GROWTH = 1.25  # of inverted lists on a GPU, which are allocated in steps


def check_gpu(device: str) -> None:
    """Raise UserError unless FAISS is installed and sees a GPU, for a device that needs one."""
    faiss = import_faiss()
    wants_gpu(device, FLAT, faiss.get_num_gpus() if faiss is not None else 0)


def wants_gpu(device: str, faiss_index: str, gpus: int) -> bool:
    """Whether an index is to be searched on a GPU, if it fits.

    Raises:
        UserError: If the device is not possible with that many GPUs that FAISS sees.
    """
    possible = gpus > 0 and not faiss_index.startswith("HNSW")
    if device in ("cuda", "all") and not possible:
        why = "an HNSW index cannot be searched on a GPU" if gpus else "this FAISS sees no GPU"
        raise UserError(f"index device {device} is not possible: {why}. Choose cpu or auto, or pip install faiss-gpu.")
    return possible and device != "cpu"


def place(
    device: str, faiss_index: str, searched_bytes: int, gpus: int, free_bytes: Callable[[int], int], local_rank: int = 0
) -> tuple[tuple[int, ...], str]:
    """The GPUs on which an index is searched, none: in RAM; and why, in one line for the user, empty without GPUs.

    Args:
        device: `cpu`, `cuda` (the GPU of this rank), `all` (split over all GPUs), or `auto`: `cuda` if the index fits,
            otherwise `cpu`.
        faiss_index: `FLAT`, or its factory string.
        searched_bytes: Its size.
        gpus: How many GPUs FAISS sees.
        free_bytes: The free memory of a GPU; to ask takes some of it, so only those are asked on which the index could
            be.
        local_rank: Of this process on its machine.

    Raises:
        UserError: If the device is not possible, or a GPU that was asked for has too little memory; names the sizes.
    """
    if not wants_gpu(device, faiss_index, gpus):
        return (), ""
    chosen = tuple(range(gpus)) if device == "all" else (local_rank % gpus,)
    growth = 1.0 if faiss_index == FLAT else _LISTS_GROWTH
    needed, free = round(growth * searched_bytes / len(chosen)) + GPU_SCRATCH_BYTES, min(map(free_bytes, chosen))
    where = f"GPU {chosen[0]}" if len(chosen) == 1 else f"each of {len(chosen)} GPUs"
    sizes = f"it takes {in_bytes(needed)} on {where}, where {in_bytes(free)} are free"
    if needed <= free:
        return chosen, f"on {where}: {sizes}"
    cure = "Choose cpu, or all, which splits it over the GPUs" if gpus > len(chosen) else "Choose cpu"
    if device != "auto":
        raise UserError(f"index device {device}: {sizes}. {cure}, or build a smaller one, such as IVF4096,PQ64x8np.")
    return (), f"in RAM: {sizes}"


def on_gpus(faiss: ModuleType, index: Any, gpus: Sequence[int]) -> Any:
    """An index copied to one GPU, or split over several; vectors are added to an empty flat one afterwards.

    Raises:
        UserError: If FAISS cannot search such an index on a GPU, for example for its number of bytes of a compressed
            vector.
    """
    options = faiss.GpuMultipleClonerOptions()
    options.shard = len(gpus) > 1  # split over the GPUs instead of copied to each
    # of lookup tables: 64 bytes of a compressed vector need it; a flat index would hold its vectors so
    options.useFloat16 = not isinstance(index, faiss.IndexFlat)
    try:
        return faiss.index_cpu_to_gpus_list(index, co=options, gpus=list(gpus))
    except RuntimeError as error:
        raise UserError(
            f"FAISS cannot search this index on a GPU ({str(error).splitlines()[0]}). Choose index device cpu."
        ) from error
