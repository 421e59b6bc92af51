"""From a file's bytes to a document, and from a document to passages."""

from dataclasses import replace

from common.documents import Document
from common.records import Passage
from harness.documents.folder.options import Cutting, Reading
from harness.documents.normal_form import title_of
from harness.documents.reading.formatters import formatter_for
from harness.documents.reading.image_files import ImageLoader
from harness.documents.segments.augmentation import passages, segments
from harness.documents.segments.chunking import fixed_chunks


def read_document(data: bytes, name: str, reading: Reading, load_image: ImageLoader | None = None) -> Document:
    """A document from its file's bytes.

    Args:
        data: The file's bytes.
        name: Its name.
        reading: How it is read.
        load_image: Reads images that it links to.

    Raises:
        DataError: If the file is no document, broken or encrypted.
        UserError: If the package that reads it is missing.
    """
    return formatter_for(data, name, reading.engine, reading.outline, load_image).read(data, name)


def passages_of(document: Document, name: str, cutting: Cutting) -> list[Passage]:
    """The segments of a document as passages.

    Args:
        document: The document, which may have been read under an earlier name.
        name: The name that it has now.
        cutting: How it is cut into segments.
    """
    own_title = document.title != title_of(document.name)
    document = replace(document, name=name, title=document.title if own_title else title_of(name))
    if cutting.chunk_words is not None:
        return passages(fixed_chunks(document, cutting.chunk_words, cutting.chunk_overlap), cutting.cascade)
    return passages(segments(document, cutting.most_words, cutting.least_words), cutting.cascade)
