"""Command that creates a T5 to train: a tokenizer trained on a corpus and a randomly initialized network of any size.

    python -m trainers.t5_from_scratch --corpus '[data/world/train.json]' --layout hotpotqa --out checkpoints/t5-start
    python -m trainers.t5_from_scratch --tokenizer t5/spiece.model --out checkpoints/t5-start --sizes.d_model 512

A trainer's `estimator`, `generator` or `pretrained` names the folder.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

from jsonargparse import ArgumentParser, auto_cli

from common.command_line import CommandLine
from common.errors import UserError, exit_code
from common.files import digests, whole_folder, write_json
from common.outputs import OutputFolder, listed_files
from common.progress import Progress
from common.records import nfkc
from datamodules.formats.reading import read_passages, read_questions
from datamodules.formats.recognition import check_layout, question_layouts
from models.loading import save_network
from models.t5.from_scratch import T5Sizes, load_tokenizer, random_t5

COMMAND = "python -m trainers.t5_from_scratch"
RECORD = "t5_from_scratch.json"  # seed, sizes and the sha256 of every other file: marks the command's own folders
OUTPUT = OutputFolder(f"`{COMMAND}`", "a model", listed_files(RECORD))


def corpus_texts(layout: str, sources: Sequence[str], limit: int | None = None) -> Iterator[str]:
    """Titles and texts of the passages, then questions and answers if the layout has them.

    Args:
        layout: Layout of all files.
        sources: At least one file.
        limit: Most passages, and questions per file, to read; all when None.

    Raises:
        UserError: If the layout is unknown; other errors as in `datamodules.formats.reading`.
    """
    for passage in islice(read_passages(layout, sources), limit):
        yield from (nfkc(text) for text in (passage.title, passage.text) if text)
    if layout in question_layouts():
        for source in sources:
            for question in islice(read_questions(layout, source), limit):
                yield from map(nfkc, (question.text, *question.answers))


def t5_from_scratch(
    out: Path,
    corpus: list[str] | str | None = None,
    layout: str = "jsonl",
    limit: int | None = 1_000_000,
    vocabulary: int = 8000,
    tokenizer: str | None = None,
    seed: int = 0,
    sizes: T5Sizes = T5Sizes(),  # noqa: B008 (frozen; these are the defaults that --help shows)
    embeddings: str | None = None,
    copying: bool = False,
) -> None:
    """Write config.json, model.safetensors and the tokenizer of a randomly initialized T5 into a folder, atomically.

    Args:
        out: The folder; an earlier output of this command is replaced, anything else is refused.
        corpus: File to train the tokenizer on, or several as '[FILE, FILE]'; not with `tokenizer`.
        layout: Layout of the files: jsonl, hotpotqa, fid, ...
        limit: Most passages, and questions per file, to read; all when null.
        vocabulary: Vocabulary size of the trained tokenizer, sentinels included.
        tokenizer: Folder or spiece.model of an existing tokenizer, instead of `corpus`.
        seed: Seed of the weights.
        sizes: Sizes of the network; the defaults train on two cores.
        embeddings: Folder or hub id of a sentence encoder whose word vectors initialize the embeddings; random when
            null.
        copying: Whether to initialize attention so that it copies tokens of the context.

    Raises:
        UserError: If neither or both of `corpus` and `tokenizer` are given, the layout is unknown, a size is
            impossible, or `out` holds anything else.
        MissingInputError: If a file or a model is missing.
    """
    files = [corpus] if isinstance(corpus, str) else corpus or []
    if bool(files) == bool(tokenizer):
        either = "give either --corpus '[FILE, ...]' to train a tokenizer on, or --tokenizer FOLDER_or_spiece.model."
        raise UserError(either)
    check_layout(layout)
    with OUTPUT.locked(out):
        if tokenizer:
            made = load_tokenizer(tokenizer)
        else:
            from models.t5.tokenizer_training import train_tokenizer

            with Progress("training the tokenizer"):
                made = train_tokenizer(corpus_texts(layout, files, limit), vocabulary)
            if len(made) < vocabulary:
                print(f"vocabulary: {len(made)} instead of {vocabulary}: the corpus has no more distinct pieces")
        network = random_t5(made, sizes, seed)
        if embeddings is not None:
            from models.t5.warm_start import semantic_embeddings

            with Progress("word embeddings"):
                network.shared.weight.data.copy_(semantic_embeddings(made, embeddings, network.config.d_model, seed))
        if copying:
            from models.t5.warm_start import initialize_copy_heads

            initialize_copy_heads(network, seed)
        with whole_folder(out) as folder:
            save_network(network, folder, made)
            write_json(folder / RECORD, {"seed": seed, "sizes": asdict(sizes), "sha256": digests(folder)})
        print(f"{out}: T5 with {network.num_parameters():,} weights, vocabulary {len(made)}", flush=True)


class T5Parser(CommandLine, ArgumentParser):  # type: ignore[misc]
    """ArgumentParser with one-line errors."""

    command = COMMAND


def main(args: list[str] | None = None) -> None:
    """Run the command."""
    options: Any = {"as_positional": False, "allow_abbrev": False, "description": __doc__, "prog": COMMAND}
    auto_cli(t5_from_scratch, args=args, parser_class=T5Parser, **options)


if __name__ == "__main__":
    raise SystemExit(exit_code(COMMAND, main))
