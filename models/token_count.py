"""How many tokens models have read at inference, for the costs of answers; of how many inputs a passage was cut."""


class CountsTokens:
    """A model that counts the tokens it has read: its inputs without padding, not what it generates."""

    tokens_read: int = 0


class CountsInputs:
    """A tokenizer of questions with passages that counts its inputs, and those of which it has cut a passage."""

    inputs_read: int = 0
    inputs_cut: int = 0

    def count_input(self, cut: bool) -> None:
        """Count one."""
        self.inputs_read += 1
        self.inputs_cut += cut


def tokens_read(*models: object) -> int:
    """The tokens that these models have read so far; 0 for None and for models without a count."""
    return sum(getattr(model, "tokens_read", 0) for model in models)
