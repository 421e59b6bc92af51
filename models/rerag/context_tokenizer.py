"""RE-RAG's input formats: tokenizes a question and its passages, in training, evaluation and serving.

    re_rag_train    question: Qcontext: TITLE.TEXT          released training code, with its missing spaces
    re_rag_release  question: Qcontext: TITLE. TEXT         example of the released checkpoints
    fid             question: Q title: TITLE context: TEXT  Fusion-in-Decoder
    packed          question: Q document 1: TITLE. TEXT document 2: ...    all passages in one input
    sentence_pair   [CLS] Q [SEP] TITLE. TEXT [SEP]         encoder-only estimators

All but `packed` take one passage.  Passages are truncated, never the question; `packed` shares the room evenly.
"""

from collections.abc import Sequence
from typing import Literal, get_args

from torch import Tensor
from transformers import PreTrainedTokenizerBase

from common.checks import check_at_least, check_choice
from common.errors import UserError
from common.records import Passage, clean
from models.length_batching import fair_shares, pad
from models.text_formats import neutralize, passage_text, special_texts

ContextFormat = Literal["re_rag_train", "re_rag_release", "fid", "packed", "sentence_pair"]
VERSION = "nfkc, single blanks; v1"
MIN_PASSAGE_TOKENS = 4
MIN_TOKENS = 16  # smallest allowed maximum length of an input


def text_format(name: ContextFormat) -> str:
    """Version string of a format: stored in the serving folder and compared at loading.

    Raises:
        UserError: If the format is unknown.
    """
    check_choice(get_args(ContextFormat), text_format=name)
    return f"{name}; {VERSION}"


class ContextEncoder:
    """Tokenizes questions with their passages.

    Args:
        tokenizer: A tokenizer that appends its end or separator token.
        max_tokens: Maximum sequence length, in tokens, special tokens included.
        format: One of the formats above.
        cached_texts: Size of the token-id cache, in sequences; it is cleared when full.

    Raises:
        UserError: If the format is unknown or does not fit the tokenizer, or max_tokens is below 16.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        max_tokens: int = 256,
        format: ContextFormat = "fid",
        cached_texts: int = 50_000,
    ) -> None:
        text_format(format)
        needed = tokenizer.sep_token_id if format == "sentence_pair" else tokenizer.eos_token_id
        if needed is None or tokenizer.pad_token_id is None:
            raise UserError(
                f"text_format {format} does not fit the tokenizer {tokenizer.name_or_path}: sentence_pair is for "
                "encoder-only models ([SEP]), the others are for the T5 family (</s>)."
            )
        if tokenizer("")["input_ids"][-1:] != [needed]:
            raise UserError(
                f"the tokenizer {tokenizer.name_or_path} does not end a text with {tokenizer.decode([needed])}: add "
                "the post-processor of its model family."
            )
        check_at_least(MIN_TOKENS, ", for a question and a passage", max_tokens=max_tokens)
        self.tokenizer, self.max_tokens, self.format, self.cached_texts = tokenizer, max_tokens, format, cached_texts
        self.specials = special_texts(tokenizer)
        self._special_starts = {special[0] for special in self.specials}
        self._ids: dict[tuple[str, ...], list[int]] = {}

    def same_as(self, other: "ContextEncoder") -> bool:
        """Whether both return the same token ids for every input."""
        return (self.max_tokens, self.format) == (other.max_tokens, other.format) and (
            self.tokenizer is other.tokenizer or self.tokenizer.get_vocab() == other.tokenizer.get_vocab()
        )

    def __call__(self, rows: Sequence[tuple[str, Sequence[Passage]]]) -> list[list[int]]:
        """Token ids of every (question, passages) row, at most `max_tokens` each; cached by question and passage ids.

        Raises:
            UserError: If a question leaves no room for its passages.
            ValueError: If the format takes one passage and a row does not have exactly one.
        """
        keys = [(question, *(passage.id for passage in passages)) for question, passages in rows]
        missing = {key: row for key, row in zip(keys, rows, strict=True) if key not in self._ids}
        if len(self._ids) + len(missing) > self.cached_texts:
            self._ids.clear()
            missing = dict(zip(keys, rows, strict=True))
        tokenize = self._tokenize_packed if self.format == "packed" else self._tokenize_single
        self._ids.update(zip(missing, tokenize(list(missing.values())), strict=True))
        return [self._ids[key] for key in keys]

    def pad(self, sequences: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """Right-padded token ids and attention mask, both (P, T) int64."""
        return pad(sequences, self.tokenizer.pad_token_id, self.max_tokens)

    def _clean(self, text: str) -> str:
        text = clean(text)
        return neutralize(text, self.specials) if self._special_starts & set(text) else text

    def _tokenize_single(self, rows: Sequence[tuple[str, Sequence[Passage]]]) -> list[list[int]]:
        if not rows:
            return []
        questions, bodies = [], []
        for question, passages in rows:
            (passage,) = passages
            questions.append(self._clean(question))
            bodies.append(self._body(passage))
        self._check_lengths(questions)
        if self.format == "sentence_pair":
            batch = self.tokenizer(questions, bodies, truncation="only_second", max_length=self.max_tokens)
        else:
            texts = [f"question: {question}{body}" for question, body in zip(questions, bodies, strict=True)]
            batch = self.tokenizer(texts, truncation=True, max_length=self.max_tokens)
        return list(batch["input_ids"])

    def _body(self, passage: Passage) -> str:
        title, text = self._clean(passage.title), self._clean(passage.text)
        if self.format == "sentence_pair":
            return f"{title}. {text}" if title else text
        space = "" if self.format == "re_rag_train" else " "
        return f" title: {title} context: {text}" if self.format == "fid" else f"context: {title}.{space}{text}"

    def _tokenize_packed(self, rows: Sequence[tuple[str, Sequence[Passage]]]) -> list[list[int]]:
        if not rows:
            return []
        questions = [self._clean(question) for question, _ in rows]
        self._check_lengths(questions)
        texts = [f"question: {question}" for question in questions]
        for _, passages in rows:
            texts += [f"document {i}: {self._clean(passage_text(p))}" for i, p in enumerate(passages, start=1)]
        ids = self.tokenizer(texts, add_special_tokens=False, truncation=True, max_length=self.max_tokens)["input_ids"]
        sequences, start = [], len(rows)
        for question_ids, (_, passages) in zip(ids, rows, strict=False):
            documents = ids[start : start + len(passages)]
            start += len(passages)
            shares = fair_shares([len(d) for d in documents], self.max_tokens - 1 - len(question_ids))
            kept = [token for document, share in zip(documents, shares, strict=True) for token in document[:share]]
            sequences.append([*question_ids, *kept, self.tokenizer.eos_token_id])
        return sequences

    def _check_lengths(self, questions: Sequence[str]) -> None:
        room = self.max_tokens - MIN_PASSAGE_TOKENS
        for question in set(questions):
            if len(f"question: {question}".encode()) + 3 > room:  # a token has at least one byte, except special tokens
                tokens = len(self.tokenizer(f"question: {question}")["input_ids"])
                if tokens > room:
                    raise UserError(
                        f"the question {question[:60]!r}... fills {tokens} of max_tokens {self.max_tokens}: raise max_tokens."
                    )
