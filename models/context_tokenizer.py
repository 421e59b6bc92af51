"""RE-RAG's input formats: tokenizes a question and its passages, and answers, in training, evaluation and serving.

    re_rag_train    question: Qcontext: TITLE.TEXT          released training code, with its missing spaces
    re_rag_release  question: Qcontext: TITLE. TEXT         example of the released checkpoints
    fid             question: Q title: TITLE context: TEXT  Fusion-in-Decoder
    packed          question: Q document 1: TITLE. TEXT document 2: ...    all passages in one input
    sentence_pair   [CLS] Q [SEP] TITLE. TEXT [SEP]         encoder-only estimators

All but `packed` take one passage. Passages are truncated; packed ones share the room evenly. A question is cut only
where it leaves no room for a passage: to its first tokens, half of the room.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from common.errors import UserError
from common.records import Passage, nfkc, passage_text
from models.length_batching import IGNORE, fair_shares, pad
from models.long_questions import first_tokens, question_note, surely_fits, token_count
from models.text_formats import neutralize, special_texts
from models.token_count import CountsInputs

ContextFormat = Literal["re_rag_train", "re_rag_release", "fid", "packed", "sentence_pair"]
VERSION = "nfkc, single blanks; v1"
_PREFIX = "question: "  # of a T5's input
FEW_TEXTS = 4096  # whose token ids are remembered where most texts do not come again soon
MIN_PASSAGE_TOKENS = 4


def is_packed(format: str) -> bool:
    """Whether all passages of a question form one input: `packed`, or such a format of `models.prompt_tokenizer`."""
    return format.endswith("packed")


def text_format(name: str) -> str:
    """Version string of a format: stored in the serving folder and compared at loading."""
    return f"{name}; {VERSION}"


class ContextEncoder(CountsInputs):
    """Tokenizes questions with their passages.

    Args:
        tokenizer: A tokenizer that appends its end or separator token.
        max_tokens: Maximum sequence length, in tokens, special tokens included.
        format: One of the formats above.
        cached_texts: Size of the token-id cache, in sequences; it is cleared when full.

    Raises:
        UserError: If the format does not fit the tokenizer.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        max_tokens: int = 256,
        format: ContextFormat = "fid",
        cached_texts: int = 50_000,
    ) -> None:
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
        self.tokenizer, self.max_tokens, self.format, self.cached_texts = tokenizer, max_tokens, format, cached_texts
        self.packed = is_packed(format)  # whether all passages form one input
        self.specials = special_texts(tokenizer)
        self._special_starts = {special[0] for special in self.specials}
        self._ids: dict[tuple[str, ...], list[int]] = {}

    def __getstate__(self) -> dict[str, Any]:
        """For another process: where several share an epoch, a text hardly ever comes to the same one again."""
        return self.__dict__ | {"_ids": {}, "cached_texts": min(self.cached_texts, FEW_TEXTS)}

    def same_as(self, other: "ContextEncoder") -> bool:
        """Whether both return the same token ids for every input."""
        return (self.max_tokens, self.format) == (other.max_tokens, other.format) and (
            self.tokenizer is other.tokenizer or self.tokenizer.get_vocab() == other.tokenizer.get_vocab()
        )

    def __call__(self, rows: Sequence[tuple[str, Sequence[Passage]]]) -> list[list[int]]:
        """Token ids of every (question, passages) row, at most `max_tokens` each; cached by question and passage ids.

        Raises:
            ValueError: If the format takes one passage and a row does not have exactly one.
        """
        keys = [(question, *(passage.id for passage in passages)) for question, passages in rows]
        missing = {key: row for key, row in zip(keys, rows, strict=True) if key not in self._ids}
        if len(self._ids) + len(missing) > self.cached_texts:
            self._ids.clear()
            missing = dict(zip(keys, rows, strict=True))
        self._ids.update(zip(missing, self._tokenize(list(missing.values())), strict=True))
        return [self._ids[key] for key in keys]

    def pad(self, sequences: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """Right-padded token ids and attention mask, both (P, T) int64."""
        return pad(sequences, self.tokenizer.pad_token_id, self.max_tokens)

    def _clean(self, text: str) -> str:
        text = nfkc(text)
        return neutralize(text, self.specials) if self._special_starts & set(text) else text

    def _tokenize(self, rows: Sequence[tuple[str, Sequence[Passage]]]) -> list[list[int]]:
        return self._tokenize_packed(rows) if self.packed else self._tokenize_single(rows)

    def _tokenize_single(self, rows: Sequence[tuple[str, Sequence[Passage]]]) -> list[list[int]]:
        if not rows:
            return []
        read = self._questions(rows)
        questions, bodies = [], []
        for question, passages in rows:
            (passage,) = passages
            questions.append(read[question])
            bodies.append(self._body(passage))
        if self.format == "sentence_pair":
            batch = self.tokenizer(questions, bodies, truncation="only_second", max_length=self.max_tokens)
        else:
            texts = [f"question: {question}{body}" for question, body in zip(questions, bodies, strict=True)]
            batch = self.tokenizer(texts, truncation=True, max_length=self.max_tokens)
        for encoding in batch.encodings or ():
            self.count_input(bool(encoding.overflowing))
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
        read = self._questions(rows)
        return self._pack(
            [
                (
                    _PREFIX + read[question],
                    [f"document {i}: {self._clean(passage_text(p))}" for i, p in enumerate(passages, start=1)],
                )
                for question, passages in rows
            ]
        )

    def _pack(self, rows: Sequence[tuple[str, Sequence[str]]]) -> list[list[int]]:
        """Token ids of every (question, documents) row; the documents share evenly what the question leaves."""
        texts = [question for question, _ in rows] + [document for _, documents in rows for document in documents]
        ids = self.tokenizer(texts, add_special_tokens=False, truncation=True, max_length=self.max_tokens)["input_ids"]
        sequences, start = [], len(rows)
        for question_ids, (_, documents) in zip(ids, rows, strict=False):
            documents_ids = ids[start : start + len(documents)]
            start += len(documents)
            shares = self._shares(documents_ids, self.max_tokens - 1 - len(question_ids))
            kept = [token for document, share in zip(documents_ids, shares, strict=True) for token in document[:share]]
            sequences.append([*question_ids, *kept, self.tokenizer.eos_token_id])
        return sequences

    def _shares(self, passages_ids: Sequence[Sequence[int]], room: int) -> list[int]:
        """Tokens to keep of each packed passage."""
        lengths = [len(ids) for ids in passages_ids]
        shares = fair_shares(lengths, room)
        self.count_input(shares != lengths)
        return shares

    def inputs_cut_of(self, rows: Sequence[tuple[str, Sequence[Passage]]]) -> int:
        """Of how many rows a passage is cut; these rows are not counted as read."""
        counted = self.inputs_read, self.inputs_cut
        self._tokenize(rows)
        cut = self.inputs_cut - counted[1]
        self.inputs_read, self.inputs_cut = counted
        return cut

    def cut_note(self, question: str, history: Sequence[str] = ()) -> str:
        """The part of a question that is read if it leaves no room for a passage; else empty."""
        question = self._clean(question)
        return "" if self._fits(question) else question_note(self._most, token_count(self.tokenizer, question))

    def _questions(self, rows: Sequence[tuple[str, Sequence[Passage]]]) -> dict[str, str]:
        """Every question as it is read: cleaned, and cut where it leaves no room for a passage."""
        texts = {question: self._clean(question) for question in dict.fromkeys(question for question, _ in rows)}
        return {
            question: text if self._fits(text) else first_tokens(self.tokenizer, text, self._most)
            for question, text in texts.items()
        }

    @cached_property
    def _most(self) -> int:
        """Tokens that are read of a question that is cut."""
        return (self.max_tokens - token_count(self.tokenizer, _PREFIX)) // 2

    def _fits(self, question: str) -> bool:
        """Whether a cleaned question leaves room for a passage."""
        room = self.max_tokens - MIN_PASSAGE_TOKENS
        if surely_fits(_PREFIX + question, room - 3):  # besides special tokens
            return True
        return len(self.tokenizer(_PREFIX + question, verbose=False)["input_ids"]) <= room


def answer_labels(
    tokenizer: PreTrainedTokenizerBase, prefix: str, max_tokens: int | None, answers: Sequence[str]
) -> Tensor:
    """Token ids (P, A) of answers, end token included, padded with IGNORE; truncated to `max_tokens` if given."""
    specials = special_texts(tokenizer)  # in an answer they are text, as in what is read
    texts = [prefix + neutralize(nfkc(answer), specials) for answer in answers]
    batch = tokenizer(
        texts, padding=True, truncation=max_tokens is not None, max_length=max_tokens, return_tensors="pt"
    )
    return batch["input_ids"].masked_fill(batch["attention_mask"] == 0, IGNORE)


def no_labels(answers: Sequence[str]) -> Tensor:
    """Of a training without a generator: (P, 0)."""
    return torch.zeros(len(answers), 0, dtype=torch.long)
