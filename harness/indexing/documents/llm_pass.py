"""Documents that were read without a model, converted by a language model."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from common.progress import say
from documents.folder.options import DocumentPass, code_version
from documents.records import Document
from harness.indexing.documents.formatter import LlmFormatter
from harness.interfaces import LanguageModel
from harness.runtime.answer_text import costs_text
from harness.runtime.provenance import configuration

_AT_ONCE = 16  # documents whose windows are asked for together


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
