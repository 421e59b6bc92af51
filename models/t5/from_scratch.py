"""A random T5 of any size and the tokenizer for it.  torch and transformers are imported when they are used."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from common.errors import MissingInputError, UserError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase, T5ForConditionalGeneration

FeedForward = Literal["relu", "gated-gelu"]


@dataclass(frozen=True)
class Sizes:
    """Of a T5; the defaults train on two cores.

    Args:
        d_model: Width of the hidden states, divisible by `heads`.
        layers: Of the encoder.
        decoder_layers: Of the decoder; as many as of the encoder when None.
        heads: Attention heads; each has d_model / heads dimensions.
        d_ff: Width of the feed-forward layers.
        feed_forward: relu (T5) or gated-gelu (T5 v1.1, Flan, mT5; half as many weights more).
        dropout: Of everything, in [0, 1); the trainers can set their own.
    """

    d_model: int = 128
    layers: int = 2
    decoder_layers: int | None = None
    heads: int = 4
    d_ff: int = 512
    feed_forward: FeedForward = "relu"
    dropout: float = 0.0

    def __post_init__(self) -> None:
        """Raise UserError unless every number is possible."""
        for name in ("d_model", "layers", "decoder_layers", "heads", "d_ff"):
            number = getattr(self, name)
            if number is not None and number < 1:
                raise UserError(f"{name} must be at least 1, got {number}.")
        if self.d_model % self.heads:
            raise UserError(f"d_model {self.d_model} must be divisible by heads {self.heads}.")
        if not 0 <= self.dropout < 1:
            raise UserError(f"dropout must lie in [0, 1), got {self.dropout}.")


def load_tokenizer(name: str) -> "PreTrainedTokenizerBase":
    """A tokenizer given as a folder, or as T5's own `spiece.model`.

    Raises:
        MissingInputError: If there is no such file or folder, or it holds no tokenizer.
        UserError: If it lacks the padding or the end token, or "true" or "false".
    """
    from transformers import AutoTokenizer, T5TokenizerFast

    from models.text_formats import single_token

    path = Path(name).expanduser()
    folder = path.parent if path.name == "spiece.model" else path
    if not path.exists():
        raise MissingInputError(f"--tokenizer {name} does not exist: name a folder, or a file spiece.model.")
    if (folder / "tokenizer.json").is_file():
        tokenizer = AutoTokenizer.from_pretrained(folder)
    elif (folder / "spiece.model").is_file():
        tokenizer = T5TokenizerFast.from_pretrained(folder)
    else:
        raise MissingInputError(f"--tokenizer {name}: no tokenizer.json and no spiece.model there.")
    if tokenizer.pad_token_id is None or tokenizer.eos_token_id is None:
        raise UserError(f"--tokenizer {name} lacks <pad> or </s>: take one of the T5 family.")
    for word in ("true", "false"):
        single_token(tokenizer, word)
    return tokenizer


def random_t5(tokenizer: "PreTrainedTokenizerBase", sizes: Sizes, seed: int = 0) -> "T5ForConditionalGeneration":
    """A network with random weights that follow from the seed; the global random state stays as it was."""
    import torch
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(
        vocab_size=len(tokenizer), d_model=sizes.d_model, d_kv=sizes.d_model // sizes.heads, d_ff=sizes.d_ff,
        num_layers=sizes.layers, num_decoder_layers=sizes.decoder_layers or sizes.layers, num_heads=sizes.heads,
        feed_forward_proj=sizes.feed_forward, dropout_rate=sizes.dropout, pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id, decoder_start_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return T5ForConditionalGeneration(config)
