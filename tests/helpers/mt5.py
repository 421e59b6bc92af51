"""A tiny mT5: its class of tokenizer (SentencePiece Unigram, "▁" before words, "false" in two pieces), untied head."""

from pathlib import Path

import torch
from torch import nn
from transformers import MT5Config, MT5ForConditionalGeneration, T5Tokenizer

from tests.conftest import NAMES, READING_WORDS, WORDS

SENTINEL_PIECES = [f"▁<extra_id_{number}>" for number in range(9, -1, -1)]  # ordinary pieces, as in mT5's vocabulary


def mt5_tokenizer() -> T5Tokenizer:
    """Words of the tests as single pieces, and characters for all other texts.

    No special tokens besides <pad>, </s>, <unk>.
    """
    words = dict.fromkeys([*READING_WORDS, *WORDS, *NAMES, "true", "yes", "no", "fal"])
    characters = dict.fromkeys(
        sorted({letter for word in words for letter in word} | set("abcdefghijklmnopqrstuvwxyz<>_"))
    )
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -4.0), ("se", -5.0)]
    pieces += [(f"▁{word}", -3.0) for word in words] + [(letter, -9.0) for letter in characters]
    return T5Tokenizer(vocab=[*pieces, *((piece, -3.0) for piece in SENTINEL_PIECES)], extra_ids=0)


def save_mt5(folder: Path, seed: int = 0) -> Path:
    """A random mT5 of two layers, whose output layer is not its embedding.

    As mT5's, it has more embeddings than tokens.
    """
    tokenizer = mt5_tokenizer()
    torch.manual_seed(seed)
    config = MT5Config(vocab_size=len(tokenizer) + 12, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4)
    network = MT5ForConditionalGeneration(config)
    network.lm_head.weight = nn.Parameter(torch.randn(config.vocab_size, config.d_model))
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
