"""What the selections share that compare answers by a sentence encoder: its options, its loading and its memory."""

from functools import cached_property
from typing import TYPE_CHECKING

from common.ranges import Precision
from harness.runtime.loading import load
from models.pretrained import MINILM

if TYPE_CHECKING:
    from harness.choice.answer_encoder import AnswerEncoder


class EncoderSelection:
    """A selection by cosines between answers.

    Args:
        encoder: Folder or hub id of the encoder of answers.
        device: auto, cpu or cuda.
        precision: Of the encoder: fp32, bf16 or auto.
        loaded: A loaded encoder, instead of `encoder`.

    Raises:
        MissingInputError: If the encoder is not found.
    """

    def __init__(
        self,
        encoder: str = MINILM,
        device: str = "auto",
        precision: Precision = "fp32",
        loaded: "AnswerEncoder | None" = None,
    ) -> None:
        self._options, self._loaded = (encoder, device, precision), loaded

    def load(self) -> None:
        """Load the encoder."""
        load(self.encoder)

    @cached_property
    def encoder(self) -> "AnswerEncoder":
        """Of the answers."""
        from harness.choice.answer_encoder import AnswerEncoder

        return self._loaded or AnswerEncoder(*self._options)
