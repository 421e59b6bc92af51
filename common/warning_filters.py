"""The messages of libraries that are hidden because they say nothing about the user's run.

Every other warning is shown.
"""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

WARNINGS: tuple[tuple[type[Warning], str], ...] = (  # category, beginning of the message as a regular expression
    # between PyTorch and its callers in Lightning and ONNX; the replacement is theirs to make
    (FutureWarning, r"`isinstance\(treespec, LeafSpec\)` is deprecated, use `isinstance\(treespec, TreeSpec\)"),
    # of a resumed run, where that is so; train.py itself refuses to start a run in the folder of another
    (UserWarning, r"Checkpoint directory .* exists and is not empty\.$"),
    # both inputs of an exported classifier have the same axes, so ONNX needs their names only once
    (UserWarning, r"# The axis name: (batch|tokens) will not be used, since it shares the same shape constraints"),
)
LEVELS = {
    "pytorch_lightning": logging.WARNING,  # below: devices that are not there, products to install
    "lightning_fabric": logging.WARNING,
    # its warning: torchvision, for operators of images, which no text model has
    "torch.onnx._internal.exporter._registration": logging.ERROR,
}


@contextmanager
def unwanted_hidden() -> Iterator[None]:
    """Hide these messages in the `with` block."""
    levels = {logger: logger.level for logger in map(logging.getLogger, LEVELS)}
    for logger in levels:
        logger.setLevel(LEVELS[logger.name])
    try:
        with warnings.catch_warnings():
            for category, message in WARNINGS:
                warnings.filterwarnings("ignore", message, category)
            yield
    finally:
        for logger, level in levels.items():
            logger.setLevel(level)
