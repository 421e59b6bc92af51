"""Text helpers that all input formats share: passage text, neutralized special tokens, single-token words."""

from collections.abc import Sequence

from transformers import PreTrainedTokenizerBase

from common.errors import UserError
from common.records import Passage


def passage_text(passage: Passage) -> str:
    """A passage as the classifier and the packed reader see it: "title. text", or the text alone without a title."""
    return f"{passage.title}. {passage.text}" if passage.title else passage.text


def neutralize(text: str, specials: Sequence[str]) -> str:
    """Split special-token strings inside user text by a blank, so that no passage can speak as the format."""
    for special in specials:
        text = text.replace(special, f"{special[0]} {special[1:]}")
    return text


def single_token(tokenizer: PreTrainedTokenizerBase, word: str) -> int:
    """Id of a word that must be a single token.

    Raises:
        UserError: If it is not.
    """
    ids = tokenizer.encode(word, add_special_tokens=False)
    if len(ids) != 1 or ids[0] == tokenizer.unk_token_id:
        raise UserError(
            f"{word!r} must be one token of {tokenizer.name_or_path}, but is {len(ids)}: {ids}. Take another T5, or make a "
            "tokenizer that holds it: python -m trainers.t5_from_scratch."
        )
    return int(ids[0])
