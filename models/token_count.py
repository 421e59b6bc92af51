"""How many tokens models have read at inference, for the costs of answers."""


class CountsTokens:
    """A model that counts the tokens it has read: its inputs without padding, not what it generates."""

    tokens_read: int = 0


def tokens_read(*models: object) -> int:
    """The tokens that these models have read so far; 0 for None and for models without a count."""
    return sum(getattr(model, "tokens_read", 0) for model in models)
