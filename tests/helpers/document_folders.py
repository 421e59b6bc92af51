"""Small folders of documents, and `infer.py index --documents` over them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.helpers.commands import Ended, command, done

TABLE = "| model | supply voltage |\n| --- | --- |\n| {0} 1 | 24 V |\n| {0} 2 | 48 V |"
ASK = ("ask", "--system", "harness.systems.retrieve_read.RetrieveRead",
       "--system.retriever", "harness.retrievers.bm25.Bm25Retriever", "--system.retriever.index")  # fmt: skip


def manual(product: str, chapters: int = 2) -> str:
    """A manual in Markdown: a title, some chapters, a table."""
    parts = [f"# Manual of the {product}", f"The {product} is a pump."]
    parts += [f"## Chapter {number}\n\nStep {number} with the {product}." for number in range(1, chapters + 1)]
    return "\n\n".join([*parts, f"## Ratings of the {product}", "Ratings follow.", TABLE.format(product)]) + "\n"


def write_files(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files below a folder; returns the folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def index(folder: Path, *more: str, out: str = "indexes/lexical", kind: str = "bm25", fails: bool = False) -> Ended:
    """Index `folder`/manuals as `folder`/indexes/lexical, which must succeed unless it `fails`."""
    run = command if fails else done
    return run(folder, "infer.py", "index", "--documents", "manuals", "--kind", kind, "--out", out, *more)


def report(folder: Path, document_cache: str = "indexes/manuals.documents") -> dict[str, dict[str, Any]]:
    """The lines of the report, by file."""
    lines = (folder / document_cache / "report.jsonl").read_text(encoding="utf-8").splitlines()
    return {row["file"]: row for row in map(json.loads, lines)}


def passages(folder: Path, out: str = "indexes/lexical") -> list[dict[str, Any]]:
    """The passages of an index."""
    return [json.loads(line) for line in (folder / out / "passages.jsonl").read_text(encoding="utf-8").splitlines()]
