"""Input format of DR-RAG's classifier.

Tokenizes a triple, a question and two passages, in training, evaluation and serving.

    [CLS] question [SEP] title. text [SEP] title. text [SEP]

(class and separator tokens of the tokenizer).  Passages are truncated: the room that the question leaves is shared
evenly, and what a short passage does not use goes to the other.  A question is cut only where it leaves them no room:
to its first tokens, half of the room.  Token ids of a text are cached and reused by all triples.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from torch import Tensor
from transformers import PreTrainedTokenizerBase

from common.errors import UserError
from common.records import Passage, nfkc, passage_text
from common.sealed_json import fingerprint
from models.length_batching import fair_shares, pad
from models.loading import load_tokenizer
from models.long_questions import question_note, surely_fits, token_count
from models.text_formats import neutralize
from models.token_count import CountsInputs

TEXT_FORMAT = "cls question sep title. text sep title. text sep; nfkc, single blanks; v1"
SPECIAL_TOKENS = 4  # class and separator tokens of a triple
PASSAGE_TOKENS = 2  # that a question must leave for the passages


class TripleEncoder(CountsInputs):
    """Tokenizes (question, passage, passage) triples.

    Args:
        tokenizer: Folder of a tokenizer, or one already loaded.
        max_tokens: Maximum length of a triple, in tokens, special tokens included.
        cached_texts: Size of the token-id cache, in texts; it is cleared when full.  Unlimited when None.

    Raises:
        UserError: If the tokenizer has no class, separator or padding token.
    """

    def __init__(
        self, tokenizer: str | PreTrainedTokenizerBase, max_tokens: int = 512, cached_texts: int | None = 200_000
    ) -> None:
        if isinstance(tokenizer, str):
            tokenizer = load_tokenizer(tokenizer)
        if tokenizer.cls_token_id is None or tokenizer.sep_token_id is None or tokenizer.pad_token_id is None:
            raise UserError(f"the tokenizer {tokenizer.name_or_path} needs a class, a separator and a padding token.")
        self.tokenizer, self.max_tokens = tokenizer, max_tokens
        self.specials = sorted(set(tokenizer.all_special_tokens), key=len, reverse=True)
        self.cached_texts = cached_texts
        self._ids: dict[str, list[int]] = {}

    def __getstate__(self) -> dict[str, Any]:
        """For another process, which remembers texts of its own."""
        return self.__dict__ | {"_ids": {}}

    @cached_property
    def content_digest(self) -> str:
        """A fingerprint that changes whenever `tokenize` returns other ids."""
        state = json.loads(self.tokenizer.backend_tokenizer.to_str())
        # how the last call truncated and padded is no part of the tokenizer
        return fingerprint([{**state, "truncation": None, "padding": None}, sorted(self.specials), self.max_tokens])

    def remember(self, texts: Iterable[str]) -> None:
        """Tokenize texts into the cache in large batches, so that `__call__` only joins token ids."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._ids]
        if self.cached_texts is not None and len(self._ids) + len(missing) > self.cached_texts:
            self._ids.clear()
        for start in range(0, len(missing), 4096):
            chunk = missing[start : start + 4096]
            self._ids.update(zip(chunk, self.tokenize(chunk), strict=True))

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of texts, at most `max_tokens` each, without special tokens; not cached."""
        safe = [neutralize(nfkc(text), self.specials) for text in texts]
        ids = self.tokenizer(safe, add_special_tokens=False, truncation=True, max_length=self.max_tokens)
        return list(ids["input_ids"])

    def text_ids(self, text: str) -> list[int]:
        """Token ids of one text, without special tokens; cached."""
        if text not in self._ids:
            self.remember([text])
        return self._ids[text]

    def remember_triples(self, triples: Iterable[tuple[str, Passage, Passage]]) -> None:
        """Tokenize all texts of triples into the cache."""
        self.remember(text for question, *passages in triples for text in (question, *map(passage_text, passages)))

    def length(self, question: str, first: Passage, second: Passage) -> int:
        """Number of tokens that `__call__` would return."""
        asked = len(self.text_ids(question))
        return min(self.max_tokens, self.untruncated(question, first, second) - asked + self.question_tokens(asked))

    def untruncated(self, question: str, first: Passage, second: Passage) -> int:
        """Number of tokens before truncation; a single text counts with at most `max_tokens`."""
        texts = (question, passage_text(first), passage_text(second))
        return SPECIAL_TOKENS + sum(len(self.text_ids(text)) for text in texts)

    def __call__(self, question: str, first: Passage, second: Passage) -> list[int]:
        """Token ids of one triple, at most `max_tokens`."""
        return self.join(self.text_ids(question), [self.text_ids(passage_text(each)) for each in (first, second)])

    def question_tokens(self, tokens: int) -> int:
        """How many of a question's tokens are read: all, or half of the room if they leave none for the passages."""
        room = self.max_tokens - SPECIAL_TOKENS
        return tokens if tokens <= room - PASSAGE_TOKENS else room // 2

    def cut_note(self, question: str, history: Sequence[str] = ()) -> str:
        """The part of a question that is read if it leaves no room for the passages; else empty."""
        text = neutralize(nfkc(question), self.specials)
        if surely_fits(text, self.max_tokens - SPECIAL_TOKENS - PASSAGE_TOKENS):
            return ""
        tokens = token_count(self.tokenizer, text)
        kept = self.question_tokens(tokens)
        return question_note(kept, tokens) if kept < tokens else ""

    def join(self, question_ids: Sequence[int], passages_ids: Sequence[Sequence[int]]) -> list[int]:
        """Token ids of one triple of texts that are tokenized already.

        Args:
            question_ids: Of the question, as `tokenize` returns them.
            passages_ids: Of the two passages in order.
        """
        question_ids = question_ids[: self.question_tokens(len(question_ids))]
        budget = self.max_tokens - SPECIAL_TOKENS - len(question_ids)
        cls, sep = self.tokenizer.cls_token_id, self.tokenizer.sep_token_id
        joined = [cls, *question_ids, sep]
        lengths = [len(each) for each in passages_ids]
        shares = fair_shares(lengths, budget)
        self.count_input(shares != lengths)
        for of_passage, kept in zip(passages_ids, shares, strict=True):
            joined += [*of_passage[:kept], sep]
        return joined

    def pad(self, sequences: Sequence[Sequence[int]], length: int | None = None) -> tuple[Tensor, Tensor]:
        """Right-padded token ids and attention mask, both (P, T) int64; T as in `models.length_batching.pad`."""
        return pad(sequences, self.tokenizer.pad_token_id, self.max_tokens, length)


@dataclass(frozen=True, slots=True)
class Padding:
    """Lengths of a classifier's batches.

    With block-sparse attention the last block is global, so scores depend on padding unless that block is all padding:
    a whole block is added.  Any larger multiple of the block gives the same scores.
    """

    block: int = 0  # tokens of a block; 0 where attention is not block-sparse
    minimum: int = 0  # least length of block-sparse attention

    def length(self, tokens: int) -> int:
        """Length to which a batch is padded whose longest row has `tokens` tokens.

        Without blocks at least that length.
        """
        if not self.block:
            return tokens
        return -(-max(tokens + 1, self.minimum) // self.block) * self.block + self.block

    def pad(self, encode: TripleEncoder, sequences: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """Right-padded token ids and attention mask of a batch, both (P, T) int64."""
        return encode.pad(sequences, self.length(max(map(len, sequences))) if self.block else None)
