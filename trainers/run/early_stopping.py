"""Early stopping with this project's defaults."""

import sys
from typing import Any, Literal

from pytorch_lightning import callbacks


class EarlyStopping(callbacks.EarlyStopping):
    """Ends a run whose monitored metric has not improved for some validations.

    Decided after a validation, before last.ckpt is written, so that a resumed run counts its patience alike.

    Args:
        monitor: The metric.
        mode: Whether a higher (`max`) or a lower (`min`) metric is better.
        patience: Validations without improvement; null never stops early: the run makes all its epochs, and best.ckpt
            is its best validation. A resumed run uses the given number, not the one in its checkpoint.
        strict: Whether a validation without the metric is an error; false, since the first validation of a resumed run
            lacks the metrics of training steps.
        check_on_train_epoch_end: Whether to decide at the end of an epoch instead of after a validation.
        options: Further options of Lightning's EarlyStopping.
    """

    def __init__(
        self,
        monitor: str,
        mode: Literal["max", "min"] = "max",
        patience: int | None = 3,
        strict: bool = False,
        check_on_train_epoch_end: bool | None = False,
        **options: Any,
    ) -> None:
        super().__init__(
            monitor=monitor,
            mode=mode,
            patience=sys.maxsize if patience is None else patience,
            strict=strict,
            check_on_train_epoch_end=check_on_train_epoch_end,
            **options,
        )

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue counting, with the given patience."""
        super().load_state_dict({**state_dict, "patience": self.patience})
