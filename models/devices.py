"""Device and precision selection: `auto` takes what the machine has.

An impossible request is an error, never a fallback.
"""

import os
from contextlib import AbstractContextManager, nullcontext

import torch

from common.errors import UserError
from common.ranges import Precision

VARIABLE = "LIGHTNING_RAG_PRECISION"


def avoid_cudnn_attention() -> None:
    """Do not use cuDNN's attention in this process: it is compiled anew for every shape of a batch.

    Batches by length have a new shape at almost every step, and a reply grows by one token: on an H200 a training step
    of BigBird-base took 0.22 s with it, the first of a kind 2.6 s, and 0.10 s without.  Other kernels of torch compute
    any shape.
    """
    torch.backends.cuda.enable_cudnn_sdp(False)


def resolve_device(device: str = "auto", gpus: int | None = None) -> torch.device:
    """The torch device for `auto`, `cpu`, `cuda` or `cuda:N`.

    Under torchrun `auto` and `cuda` are the GPU of LOCAL_RANK, so that each process of a machine has another one.

    Args:
        device: The name.
        gpus: Number of GPUs; None: as many as torch sees.

    Raises:
        UserError: If the name is unknown, or names a GPU that this machine does not have.
    """
    if gpus is None:
        gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if device == "cpu" or (device == "auto" and not gpus):
        return torch.device("cpu")
    named = device.startswith("cuda:") and device[5:].isdigit()
    if device not in ("auto", "cuda") and not named:
        raise UserError(f"device {device!r} is unknown; allowed: auto, cpu, cuda, cuda:N.")
    if not gpus or (named and int(device[5:]) >= gpus):
        raise UserError(f"device is {device!r}, but torch sees {gpus} GPUs: use auto or cpu.")
    avoid_cudnn_attention()
    if named:
        return torch.device(device)
    if os.environ.get("WORLD_SIZE", "1") == "1":
        return torch.device("cuda")
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")) % gpus)


def bf16_flags() -> list[str]:
    """The CPU's instruction sets that multiply bf16 matrices; without one, bf16 is emulated and slower than fp32."""
    capabilities = torch.cpu.get_capabilities()
    return [flag for flag in ("amx_bf16", "avx512_bf16") if capabilities.get(flag)]


def auto_is_bf16(device: torch.device) -> tuple[bool, str]:
    """Whether the precision `auto` is bf16 on a device, and why: where the device multiplies bf16 matrices in hardware.

    The environment variable LIGHTNING_RAG_PRECISION=fp32 makes `auto` fp32 everywhere.

    Raises:
        UserError: If the variable has another value.
    """
    wanted = os.environ.get(VARIABLE, "auto")
    if wanted not in ("auto", "fp32"):
        raise UserError(f"{VARIABLE} {wanted!r} is unknown; allowed: auto, fp32.")
    if wanted == "fp32":
        return False, f"{VARIABLE} is fp32"
    if device.type == "cuda":
        lower = torch.cuda.get_device_capability(device) >= (8, 0)  # Ampere and later
        return lower, f"this GPU has {'' if lower else 'no '}bf16 instructions"
    flags = bf16_flags()
    return bool(flags), f"this CPU has {' and '.join(flags) or 'no bf16 instructions'}"


def compute_dtype(precision: Precision, device: torch.device) -> torch.dtype:
    """Data type of matrix products for a precision; `auto` is bf16 where the device has it in hardware, else fp32.

    Weights and heads stay in fp32 whatever it is: `autocast` lowers the precision operation by operation.
    """
    lower = auto_is_bf16(device)[0] if precision == "auto" else precision == "bf16"
    return torch.bfloat16 if lower else torch.float32


def autocast(device: torch.device, dtype: torch.dtype | None) -> AbstractContextManager[None]:
    """Compute in `dtype`; None keeps what the caller has set: in training, Lightning's precision."""
    if dtype is None:
        return nullcontext()
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=dtype == torch.bfloat16)
