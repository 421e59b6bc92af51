"""Word substitution for generative rewriters.

Words that a question shares with its rewrite become random ones, the same in both.

A small model soon knows the names of its training questions by heart, and then writes them for others. With other words
at every pass it has to copy from the question (Longpre et al., 2021, substitute answers of readers in this way).
"""

import random
import re
from collections.abc import Sequence
from difflib import get_close_matches

from common.errors import UserError
from models.dmqr.rewrite_tokenizer import RewriteEncoder

_BEGIN = "▁"  # of a word, in SentencePiece's pieces
_FEWEST = 4  # letters of a misspelt word
_LIKE = 0.75  # similarity of a misspelt word to the right one, as `difflib` measures it
_LONG = 0.3  # share of substitutes that have more than one piece, as names that the vocabulary lacks
_MORE = 4  # further pieces of those, at most
_WORD = re.compile(r"\w+")

Words = list[list[int]]  # the token ids of each word, or of what stands between two


class WordSubstitution:
    """Substitutes words of tokenized questions and rewrites.

    A word of the rewrite that the question spells a little differently counts as shared: both become the same
    substitute, so that a name with a typo is copied, as the right name cannot be known.

    Args:
        encode: Of an encoder-decoder whose tokenizer marks the beginning of a word, as SentencePiece's do.
        max_rewrite_tokens: Maximum length of a rewrite, in tokens.

    Raises:
        UserError: If it is of another model.
    """

    def __init__(self, encode: RewriteEncoder, max_rewrite_tokens: int) -> None:
        if encode.format != "seq2seq":
            raise UserError(
                "data.substitution is for encoder-decoders such as T5, and this is a causal LM: set it to 0."
            )
        self.encode, self.max_rewrite_tokens, tokenizer = encode, max_rewrite_tokens, encode.tokenizer
        self.pieces = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
        special = set(tokenizer.all_special_ids)
        usable = [n for n, piece in enumerate(self.pieces) if n not in special and _WORD.fullmatch(piece.strip(_BEGIN))]
        self.begins = [n for n in usable if self.pieces[n].startswith(_BEGIN) and len(self.pieces[n]) > 2]
        self.inner = [n for n in usable if not self.pieces[n].startswith(_BEGIN)]
        self._is_word = {*usable, *(n for n, piece in enumerate(self.pieces) if piece == _BEGIN)}
        if not self.begins or not self.inner:
            raise UserError(
                f"data.substitution needs a tokenizer whose pieces mark the beginning of a word with {_BEGIN!r}, and "
                f"{tokenizer.name_or_path} has another: set it to 0."
            )

    def __call__(
        self, inputs: Sequence[int], rewrite: Sequence[int], question: str, share: float, rng: random.Random
    ) -> tuple[list[int], list[int]]:
        """Input and rewrite with other words; unchanged if they would be too long.

        Args:
            inputs: Token ids of the input, which ends with the question.
            rewrite: Token ids.
            question: Its text.
            share: Probability that a shared word is replaced, everywhere in both.
            rng: Source of randomness.
        """
        start = len(inputs) - self.encode.question_tokens(question)
        asked, written = self._substituted(inputs[start:], rewrite, share, rng)
        if start + len(asked) > self.encode.max_tokens or len(written) > self.max_rewrite_tokens:
            return [*inputs], [*rewrite]
        return [*inputs[:start], *asked], written

    def _substituted(
        self, question: Sequence[int], rewrite: Sequence[int], share: float, rng: random.Random
    ) -> tuple[list[int], list[int]]:
        asked, written = self._words(question), self._words(rewrite)
        spelled = {self._text(word): None for word in asked}
        new: dict[str, list[int]] = {}
        for text in dict.fromkeys(map(self._text, written)):
            source = self._source(text, [*spelled], {self._text(word) for word in written})
            if source and rng.random() < share:
                new[text] = new[source] = self._drawn(rng)
        return self._replaced(asked, new), self._replaced(written, new)

    def _words(self, ids: Sequence[int]) -> Words:
        words: Words = []
        for each in ids:
            inside = each in self._is_word and not self.pieces[each].startswith(_BEGIN)
            if inside and words and words[-1][-1] in self._is_word:
                words[-1].append(each)
            else:
                words.append([each])
        return words

    def _text(self, word: Sequence[int]) -> str:
        """The form in which a word is compared; "" if it is no word."""
        return "".join(self.pieces[each] for each in word).strip(_BEGIN) if word[0] in self._is_word else ""

    @staticmethod
    def _source(text: str, asked: Sequence[str], written: set[str]) -> str:
        """The word of the question that a word of the rewrite comes from; "" if there is none."""
        if not text or text in asked:
            return text
        if len(text) < _FEWEST:
            return ""
        near = [other for other in asked if len(other) >= _FEWEST and other not in written]
        return (get_close_matches(text, near, 1, _LIKE) or [""])[0]

    def _drawn(self, rng: random.Random) -> list[int]:
        more = rng.randint(1, _MORE) if rng.random() < _LONG else 0
        return [rng.choice(self.begins), *(rng.choice(self.inner) for _ in range(more))]

    def _replaced(self, words: Words, new: dict[str, list[int]]) -> list[int]:
        return [each for word in words for each in new.get(self._text(word), word)]
