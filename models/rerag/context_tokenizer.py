"""How a question and its evidence become tokens for RE-RAG: one definition for training, evaluation, export and serving.

    re_rag_train    question: Qcontext: TITLE.TEXT          the released training code, blanks missing as there
    re_rag_release  question: Qcontext: TITLE. TEXT         the released checkpoints' example
    fid             question: Q title: TITLE context: TEXT  Fusion-in-Decoder's
    packed          question: Q document 1: TITLE. TEXT document 2: ...    all documents in one text, one reader call
    sentence_pair   [CLS] Q [SEP] TITLE. TEXT [SEP]         encoder-only estimators

All but `packed` take one passage.  Passages are truncated, never the question; packed ones share the room evenly.
"""

from collections.abc import Sequence
from typing import Literal, get_args

from torch import Tensor
from transformers import PreTrainedTokenizerBase

from common.errors import UserError
from common.records import Passage, clean
from models.length_batching import fair_shares, pad
from models.text_formats import neutralize, passage_text

ContextFormat = Literal["re_rag_train", "re_rag_release", "fid", "packed", "sentence_pair"]
VERSION = "nfkc, single blanks; v1"
LEAST_PASSAGE_TOKENS = 4


def text_format(name: ContextFormat) -> str:
    """The string a serving folder stores, and must match to be loaded.

    Raises:
        UserError: If the format is unknown.
    """
    if name not in get_args(ContextFormat):
        raise UserError(f"text_format {name!r} is unknown; allowed: {', '.join(get_args(ContextFormat))}.")
    return f"{name}; {VERSION}"


class ContextEncoder:
    """Tokenizes a question with its evidence.

    Args:
        tokenizer: A tokenizer that adds its own end or separator tokens.
        max_tokens: Longest sequence, in tokens, special ones included.
        format: One of the formats above.
        cached_texts: Sequences whose token ids are remembered before all are forgotten.

    Raises:
        UserError: If the format is unknown or does not fit the tokenizer.
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
                f"the tokenizer {tokenizer.name_or_path} does not end a text with {tokenizer.decode([needed])}: give it the "
                "post-processor of its family."
            )
        if max_tokens < 16:
            raise UserError(f"max_tokens must be at least 16 to hold a question and a passage, got {max_tokens}.")
        self.tokenizer, self.max_tokens, self.format, self.cached_texts = tokenizer, max_tokens, format, cached_texts
        self.specials = sorted(set(tokenizer.all_special_tokens), key=len, reverse=True)
        self._marks = {special[0] for special in self.specials}
        self._ids: dict[tuple[str, ...], list[int]] = {}

    def same_as(self, other: "ContextEncoder") -> bool:
        """Whether both give the same token ids for everything."""
        return (self.max_tokens, self.format) == (other.max_tokens, other.format) and (
            self.tokenizer is other.tokenizer or self.tokenizer.get_vocab() == other.tokenizer.get_vocab()
        )

    def __call__(self, rows: Sequence[tuple[str, Sequence[Passage]]]) -> list[list[int]]:
        """Token ids of every (question, passages), at most `max_tokens` each; remembered.

        Raises:
            UserError: If a question leaves no room for its passages.
            ValueError: If a format for one passage is given none or several.
        """
        keys = [(question, *(passage.id for passage in passages)) for question, passages in rows]
        missing = {key: row for key, row in zip(keys, rows, strict=True) if key not in self._ids}
        if len(self._ids) + len(missing) > self.cached_texts:
            self._ids.clear()
            missing = dict(zip(keys, rows, strict=True))
        made = self._packed(list(missing.values())) if self.format == "packed" else self._joined(list(missing.values()))
        self._ids.update(zip(missing, made, strict=True))
        return [self._ids[key] for key in keys]

    def pad(self, sequences: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """Right-padded token ids and attention mask, both (P, T) int64."""
        return pad(sequences, self.tokenizer.pad_token_id, self.max_tokens)

    def _safe(self, text: str) -> str:
        text = clean(text)
        return neutralize(text, self.specials) if self._marks & set(text) else text

    def _joined(self, rows: Sequence[tuple[str, Sequence[Passage]]]) -> list[list[int]]:
        if not rows:
            return []
        questions, bodies = [], []
        for question, passages in rows:
            (passage,) = passages
            questions.append(self._safe(question))
            bodies.append(self._body(passage))
        self._refuse_long(questions)
        if self.format == "sentence_pair":
            batch = self.tokenizer(questions, bodies, truncation="only_second", max_length=self.max_tokens)
        else:
            texts = [f"question: {question}{body}" for question, body in zip(questions, bodies, strict=True)]
            batch = self.tokenizer(texts, truncation=True, max_length=self.max_tokens)
        return list(batch["input_ids"])

    def _body(self, passage: Passage) -> str:
        title, text = self._safe(passage.title), self._safe(passage.text)
        if self.format == "sentence_pair":
            return f"{title}. {text}" if title else text
        blank = "" if self.format == "re_rag_train" else " "
        return f" title: {title} context: {text}" if self.format == "fid" else f"context: {title}.{blank}{text}"

    def _packed(self, rows: Sequence[tuple[str, Sequence[Passage]]]) -> list[list[int]]:
        if not rows:
            return []
        questions = [self._safe(question) for question, _ in rows]
        self._refuse_long(questions)
        texts = [f"question: {question}" for question in questions]
        for _, passages in rows:
            texts += [f"document {i}: {self._safe(passage_text(p))}" for i, p in enumerate(passages, start=1)]
        ids = self.tokenizer(texts, add_special_tokens=False, truncation=True, max_length=self.max_tokens)["input_ids"]
        sequences, start = [], len(rows)
        for head, (_, passages) in zip(ids, rows, strict=False):
            documents = ids[start : start + len(passages)]
            start += len(passages)
            shares = fair_shares([len(d) for d in documents], self.max_tokens - 1 - len(head))
            kept = [token for document, share in zip(documents, shares, strict=True) for token in document[:share]]
            sequences.append([*head, *kept, self.tokenizer.eos_token_id])
        return sequences

    def _refuse_long(self, questions: Sequence[str]) -> None:
        room = self.max_tokens - LEAST_PASSAGE_TOKENS
        for question in set(questions):
            if len(f"question: {question}".encode()) + 3 > room:  # no token but the special ones is shorter than a byte
                tokens = len(self.tokenizer(f"question: {question}")["input_ids"])
                if tokens > room:
                    raise UserError(
                        f"the question {question[:60]!r}... fills {tokens} of max_tokens {self.max_tokens}: raise it."
                    )
