"""Device selection: `auto` takes a GPU if there is one; `cuda` without a GPU is an error, never silently the CPU."""

import torch

from common.errors import UserError


def resolve_device(device: str = "auto") -> torch.device:
    """The torch device for `auto`, `cpu`, `cuda` or `cuda:N`.

    Raises:
        UserError: If the name is unknown, or names a GPU that this machine does not have.
    """
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if device == "cpu":
        return torch.device("cpu")
    if device == "cuda" or (device.startswith("cuda:") and device[5:].isdigit()):
        index = int(device[5:] or 0)
        if torch.cuda.is_available() and index < torch.cuda.device_count():
            return torch.device(device)
        found = torch.cuda.device_count() if torch.cuda.is_available() else 0
        raise UserError(f"device is {device!r}, but torch sees {found} GPUs: use auto or cpu.")
    raise UserError(f"device {device!r} is unknown; allowed: auto, cpu, cuda, cuda:N.")
