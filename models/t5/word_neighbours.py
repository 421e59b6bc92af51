"""Nearest words by embedding cosine.  Shape legend: W words, C words per chunk, V vocabulary, H hidden width."""

import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import PreTrainedTokenizerBase

from models.t5.tokenizer_training import WORDS

MIN_LETTERS = 3
WORDS_PER_CHUNK = 1024  # bounds the memory of the cosine matrix


@torch.no_grad()
def nearest_words(tokenizer: PreTrainedTokenizerBase, embeddings_VH: Tensor, count: int = 8) -> dict[str, list[str]]:
    """Nearest words of every lower-case word that is a single piece, nearest first.

    Names, numbers, punctuation, word fragments and the words of the input formats are excluded.

    Args:
        tokenizer: A SentencePiece tokenizer ("▁" marks the start of a word).
        embeddings_VH: One embedding per token id.
        count: Maximum number of neighbours per word.
    """
    pieces = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    ids = [
        token_id
        for token_id, piece in enumerate(pieces)
        if piece.startswith("▁") and piece[1:].isalpha() and piece[1:].islower()
        and len(piece) > MIN_LETTERS and piece[1:] not in WORDS
    ]  # fmt: skip
    if len(ids) < 2:
        return {}
    words = [pieces[token_id][1:] for token_id in ids]
    vectors_WH = F.normalize(embeddings_VH[ids].float())
    nearest: dict[str, list[str]] = {}
    for start in range(0, len(words), WORDS_PER_CHUNK):
        cosine_CW = vectors_WH[start : start + WORDS_PER_CHUNK] @ vectors_WH.T
        cosine_CW[range(len(cosine_CW)), range(start, start + len(cosine_CW))] = -2  # exclude the word itself
        for offset, row in enumerate(cosine_CW.topk(min(count, len(words) - 1)).indices.tolist()):
            nearest[words[start + offset]] = [words[n] for n in row]
    return nearest
