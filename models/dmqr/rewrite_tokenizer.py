"""Input formats of generative rewriters.

Tokenizes a question with its dialogue history and the strategy to rewrite it by.

    strategy: TITLE history: TURN | TURN question: QUESTION         the history only where there is one

    seq2seq   that text as the input of an encoder-decoder
    chat      that text as the user's message in the chat template of a causal LM; the reply is the rewrite
    plain     that text and a line break, for a causal LM without chat template

A history that is too long loses words from its beginning: the oldest.  A question that is too long by itself keeps its
first tokens, as many as fit.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from transformers import PreTrainedTokenizerBase

from common.errors import UserError
from common.records import clean, nfkc
from models.long_questions import HISTORY_NOTE, first_tokens, longest_fitting, question_note, surely_fits, token_count
from models.text_formats import chat_prompt, marker_texts, neutralize

RewriteFormat = Literal["seq2seq", "chat", "plain"]
VERSION = "strategy, history, question; nfkc, single blanks; v1"
FORMATS: dict[str, RewriteFormat] = {f"{name}; {VERSION}": name for name in get_args(RewriteFormat)}
_BETWEEN_TURNS = " | "


@dataclass(frozen=True, slots=True)
class RewriteTask:
    """A question to rewrite by one strategy."""

    question: str
    title: str  # of the strategy
    history: tuple[str, ...] = ()  # earlier turns, oldest first


class RewriteEncoder:
    """Tokenizes tasks and rewrites.

    Args:
        tokenizer: Of the model.
        format: One of the formats above; seq2seq needs a tokenizer that appends its end token.
        max_tokens: Maximum input length, in tokens, special tokens included.
        end_ids: End tokens of the model; a rewrite to learn from ends with the first.

    Raises:
        UserError: If the format does not fit the tokenizer.
    """

    def __init__(
        self, tokenizer: PreTrainedTokenizerBase, format: RewriteFormat, max_tokens: int, end_ids: Sequence[int]
    ) -> None:
        self.tokenizer, self.format, self.max_tokens, self.end_ids = tokenizer, format, max_tokens, list(end_ids)
        self.marks = marker_texts(tokenizer)
        if format == "seq2seq" and tokenizer("")["input_ids"][-1:] != self.end_ids[:1]:
            raise UserError(
                f"the tokenizer {tokenizer.name_or_path} does not end a text with its end token: add the "
                "post-processor of its model family."
            )
        if format == "chat":
            chat_prompt(tokenizer, "Hi")  # raises now if the template refuses it

    @property
    def text_format(self) -> str:
        """Version string of the format: stored in the serving folder and compared at loading."""
        return f"{self.format}; {VERSION}"

    def __call__(self, tasks: Sequence[RewriteTask]) -> list[list[int]]:
        """Token ids of every task's input, at most `max_tokens`.

        Raises:
            UserError: If `max_tokens` leaves no room for a question.
        """
        inputs = []
        for task, ids in zip(tasks, self._ids([self.text(task) for task in tasks]), strict=True):
            inputs.append(ids if len(ids) <= self.max_tokens else self._shortened(task)[0])
        return inputs

    def cut_note(self, task: RewriteTask) -> str:
        """The part of a task that is read if it is too long; else empty."""
        text = self.text(task)
        if self.format != "chat" and surely_fits(text, self.max_tokens - 3):  # besides special tokens
            return ""
        (ids,) = self._ids([text])
        return "" if len(ids) <= self.max_tokens else self._shortened(task)[1]

    def cuts_question(self, task: RewriteTask) -> bool:
        """Whether a question is too long by itself, without its history."""
        return self.cut_note(replace(task, history=())) != ""

    def text(self, task: RewriteTask, dropped_words: int = 0) -> str:
        """The text of a task, without the first words of its history."""
        words = self._history(task)[dropped_words:]
        history = f" history: {' '.join(words)}" if words else ""
        return f"strategy: {self._clean(task.title)}{history} question: {self._clean(task.question)}"

    def targets(self, rewrites: Sequence[str]) -> list[list[int]]:
        """Token ids of rewrites to learn from, end token included."""
        if not rewrites:
            return []
        texts = [self._clean(rewrite) for rewrite in rewrites]
        if self.format == "seq2seq":
            return list(self.tokenizer(texts, verbose=False)["input_ids"])
        return [
            [*ids, self.end_ids[0]]
            for ids in self.tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"]
        ]

    def decoded(self, ids: Sequence[int]) -> str:
        """The text of generated tokens."""
        return clean(self.tokenizer.decode(ids, skip_special_tokens=True))

    def _history(self, task: RewriteTask) -> list[str]:
        return _BETWEEN_TURNS.join(map(self._clean, task.history)).split()

    def _shortened(self, task: RewriteTask) -> tuple[list[int], str]:
        """The input with as many of the newest words of its history, else of the question's first tokens, as fit.

        And the note on it.
        """
        words = len(self._history(task))
        if found := self._longest(words - 1, lambda kept: self.text(task, words - kept)):
            return found[0], HISTORY_NOTE
        question = nfkc(task.question)
        tokens = token_count(self.tokenizer, question)

        def text(kept: int) -> str:
            first = first_tokens(self.tokenizer, question, kept)
            return self.text(replace(task, question=first, history=()))

        found = self._longest(tokens, text)
        if not found or not found[1]:
            raise UserError(
                f"max_tokens {self.max_tokens} leaves no room for a question behind {self.text(task)[:60]!r}: raise it."
            )
        return found[0], question_note(found[1], tokens)

    def _longest(self, most: int, text: Callable[[int], str]) -> tuple[list[int], int] | None:
        """The longest input that fits, of a text with 0 to `most` parts, and their number."""
        kept = longest_fitting(0, most, lambda count: len(self._ids([text(count)])[0]) <= self.max_tokens)
        return None if kept is None else (self._ids([text(kept)])[0], kept)

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        if not texts:
            return []
        if self.format == "seq2seq":
            return list(self.tokenizer(list(texts), verbose=False)["input_ids"])
        if self.format == "chat":
            prompts = [chat_prompt(self.tokenizer, text) for text in texts]
            return list(self.tokenizer(prompts, add_special_tokens=False, verbose=False)["input_ids"])
        rows = self.tokenizer([f"{text}\n" for text in texts], verbose=False)["input_ids"]
        return [row[:-1] if row[-1] in self.end_ids else row for row in rows]  # of a tokenizer that ends every text

    def _clean(self, text: str) -> str:
        return neutralize(nfkc(text), self.marks)


def format_of(tokenizer: PreTrainedTokenizerBase, encoder_decoder: bool) -> RewriteFormat:
    """The format of a model that is trained as a rewriter: a chat template is used where there is one."""
    if encoder_decoder:
        return "seq2seq"
    return "chat" if tokenizer.chat_template else "plain"
