"""Markdown formatting by a language model (HiQA, Algorithm 1).

A sliding window over the text that a formatter without a model has read.

Each window is converted with the previous one and its conversion in view. Garbled windows keep the reading without a
model.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path

from common.chat import Chat, Message, Reply, reply_costs
from common.errors import UnavailableError
from common.progress import Progress, say
from common.ranges import NonNegativeInt, PositiveInt
from documents.folder.options import NO_REPLY, DocumentPass, code_version
from documents.normal_form import normalized
from documents.records import Block, Document
from documents.segments.splitting import word_count
from harness.indexing.documents.output import blocks_markdown, converted
from harness.indexing.documents.windows import Window, windows
from harness.interfaces import LanguageModel
from harness.llm.prompts import Prompt
from harness.runtime.answer_text import costs_text
from harness.runtime.provenance import configuration

_AT_ONCE = 16  # documents whose windows are asked for together
_MAX_GARBLED = 0.5  # of a document's windows: with more it keeps its first reading, as levels would not fit together
_TOKENS_PER_WORD, _SPARE_TOKENS = 3, 256  # of a reply: tables and numbers take more tokens than prose


class LlmFormatter:
    """Converts documents that were read without a model.

    Args:
        llm: The language model.
        window_words: W, the words of a window; the paper's released code uses 3,000 characters.
        padding_words: K, the words shown before and after it; 300 characters there.
    """

    def __init__(self, llm: LanguageModel, window_words: PositiveInt = 500, padding_words: NonNegativeInt = 50) -> None:
        self.llm, self.window_words, self.padding_words = llm, window_words, padding_words
        self._replies: list[Reply] = []  # of all calls of this object

    @cached_property
    def prompt(self) -> Prompt:
        """Shows a window to the model."""
        return Prompt.load("format_document")

    @property
    def costs(self) -> dict[str, float]:
        """The costs of all calls so far."""
        return reply_costs(self._replies)

    def convert(self, documents: Sequence[Document]) -> list[Document]:
        """The documents with the structure that the model gives them, in order.

        A window needs the previous one's conversion, so that the windows of all documents with the same number are
        asked for together.

        Raises:
            UnavailableError: If the model answers no request.
            UserError: If no chat can succeed (from the model).
        """
        documents = [normalized(document) for document in documents]
        works = [_Work(windows(document, self.window_words, self.padding_words)) for document in documents]
        count = sum(len(work.windows) for work in works)
        asked: list[Reply] = []
        with Progress("formatting, windows", count) as progress:
            for step in range(max((len(work.windows) for work in works), default=0)):
                open_works = [work for work in works if step < len(work.windows)]
                replies = self.llm.reply([self._chat(work, step) for work in open_works])
                asked += [reply for reply in replies if not reply.cached]
                for work, reply in zip(open_works, replies, strict=True):
                    work.take(reply)
                progress.update(len(open_works))
        self._replies += asked
        if asked and all(reply.error for reply in asked):
            raise UnavailableError(f"{self.llm.name} answered none of {len(asked):,} requests: {asked[-1].error}.")
        return [self._finished(document, work) for document, work in zip(documents, works, strict=True)]

    def _chat(self, work: "_Work", step: int) -> Chat:
        """The request for a window, with the previous window and its conversion as the turn before."""
        window = work.windows[step]
        *system, user = self._messages(window)
        messages: tuple[Message, ...] = (*system, user)
        if step:
            previous = self._messages(work.windows[step - 1])[-1]
            messages = (*system, previous, Message("assistant", blocks_markdown(work.blocks[step - 1])), user)
        tokens = min(word_count(window.text) * _TOKENS_PER_WORD + _SPARE_TOKENS, self.prompt.max_tokens)
        return Chat(messages, tokens)

    def _messages(self, window: Window) -> tuple[Message, ...]:
        return self.prompt.messages(before=window.before, window=window.text, after=window.after)

    def _finished(self, document: Document, work: "_Work") -> Document:
        """The document of its windows, or as it was read without the model."""
        count, failed = len(work.windows), sum(work.failures.values())
        garbled = failed > _MAX_GARBLED * count
        if failed:
            which = "all" if garbled else f"{failed} of {count}"
            reasons = ", ".join(f"{times} x {reason}" for reason, times in work.failures.most_common())
            note = f"{which} windows as read without {self.llm.name}: {reasons}"
            document = replace(document, left_out=(*document.left_out, note))
        if garbled:
            return document
        blocks = tuple(block for of_window in work.blocks for block in of_window)
        return normalized(replace(document, blocks=blocks))


@dataclass
class _Work:
    """A document on its way through the model."""

    windows: Sequence[Window]
    blocks: list[list[Block]] = field(default_factory=list)  # of each window so far
    failures: Counter[str] = field(default_factory=Counter)

    def take(self, reply: Reply) -> None:
        """The conversion of the next window; the reading without the model where it cannot be used."""
        window = self.windows[len(self.blocks)]
        try:
            if reply.error:
                raise ValueError(f"{NO_REPLY}{reply.error})")
            self.blocks.append(converted(reply.text, window))
        except ValueError as error:
            self.failures[str(error)] += 1
            self.blocks.append(window.blocks)


def llm_pass(llm: LanguageModel) -> DocumentPass:
    """Converts documents with a language model.

    Its `convert` raises what `LlmFormatter.convert` raises.
    """

    def convert(documents: Iterator[Document]) -> Iterator[Document]:
        formatter, count = LlmFormatter(llm), 0
        while batch := list(islice(documents, _AT_ONCE)):
            yield from formatter.convert(batch)
            count += len(batch)
        say(f"{llm.name}: {count:,} documents converted, {costs_text(formatter.costs)}.")

    recipe = {"model": configuration(llm) or llm.name, "prompt": LlmFormatter(llm).prompt.hash}
    return DocumentPass("llm", recipe, code_version(Path(__file__).parent.glob("*.py")), convert)
