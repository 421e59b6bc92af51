"""Entry points of the installed commands `lightning-rag-train` and `lightning-rag`: train.py and infer.py."""


def train() -> int:
    """Run train.py; returns its exit code."""
    from train import run

    return run()


def infer() -> int:
    """Run infer.py; returns its exit code."""
    from infer import run

    return run()
