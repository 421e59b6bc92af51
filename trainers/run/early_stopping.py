"""Early stopping whose count a resumed run continues, with the patience it is given."""

import sys
from typing import Any, Literal

from pytorch_lightning import callbacks


class EarlyStopping(callbacks.EarlyStopping):
    """Ends a run whose monitored metric has not improved for some validations.

    Args:
        monitor: The metric.
        mode: Whether a higher (`max`) or a lower (`min`) metric is better.
        patience: Validations without improvement; null never stops early: the run makes all its epochs, and best.ckpt
            is its best validation. A resumed run uses the given number, not the one in its checkpoint.
        options: Further options of Lightning's EarlyStopping.
    """

    def __init__(
        self, monitor: str, mode: Literal["max", "min"] = "max", patience: int | None = 3, **options: Any
    ) -> None:
        super().__init__(monitor, mode=mode, patience=sys.maxsize if patience is None else patience, **options)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue counting, with the given patience."""
        super().load_state_dict({**state_dict, "patience": self.patience})
