"""Documents that were read without a model, converted by a language model and kept like those."""

from typing import Any

from common.progress import say
from documents.fidelity import fidelity
from documents.folder.cache import CachedDocument, ConversionCache
from documents.folder.options import Model
from documents.markdown_writing import to_markdown
from documents.records import Document
from documents.segments.chunking import plain_text
from documents.stored_document import load_about, load_document, save_document
from harness.indexing.documents.formatter import LlmFormatter
from harness.interfaces import LanguageModel
from harness.runtime.answer_text import costs_text
from harness.runtime.provenance import configuration

_AT_ONCE = 16  # documents whose windows are asked for together
_NO_REPLY = "no reply ("  # in `left_out`, of a window whose call failed: it is asked for again the next time


class LlmPass:
    """Converts documents.

    Args:
        llm: The language model.
    """

    name: Model = "llm"

    def __init__(self, llm: LanguageModel) -> None:
        self._llm = llm
        self.recipe: dict[str, Any] = {
            "model": configuration(llm) or llm.name,
            "prompt": LlmFormatter(llm).prompt.hash,
        }

    def convert(self, cache: ConversionCache, entries: list[tuple[CachedDocument, CachedDocument]]) -> None:
        """Convert the documents that have not been converted yet.

        Args:
            cache: Keeps them: a stopped run goes on after the last documents that it has converted.
            entries: Of each document what was read, and where its conversion is kept.

        Raises:
            UnavailableError: If the model answers no request.
            UserError: If no chat can succeed.
        """
        formatter = LlmFormatter(self._llm)
        missing = [pair for pair in entries if not _is_done(*pair)]
        for start in range(0, len(missing), _AT_ONCE):
            batch = missing[start : start + _AT_ONCE]
            documents = [load_document(read.folder) for read, _ in batch]
            for (read, converted), before, after in zip(batch, documents, formatter.convert(documents), strict=True):
                self._save(cache, read, converted, before, after)
        if missing:
            say(f"{self._llm.name}: {len(missing):,} documents converted, {costs_text(formatter.costs)}.")

    @staticmethod
    def _save(
        cache: ConversionCache, read: CachedDocument, converted: CachedDocument, before: Document, after: Document
    ) -> None:
        lost, invented = fidelity(plain_text(before)[0], plain_text(after)[0])
        about = load_about(read.folder) | {"reading": cache.reading, "lost": lost, "invented": invented}
        for outdated in converted.folder.glob("segments-*"):
            outdated.unlink()
        save_document(converted.folder, after, to_markdown(after), about)


def _is_done(read: CachedDocument, converted: CachedDocument) -> bool:
    try:
        about = load_about(converted.folder)
        return about["linked"] == load_about(read.folder)["linked"] and not any(
            _NO_REPLY in why for why in about["left_out"]
        )
    except (OSError, ValueError, KeyError):
        return False
