"""A T5 from nothing: a tokenizer trained on a corpus, and a random network of any size.

    python -m models.t5.from_scratch --corpus '[data/world/train.json]' --layout hotpotqa --out checkpoints/t5-start
    python -m models.t5.from_scratch --tokenizer t5/spiece.model --out checkpoints/t5-start --d-model 512 --layers 6

A trainer's `estimator` or `generator` names the folder; its network knows nothing yet.  Train it right away on a task, or
first on the corpus: python train.py fit --config configs/train/t5_corpus.yaml.  Two starts spare a reader most of the way:
--embeddings takes the meaning of words from a sentence encoder, --copying lets the decoder begin by copying its context.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

from jsonargparse import ArgumentParser

from common.errors import BriefErrors, MissingInputError, UserError, exit_code
from common.files import whole_folder
from datamodules.formats.reading import question_layouts, read_passages, read_questions

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase, T5ForConditionalGeneration

COMMAND = "python -m models.t5.from_scratch"
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


def corpus_texts(layout: str, sources: Sequence[str], limit: int | None = None) -> Iterator[str]:
    """Titles and texts of the passages, then, where the layout has them, questions and answers.

    Args:
        layout: Of all files.
        sources: At least one file.
        limit: Read only the first so many passages and questions; all when None.

    Raises:
        UserError: If the layout is unknown; other errors as in `datamodules.formats.reading`.
    """
    for passage in islice(read_passages(layout, sources), limit):
        yield from (text for text in (passage.title, passage.text) if text)
    if layout in question_layouts():
        for source in sources:
            for question in islice(read_questions(layout, source), limit):
                yield from (question.text, *question.answers)


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


def scratch(
    out: Path,
    corpus: Sequence[str] = (),
    layout: str = "jsonl",
    limit: int | None = 1_000_000,
    vocabulary: int = 8000,
    tokenizer: str | None = None,
    seed: int = 0,
    sizes: Sizes | None = None,
    embeddings: str | None = None,
    copying: bool = False,
) -> None:
    """Write config.json, model.safetensors and the tokenizer into a folder, whole or not at all.

    Args:
        out: The folder; replaced if it is there.
        corpus: Files to train the tokenizer on; none with a tokenizer given.
        layout: Their layout.
        limit: Read only the first so many passages and questions; all when None.
        vocabulary: Ids of the tokenizer, sentinels included.
        tokenizer: Folder or spiece.model of a tokenizer to take instead.
        seed: Of the weights.
        sizes: Of the network.
        embeddings: Folder or hub id of a sentence encoder that the embeddings take their meaning from; random when None.
        copying: Whether cross-attention starts as a copy of what it attends to.

    Raises:
        UserError: If neither or both of corpus and tokenizer are given, or as the functions above.
    """
    if bool(corpus) == bool(tokenizer):
        raise UserError(
            "give either --corpus '[FILE, ...]' to train a tokenizer on, or --tokenizer FOLDER_or_spiece.model."
        )
    if out.exists() and not (out.is_dir() and ((out / "config.json").is_file() or not any(out.iterdir()))):
        raise UserError(f"--out {out} is something else than a model folder: name another.")
    if tokenizer:
        made = load_tokenizer(tokenizer)
    else:
        from models.t5.tokenizer_training import train_tokenizer

        made = train_tokenizer(corpus_texts(layout, corpus, limit), vocabulary)
        if len(made) < vocabulary:
            print(f"vocabulary: {len(made)} instead of {vocabulary}, the corpus holds no more distinct pieces")
    network = random_t5(made, sizes or Sizes(), seed)
    if embeddings is not None:
        from models.t5.warm_start import semantic_embeddings

        network.shared.weight.data.copy_(semantic_embeddings(made, embeddings, network.config.d_model, seed))
    if copying:
        from models.t5.warm_start import start_by_copying

        start_by_copying(network, seed)
    with whole_folder(out) as folder:
        network.save_pretrained(folder)
        made.save_pretrained(folder)
    print(f"{out}: T5 with {network.num_parameters():,} weights, vocabulary {len(made)}", flush=True)


class Parser(BriefErrors, ArgumentParser):
    """jsonargparse's parser with brief errors."""

    command = "-m models.t5.from_scratch"


def main(arguments: list[str] | None = None) -> None:
    """Run the command."""
    parser = Parser(prog=COMMAND, description=__doc__, allow_abbrev=False)
    parser.add_argument("--out", type=Path, required=True, help="folder to write; a model there is replaced")
    parser.add_argument("--corpus", type=list[str] | str, default=[], help="file, or '[FILE, FILE]', for the tokenizer")
    parser.add_argument("--layout", type=str, default="jsonl", help="of the files: jsonl, hotpotqa, fid, ...")
    parser.add_argument("--limit", type=int | None, default=1_000_000, help="read so many passages and questions")
    parser.add_argument("--vocabulary", type=int, default=8000, help="ids of the tokenizer, sentinels included")
    parser.add_argument("--tokenizer", type=str | None, default=None, help="folder or spiece.model to take instead")
    parser.add_argument("--seed", type=int, default=0, help="of the weights")
    parser.add_argument("--embeddings", type=str | None, default=None, help="folder or hub id of a sentence encoder")
    parser.add_argument("--copying", type=bool, default=False, help="the decoder starts by copying its context")
    for size in fields(Sizes):
        parser.add_argument(f"--{size.name.replace('_', '-')}", type=size.type, default=size.default)
    given = parser.parse_args(arguments)
    corpus = [given.corpus] if isinstance(given.corpus, str) else given.corpus
    sizes = Sizes(**{size.name: given[size.name] for size in fields(Sizes)})
    scratch(
        given.out, corpus, given.layout, given.limit, given.vocabulary, given.tokenizer, given.seed, sizes,
        given.embeddings, given.copying,
    )  # fmt: skip


if __name__ == "__main__":
    raise SystemExit(exit_code(COMMAND, main))
