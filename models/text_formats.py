"""Helpers shared by all input formats: passage text, escaping of special tokens, single-token words."""

from collections.abc import Sequence

from transformers import PreTrainedTokenizerBase

from common.errors import UserError
from common.records import Passage


def passage_text(passage: Passage) -> str:
    """A passage as model input: "title. text", or the text alone if it has no title."""
    return f"{passage.title}. {passage.text}" if passage.title else passage.text


def neutralize(text: str, specials: Sequence[str]) -> str:
    """Insert a space into special-token strings inside user text, so that they are tokenized as plain text."""
    for special in specials:
        text = text.replace(special, f"{special[0]} {special[1:]}")
    return text


def single_token(tokenizer: PreTrainedTokenizerBase, word: str) -> int:
    """Token id of a word that must be a single token.

    Raises:
        UserError: If the tokenizer splits it or does not know it.
    """
    ids = tokenizer.encode(word, add_special_tokens=False)
    if len(ids) != 1 or ids[0] == tokenizer.unk_token_id:
        raise UserError(
            f"{word!r} must be one token of {tokenizer.name_or_path}, but is {len(ids)}: {ids}. Use another T5, or train a "
            "tokenizer that has it: python -m trainers.t5_from_scratch."
        )
    return int(ids[0])
