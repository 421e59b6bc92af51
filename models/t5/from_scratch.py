"""Randomly initialized T5 models, and loading of T5 tokenizers.  torch and transformers are imported on first use."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from common.errors import MissingInputError, UserError
from common.ranges import DropoutRate, PositiveInt

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase, T5ForConditionalGeneration

FeedForward = Literal["relu", "gated-gelu"]


@dataclass(frozen=True)
class T5Sizes:
    """Sizes of a T5; the defaults can be trained on two CPU cores.

    Args:
        d_model: Hidden width, divisible by `heads`.
        layers: Encoder layers.
        decoder_layers: Decoder layers; as many as encoder layers when None.
        heads: Attention heads, each of d_model / heads dimensions.
        d_ff: Width of the feed-forward layers.
        feed_forward: relu (T5) or gated-gelu (T5 v1.1, Flan, mT5; 50% more feed-forward weights).
        dropout: Rate of all dropout layers; the trainers can override it.
    """

    d_model: PositiveInt = 128
    layers: PositiveInt = 2
    decoder_layers: PositiveInt | None = None
    heads: PositiveInt = 4
    d_ff: PositiveInt = 512
    feed_forward: FeedForward = "relu"
    dropout: DropoutRate = 0.0

    def __post_init__(self) -> None:
        """Raise UserError if the width cannot be divided among the heads."""
        if self.d_model % self.heads:
            raise UserError(f"d_model {self.d_model} must be divisible by heads {self.heads}.")


def load_tokenizer(name: str) -> "PreTrainedTokenizerBase":
    """Load a tokenizer from a folder or from T5's `spiece.model`.

    Raises:
        MissingInputError: If the path does not exist or holds no tokenizer.
        UserError: If it has no padding or end token.
    """
    from transformers import AutoTokenizer, T5TokenizerFast

    path = Path(name).expanduser()
    folder = path.parent if path.name == "spiece.model" else path
    if not path.exists():
        raise MissingInputError(f"--tokenizer {name} does not exist: give a folder, or a file spiece.model.")
    if (folder / "tokenizer.json").is_file():
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    elif (folder / "spiece.model").is_file():
        tokenizer = T5TokenizerFast.from_pretrained(folder)
    else:
        raise MissingInputError(f"--tokenizer {name}: no tokenizer.json and no spiece.model found there.")
    if tokenizer.pad_token_id is None or tokenizer.eos_token_id is None:
        raise UserError(f"--tokenizer {name} lacks <pad> or </s>: use a tokenizer of the T5 family.")
    return tokenizer


def random_t5(tokenizer: "PreTrainedTokenizerBase", sizes: T5Sizes, seed: int = 0) -> "T5ForConditionalGeneration":
    """A T5 with random weights determined by the seed; the global random state is not changed."""
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
