"""Which words stand near which by their embeddings.  Shape legend: W words, C of them at once, V vocabulary, H width."""

import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import PreTrainedTokenizerBase

from models.t5.tokenizer_training import WORDS

LEAST_LETTERS = 3
WORDS_AT_ONCE = 1024  # bounds the memory of their cosines


@torch.no_grad()
def nearest_words(tokenizer: PreTrainedTokenizerBase, embeddings_VH: Tensor, count: int = 8) -> dict[str, list[str]]:
    """For every lower-case word that is one piece, the other such words nearest by cosine, the nearest first.

    Names, numbers, marks, inner fragments of words and the words of our text formats have no neighbours here and are none.

    Args:
        tokenizer: Marks the beginning of a word by "▁" (SentencePiece).
        embeddings_VH: An embedding per id.
        count: Neighbours of a word, at most.
    """
    pieces = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    ids = [
        token_id
        for token_id, piece in enumerate(pieces)
        if piece.startswith("▁") and piece[1:].isalpha() and piece[1:].islower()
        and len(piece) > LEAST_LETTERS and piece[1:] not in WORDS
    ]  # fmt: skip
    if len(ids) < 2:
        return {}
    words = [pieces[token_id][1:] for token_id in ids]
    vectors_WH = F.normalize(embeddings_VH[ids].float())
    nearest: dict[str, list[str]] = {}
    for start in range(0, len(words), WORDS_AT_ONCE):
        cosine_CW = vectors_WH[start : start + WORDS_AT_ONCE] @ vectors_WH.T
        cosine_CW[range(len(cosine_CW)), range(start, start + len(cosine_CW))] = -2  # a word is no neighbour of itself
        for offset, row in enumerate(cosine_CW.topk(min(count, len(words) - 1)).indices.tolist()):
            nearest[words[start + offset]] = [words[n] for n in row]
    return nearest
