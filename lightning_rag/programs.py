"""Entry points of the installed commands `lightning-rag-train` and `lightning-rag`: train.py and infer.py."""

from common.stop_signals import stop_at_signals


def train() -> int:
    """Run train.py; returns its exit code."""
    stop_at_signals("train.py")
    from train import run

    return run()


def infer() -> int:
    """Run infer.py; returns its exit code."""
    stop_at_signals("infer.py")
    from infer import run

    return run()
