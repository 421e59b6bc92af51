"""A random BERT of one narrow layer with MiniLM's tokenizer: what a full-scale run measures is data, not networks.

python -m benchmarks.full_scale.tiny_bert --out models/bert
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from common.files import whole_folder

WIDTH = 32


def save_bert(out: Path) -> None:
    """Write the model into a folder that does not exist."""
    import torch
    from transformers import AutoTokenizer, BertConfig, BertModel

    from models.pretrained import MINILM, resolve

    tokenizer = AutoTokenizer.from_pretrained(resolve(MINILM))
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=WIDTH,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=2 * WIDTH,
    )
    with whole_folder(out) as folder:
        BertModel(config).save_pretrained(folder)
        tokenizer.save_pretrained(folder)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--out", type=Path, required=True)
    save_bert(options.parse_args(arguments).out)


if __name__ == "__main__":
    main()
