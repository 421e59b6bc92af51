"""What is read of each kind of file is as its version says: another reading needs another version.

`reading_versions.json` has what each sample was read as, as a digest behind the version of its kind.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pyarrow
from pyarrow import parquet

from datamodules.formats.open_data import VERSIONS
from datamodules.formats.reading import read_questions
from documents.manuals.composing import compose
from documents.manuals.family import FAMILIES
from documents.manuals.products import draw_products
from documents.manuals.typesetting import typeset
from documents.markdown_writing import to_markdown
from documents.reading.any_file import read_document
from documents.reading.file_types import READING_VERSIONS, named_type

KEPT = Path(__file__).with_name("reading_versions.json")
DOCUMENTS = Path(__file__).parent / "documents" / "reading"
CELLS = [
    {"id": 3.0, "question": "Which river?", "answers": ["P(A|B)", "nan"], "history": ["None"]},
    {"id": "a|1", "question": "null", "answers": [1937.0], "history": None},
]
LINES = (
    "id,question,answers,history\n3.0,Which river?,['Aare' 'the Aare'],nan\nid,question,answers,history\n"
    '4,null,"a, b|c",None\n5,Which?,1937.0,<NA>\n'
)
COLUMNS = {"id": ["a|1"], "question": ["null"], "answers": ["P(A|B)"]}
TEXT = b"Pump\n====\n\n<host> a<b  and\n  * c\t2 = d\n\nAn end."


def read(data: bytes, name: str) -> str:
    return re.sub(r"images/\w+", "image", to_markdown(read_document(data, name)))


def samples(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Kind, name and what is read of each; a Word document's is kept beside it, as its own test says."""
    for file in sorted((DOCUMENTS / "pages").iterdir()):
        if kind := named_type(file.name):
            yield kind, file.name, read(file.read_bytes(), file.name)
    for file in sorted((DOCUMENTS / "word").glob("*.read")):
        yield "docx", file.stem, file.read_text("utf-8")
    families = [family for family in FAMILIES if family.style in ("ruled", "columns")]
    for product in draw_products(families, Random(1))[::8]:
        yield "pdf", product.family.style, read(typeset(compose(product)).pdf, "a.pdf")
    yield "text", "own", read(TEXT, "a.txt")
    (folder / "a.csv").write_text(LINES)
    (folder / "a.jsonl").write_text("\n".join(map(json.dumps, CELLS)))
    parquet.write_table(pyarrow.Table.from_pydict(COLUMNS), folder / "a.parquet")
    for kind, name in (("table", "a.csv"), ("JSON", "a.jsonl"), ("Parquet", "a.parquet")):
        questions = read_questions("auto", str(folder / name))
        yield kind, name, repr([(one.id, one.text, one.answers, one.history) for one in questions])


def test_what_is_read_is_that_of_its_version(tmp_path: Path) -> None:
    versions = {**VERSIONS, **READING_VERSIONS}
    digests = {
        f"{kind} {name}": f"{versions[kind]} {hashlib.sha256(text.encode()).hexdigest()[:12]}"
        for kind, name, text in samples(tmp_path)
    }
    assert {key.split()[0] for key in digests} == {*versions}
    assert digests == json.loads(KEPT.read_text()), (
        "Of a sample another text is read: raise the version of its kind (READING_VERSIONS, open_data.VERSIONS), say "
        f"in CHANGELOG.md what is read otherwise, and keep in {KEPT.name}: {json.dumps(digests, indent=1)}"
    )
