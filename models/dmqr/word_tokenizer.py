"""Input format of the extractive rewriter: a question with one passage of its first search, and where each word begins.

    [CLS] question [SEP] title. text [SEP]

(class and separator tokens of the tokenizer). The passage is truncated; a question is cut only where it leaves no room
for it: to its first tokens, half of the room. A word is represented by its first token.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import Tensor
from transformers import PreTrainedTokenizerBase

from common.errors import UserError
from common.ranges import at_least
from common.records import Passage, nfkc, passage_text
from common.words import WORDS, Word, words_of
from models.length_batching import pad
from models.long_questions import question_note, surely_fits, token_count
from models.text_formats import neutralize
from models.token_count import CountsInputs

TEXT_FORMAT = f"cls question sep title. text sep, words by first token; nfkc, single blanks; words {WORDS}; v2"
SPECIAL_TOKENS = 3
PASSAGE_TOKENS = 16  # that a question must leave for the passage
if TYPE_CHECKING:
    PairTokens = int
else:
    PairTokens = at_least(32)  # maximum length of a question with a passage


@dataclass(frozen=True, slots=True)
class PlacedWord:
    """A word and the position of its first token in the input."""

    word: Word
    position: int


@dataclass(frozen=True, slots=True)
class WordPair:
    """The input of one (question, passage)."""

    ids: list[int]
    question_tokens: int  # tokens before the passage, special ones included
    question_words: list[PlacedWord]  # those that were not cut
    passage_words: list[PlacedWord]  # those that were not truncated


class WordPairEncoder(CountsInputs):
    """Tokenizes (question, passage) pairs.

    Args:
        tokenizer: A fast tokenizer: it tells which part of a text each token is.
        max_tokens: Maximum length of a pair, in tokens, special tokens included.

    Raises:
        UserError: If the tokenizer is not a fast one or lacks a class, separator or padding token.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, max_tokens: int) -> None:
        name = tokenizer.name_or_path
        if not tokenizer.is_fast:
            raise UserError(f"{name} has no fast tokenizer: save one as tokenizer.json in its folder.")
        if tokenizer.cls_token_id is None or tokenizer.sep_token_id is None or tokenizer.pad_token_id is None:
            raise UserError(f"the tokenizer {name} needs a class, a separator and a padding token.")
        self.tokenizer, self.max_tokens = tokenizer, max_tokens
        self.specials = sorted(set(tokenizer.all_special_tokens), key=len, reverse=True)

    def __call__(self, pairs: Sequence[tuple[str, Passage]]) -> list[WordPair]:
        """The input of every pair, in order."""
        texts = [(self.text(question), self.text(passage_text(passage))) for question, passage in pairs]
        parts = self._parts(list(dict.fromkeys(text for pair in texts for text in pair)))
        return [self._joined(*parts[question], *parts[passage]) for question, passage in texts]

    def cut_note(self, question: str, history: Sequence[str] = ()) -> str:
        """The part of a question that is read if it leaves no room for a passage; else empty."""
        text = self.text(question)
        if surely_fits(text, self.max_tokens - SPECIAL_TOKENS - PASSAGE_TOKENS):
            return ""
        tokens = token_count(self.tokenizer, text)
        kept = self._question_tokens(tokens)
        return question_note(kept, tokens) if kept < tokens else ""

    def text(self, text: str) -> str:
        """A text as it is read: the words' places refer to this form."""
        return neutralize(nfkc(text), self.specials)

    def pad(self, inputs: Sequence[WordPair]) -> tuple[Tensor, Tensor, Tensor]:
        """Right-padded token ids, segment ids (0 question, 1 passage) and attention mask, all (P, T) int64."""
        ids_PT, attention_PT = pad([each.ids for each in inputs], self.tokenizer.pad_token_id, self.max_tokens)
        types_PT = attention_PT.clone()
        for row, each in enumerate(inputs):
            types_PT[row, : each.question_tokens] = 0
        return ids_PT, types_PT, attention_PT

    def _parts(self, texts: Sequence[str]) -> dict[str, tuple[list[int], list[PlacedWord]]]:
        """Token ids of texts without special tokens, and their words with the place of the first token."""
        if not texts:
            return {}
        read = self.tokenizer(
            list(texts),
            add_special_tokens=False,
            truncation=True,
            max_length=self.max_tokens,
            return_offsets_mapping=True,
        )
        return {
            text: (ids, _placed(words_of(text), spans))
            for text, ids, spans in zip(texts, read["input_ids"], read["offset_mapping"], strict=True)
        }

    def _question_tokens(self, tokens: int) -> int:
        """How many of a question's tokens are read."""
        room = self.max_tokens - SPECIAL_TOKENS
        return tokens if room - tokens >= PASSAGE_TOKENS else room // 2

    def _joined(
        self, question: list[int], question_words: list[PlacedWord], passage: list[int], passage_words: list[PlacedWord]
    ) -> WordPair:
        question = question[: self._question_tokens(len(question))]
        room = self.max_tokens - SPECIAL_TOKENS - len(question)
        self.count_input(len(passage) > room)
        cls, sep = self.tokenizer.cls_token_id, self.tokenizer.sep_token_id
        before = len(question) + 2
        return WordPair(
            [cls, *question, sep, *passage[:room], sep],
            before,
            [PlacedWord(each.word, each.position + 1) for each in question_words if each.position < len(question)],
            [PlacedWord(each.word, each.position + before) for each in passage_words if each.position < room],
        )


def _placed(words: Sequence[Word], spans: Sequence[tuple[int, int]]) -> list[PlacedWord]:
    """Words with the number of the first token that reaches into them; words beyond the last token are left out."""
    placed, token = [], 0
    for word in words:
        while token < len(spans) and spans[token][1] <= word.start:
            token += 1
        if token == len(spans):
            break
        placed.append(PlacedWord(word, token))
    return placed
