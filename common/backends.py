"""What computes trained encoders in this process: torch, or ONNX Runtime from their exports."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from common.progress import say

Backend = Literal["torch", "onnx"]
_computed: list[str] | None = None  # by ONNX Runtime: the files; None: torch computes


def by_onnx() -> bool:
    """Whether ONNX Runtime computes the encoders that are loaded from now on."""
    return _computed is not None


def tell(file: str, told: str) -> None:
    """Say once that a file computes a part."""
    assert _computed is not None  # callers ask
    if file not in _computed:
        _computed.append(file)
        say(told)


@contextmanager
def chosen(backend: Backend) -> Iterator[None]:
    """From now on this backend computes; at the context's end, when parts are loaded, a line says if it has none."""
    global _computed
    _computed = [] if backend == "onnx" else None
    try:
        yield
    except BaseException:
        _computed = None
        raise
    if _computed == []:
        say("warning: --backend onnx computes nothing: no part that was loaded is an encoder. See docs/serve.md.")
