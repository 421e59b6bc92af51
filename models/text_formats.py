"""Helpers shared by all input formats: escaping of special tokens, words of the relevance labels."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from jinja2 import TemplateError
from transformers import PreTrainedTokenizerBase

from common.errors import UserError
from common.ranges import at_least

if TYPE_CHECKING:
    InputTokens = int
else:
    InputTokens = at_least(16)  # maximum length of an input: a question, and what stands beside it
WORD_START = "▁"  # SentencePiece's mark
SENTINELS = 100  # of T5's vocabulary: <extra_id_0> to <extra_id_99>
LABEL_WORDS = (  # proposed where "true" or "false" is several tokens
    ("true", "false"), ("yes", "no"), ("True", "False"), ("Yes", "No"), ("right", "wrong"), ("good", "bad"), ("A", "B"),
    ("1", "0"), ("+", "-"),
)  # fmt: skip


def neutralize(text: str, specials: Sequence[str]) -> str:
    """Insert a space into special-token strings inside user text, so that they are tokenized as plain text."""
    for special in specials:
        text = text.replace(special, f"{special[0]} {special[1:]}")
    return text


def special_texts(tokenizer: PreTrainedTokenizerBase) -> list[str]:
    """Texts that a tokenizer reads as one special token, longest first.

    mT5's vocabulary has its sentinels as ordinary pieces, which its list of special tokens does not name.
    """
    pieces = [f"<extra_id_{number}>" for number in range(SENTINELS)]
    ids = tokenizer.convert_tokens_to_ids([WORD_START + piece for piece in pieces])
    plain = [piece for piece, id_ in zip(pieces, ids, strict=True) if id_ not in (None, tokenizer.unk_token_id)]
    return sorted({*tokenizer.all_special_tokens, *plain}, key=len, reverse=True)


def marker_texts(tokenizer: PreTrainedTokenizerBase) -> list[str]:
    """Texts that a tokenizer reads as one token that it was given later, such as <|im_start|>.

    Special or not, longest first.

    Among them are the marks between the messages of a chat.  Added blanks and single characters are ordinary text.
    """
    added = {str(token) for token in tokenizer.added_tokens_decoder.values()}
    texts = {*special_texts(tokenizer), *added}
    return sorted((text for text in texts if len(text.strip()) > 1), key=lambda text: (-len(text), text))


def chat_prompt(tokenizer: PreTrainedTokenizerBase, text: str) -> str:
    """A user's message in the chat template, up to where the reply begins.

    Raises:
        UserError: If the template refuses it.
    """
    message = [{"role": "user", "content": text}]
    try:
        return str(tokenizer.apply_chat_template(message, tokenize=False, add_generation_prompt=True))
    except TemplateError as error:
        reason = " ".join(str(error).split())
        raise UserError(f"the chat template of {tokenizer.name_or_path} refuses a user's message: {reason}") from error


def label_tokens(
    tokenizer: PreTrainedTokenizerBase,
    true_word: str,
    false_word: str,
    ids_of: Callable[[Sequence[str]], list[list[int]]] | None = None,
) -> tuple[int, int]:
    """Token ids of the words that a generative relevance estimator says of relevant and of irrelevant passages.

    Args:
        tokenizer: Of the model.
        true_word: Said of a relevant passage.
        false_word: Said of an irrelevant one.
        ids_of: Token ids of texts that the model says; those of the texts alone when None.

    Raises:
        UserError: If a word is not a single token of the vocabulary, or both are the same one; proposes words that are.
    """

    def single(word: str) -> int | None:
        """The token id of a word; None if it is several tokens or unknown."""
        ids = ids_of([word])[0] if ids_of else tokenizer.encode(word, add_special_tokens=False)
        return int(ids[0]) if len(ids) == 1 and ids[0] != tokenizer.unk_token_id else None

    ids = tuple(single(word) for word in (true_word, false_word))
    if None in ids or ids[0] == ids[1]:
        pairs = [pair for pair in LABEL_WORDS if None not in map(single, pair)]
        proposed = " and ".join(f'"{word}"' for word in pairs[0]) if pairs else "of your choice"
        wrong = [word for word, id_ in zip((true_word, false_word), ids, strict=True) if id_ is None]
        pieces = tokenizer.tokenize(wrong[0]) if wrong else []
        cause = f"{wrong[0]!r} is {pieces}" if wrong else f"{true_word!r} and {false_word!r} are the same"
        raise UserError(
            f"the words of the relevance labels must be two different tokens of {tokenizer.name_or_path}, but {cause}: "
            f"set model.text.true_word and model.text.false_word to words that are single tokens, here {proposed}."
        )
    return ids  # type: ignore[return-value]  # no None among them
