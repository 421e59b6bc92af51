"""Loading of models and indexes, which otherwise happens at their first use."""


def load(*parts: object) -> None:
    """Load parts with what they hold, such as retrievers and models, so that a missing or corrupt one shows at once.

    Args:
        parts: None, and those without a method `load`, are left as they are.
    """
    for part in parts:
        if own := getattr(part, "load", None):
            own()
