"""Entry points of the installed commands `lightning-rag-train` and `lightning-rag`: train.py and infer.py."""

from common.beginning import begin


def train() -> int:
    """Run train.py; returns its exit code."""
    begin("train.py")
    from train import run

    return run()


def infer() -> int:
    """Run infer.py; returns its exit code."""
    begin("infer.py")
    from infer import run

    return run()
