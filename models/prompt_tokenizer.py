"""Input formats for causal LMs: passages, a question, and the cue after which the model answers or judges.

    plain_answer      TITLE: TEXT          chat_answer, chat_relevance, chat_packed: the same lines as the user's
                      Question: Q          message in the model's chat template; what it says is its reply
                      Answer:
    plain_relevance   the same, with the cue `Relevant:`
    plain_packed      as plain_answer, with a line for each of several passages
    qwen3_reranker    the prompt that Qwen3-Reranker (arXiv:2506.05176) was trained with, with its own instruction; the
                      question stands before the passage, and the model says `yes` or `no`

What a plain model says begins with a blank and ends with a line break: every token that has one counts as an end token.
A chat model's reply ends with its own end token. Passages are truncated, several share the room evenly; the question is
cut only where it leaves no room for a passage: to its first tokens, half of the room.
"""

from collections.abc import Sequence
from functools import cached_property, partial
from itertools import islice
from typing import Literal, get_args

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from common.errors import UserError
from common.records import Passage
from models.causal_lm import line_break_ids
from models.context_tokenizer import MIN_PASSAGE_TOKENS, ContextEncoder
from models.length_batching import IGNORE, pad
from models.long_questions import token_count
from models.text_formats import chat_prompt, marker_texts

PromptFormat = Literal[
    "plain_answer", "plain_relevance", "plain_packed", "chat_answer", "chat_relevance", "chat_packed", "qwen3_reranker"
]
Task = Literal["answer", "relevance", "packed", "qwen3_reranker"]
PROMPT_FORMATS: tuple[PromptFormat, ...] = get_args(PromptFormat)
_CUES: dict[Task, str] = {"answer": "Answer:", "relevance": "Relevant:", "packed": "Answer:"}
QWEN3_RERANKER: Literal["qwen3_reranker"] = "qwen3_reranker"
YES_NO = ("yes", "no")  # what it says
_QWEN3_PARTS = (  # before the question, in two parts, between it and the passage, behind the passage
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct "
    'provided. Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n',
    "<Instruct>: Given a web search query, retrieve relevant passages that answer the query\n<Query>: ",
    "\n<Document>:",
    "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n",
)
_PASSAGE, _QUESTION = "Passage0here", "Question0here"  # stand for the texts while the chat template is filled


class PromptEncoder(ContextEncoder):
    """Tokenizes passages and a question into the prompt of a causal LM, and what the model says after it.

    Args:
        tokenizer: Of the model; its chat template is used where it has one.
        max_tokens: Maximum prompt length, in tokens.
        task: Whether the model answers the question from one passage, judges it (`qwen3_reranker`: in that prompt), or
            answers from several (`packed`).
        end_ids: End tokens of the model.
        cached_texts: As of `ContextEncoder`.

    Raises:
        UserError: If the chat template refuses a user's message, or `max_tokens` leaves no room.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        max_tokens: int,
        task: Task,
        end_ids: Sequence[int],
        cached_texts: int = 50_000,
    ) -> None:
        self.tokenizer, self.max_tokens, self.cached_texts = tokenizer, max_tokens, cached_texts
        self.cue, self.asked_first = _CUES.get(task, ""), task == QWEN3_RERANKER
        self.chat = self.asked_first or bool(tokenizer.chat_template)
        self.format: PromptFormat = (
            QWEN3_RERANKER if self.asked_first else f"{'chat' if self.chat else 'plain'}_{task}"  # type: ignore[assignment]
        )
        self.packed = task == "packed"
        self.specials = marker_texts(tokenizer)
        self._special_starts = {special[0] for special in self.specials}
        self._ids = {}
        breaks = [] if self.chat else sorted(line_break_ids(tokenizer), key=lambda id_: tokenizer.decode([id_]) != "\n")
        self.end_ids = [*breaks, *end_ids]
        self.pad_id = end_ids[0] if tokenizer.pad_token_id is None else tokenizer.pad_token_id
        head, self._middle, self._tail, last = _QWEN3_PARTS if self.asked_first else (*self._parts(), "")
        ids = tokenizer(head, add_special_tokens=not self.chat, verbose=False)["input_ids"]
        self._head = ids[:-1] if ids and ids[-1] in end_ids else ids  # of a tokenizer that ends every text
        self._last = tokenizer(last, add_special_tokens=False)["input_ids"] if last else []
        self._fixed = len(self._head) + token_count(tokenizer, self._middle + self._tail) + len(self._last)
        if self._most < 1:
            raise UserError(f"max_tokens {max_tokens} leaves no room for a question in {self.format}: raise it.")

    @property
    def texts(self) -> tuple[str, str, str]:
        """What stands before a passage, between it and the question, and behind the question, with special tokens."""
        head = self._parts()[0] if self.chat else self.tokenizer.decode(self._head)
        return head, self._middle, self._tail

    def replies(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of what the model says after a prompt, without the end."""
        if not texts:
            return []
        encode = partial(self.tokenizer, add_special_tokens=False, verbose=False)
        if self.chat:
            return list(encode(list(texts))["input_ids"])
        # with the cue before it: a tokenizer may begin a text with a mark of its own
        cue = encode(self.cue)["input_ids"]
        rows = encode([f"{self.cue} {text}".rstrip() for text in texts])["input_ids"]
        return [row[len(cue) :] for row in rows]

    def labels(self, prefix: str, max_tokens: int | None, answers: Sequence[str]) -> Tensor:
        """Token ids (P, A) of answers, end token included, padded with IGNORE; truncated to `max_tokens` if given."""
        kept = None if max_tokens is None else max_tokens - 1
        rows = [
            [*ids[:kept], self.end_ids[0]] for ids in self.replies([self._clean(prefix + text) for text in answers])
        ]
        labels_PA = torch.full((len(rows), max(map(len, rows), default=0)), IGNORE)
        for row, ids in enumerate(rows):
            labels_PA[row, : len(ids)] = torch.tensor(ids)
        return labels_PA

    def pad(self, sequences: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """Left-padded token ids and attention mask, both (P, T) int64: all prompts of a batch end together."""
        return pad(sequences, self.pad_id, self.max_tokens, left=True)

    def _parts(self) -> tuple[str, str, str]:
        """What stands before the passages, between them and the question, and behind the question."""
        message = f"{_PASSAGE}\nQuestion: {_QUESTION}\n{self.cue}"
        prompt = chat_prompt(self.tokenizer, message) if self.chat else message
        head, rest = prompt.split(_PASSAGE)
        middle, tail = rest.split(_QUESTION)
        return head, middle, tail

    def _tokenize_single(self, rows: Sequence[tuple[str, Sequence[Passage]]]) -> list[list[int]]:
        return self._tokenize_packed([(question, (passage,)) for question, (passage,) in rows])

    def _tokenize_packed(self, rows: Sequence[tuple[str, Sequence[Passage]]]) -> list[list[int]]:
        if not rows:
            return []
        read = self._questions(rows)
        lines = ["\n" * (place > 0) + self._body(each) for _, passages in rows for place, each in enumerate(passages)]
        encode = partial(self.tokenizer, add_special_tokens=False, verbose=False)
        lines_ids = iter(encode(lines, truncation=True, max_length=self.max_tokens)["input_ids"] if lines else [])
        ends = dict(
            zip(read, encode([self._middle + text + self._tail for text in read.values()])["input_ids"], strict=True)
        )
        prompts = []
        for question, passages in rows:
            end, ids = ends[question], [*islice(lines_ids, len(passages))]
            shares = self._shares(ids, self.max_tokens - len(self._head) - len(end) - len(self._last))
            kept = [token for line, share in zip(ids, shares, strict=True) for token in line[:share]]
            prompts.append([*self._head, *(end + kept if self.asked_first else kept + end), *self._last])
        return prompts

    def _body(self, passage: Passage) -> str:
        title, text = self._clean(passage.title), self._clean(passage.text)
        return " " * self.asked_first + (f"{title}: {text}" if title else text)

    @cached_property
    def _most(self) -> int:
        """Tokens that are read of a question that is cut."""
        return (self.max_tokens - self._fixed) // 2

    def _fits(self, question: str) -> bool:
        """Whether a cleaned question leaves room for a passage."""
        return self._fixed + token_count(self.tokenizer, question) + MIN_PASSAGE_TOKENS <= self.max_tokens
