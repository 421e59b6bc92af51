"""Case merging: a tokenizer that reads every text in lower case, with the ids of the pieces as they are.

A small T5 spells the names that its corpus writes in capitals letter by letter when a user types them in lower case,
and cannot copy them.
"""

import json
import re

from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from common.errors import UserError

_BYTE = re.compile(r"<0x[0-9A-F]{2}>")


def merge_case(tokenizer: PreTrainedTokenizerBase) -> PreTrainedTokenizerFast:
    """A tokenizer like a given Unigram one that reads and writes lower case; saved and loaded as any other.

    A piece with capitals is renamed to lower case, unless that piece exists; of several equal ones the most likely is
    renamed. It keeps its id, and so its embedding. The others are never read again. Special tokens stay as they are.

    Args:
        tokenizer: A fast tokenizer with a Unigram model, such as a T5's.

    Raises:
        UserError: If it is another one.
    """
    state = json.loads(tokenizer.backend_tokenizer.to_str())
    if state["model"]["type"] != "Unigram":
        raise UserError(
            f"model.merge_case is for Unigram tokenizers, such as a T5's, and {tokenizer.name_or_path} has a "
            f"{state['model']['type']} tokenizer: set it to false."
        )
    fixed = {token["content"] for token in state["added_tokens"]}
    vocab = state["model"]["vocab"]
    taken = {piece for piece, _ in vocab}
    for place in sorted(range(len(vocab)), key=lambda place: -vocab[place][1]):
        piece, score = vocab[place]
        lower = piece.lower()
        if lower not in taken and piece not in fixed and not _BYTE.fullmatch(piece):
            vocab[place] = [lower, score]
            taken.add(lower)
    before = [state["normalizer"]] if state["normalizer"] else []
    state["normalizer"] = {"type": "Sequence", "normalizers": [*before, {"type": "Lowercase"}]}
    special = tokenizer.special_tokens_map
    more = [token for token in tokenizer.all_special_tokens if token not in special.values()]
    return PreTrainedTokenizerFast(  # T5Tokenizer ignores the normalizer of a saved tokenizer.json
        tokenizer_object=Tokenizer.from_str(json.dumps(state)), name_or_path=tokenizer.name_or_path,
        clean_up_tokenization_spaces=False, model_max_length=tokenizer.model_max_length, additional_special_tokens=more,
        **special,
    )  # fmt: skip
