"""The report of reading a folder of documents: the result of each file, and what was left out and why."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common.files import write_text
from common.progress import say
from common.records import clean
from common.shown_text import markdown
from documents.folder.cache import REPORT, REPORT_LINES
from documents.reading.file_types import FileType

_SHOWN = 5  # documents that could not be read, on the console
SHARES = ("lost", "invented", "torn")  # see `documents.fidelity.shares`


@dataclass(slots=True)
class DocumentRow:
    """The result of one file."""

    name: str
    path: Path
    why: str = ""  # why it gave nothing
    failed: bool = False  # whether it is a document that should have given something
    sha256: str = ""
    kind: FileType = "text"  # by its beginning
    about: dict[str, Any] = field(default_factory=dict)  # of the document, see `documents.folder.worker`
    copy_of: str = ""  # the name of a document with the same content, which is indexed for both
    copies: list[str] = field(default_factory=list)  # names of others with the same content
    read_now: bool = False  # not taken from an earlier run

    def fail(self, why: str, is_document: bool = True) -> None:
        """Record why the file could not be read."""
        self.why, self.failed = why, is_document

    @property
    def segments(self) -> dict[str, int]:
        """Number of segments of each kind."""
        return {} if self.why else self.about.get("segments", {})

    def record(self) -> dict[str, Any]:
        """As a line of the report."""
        status = "failed" if self.failed else "left out" if self.why else "copy" if self.copy_of else "indexed"
        known = {key: value for key, value in self.about.items() if key not in ("blocks", "reading", "name")}
        optional = {"why": self.why, "copy_of": self.copy_of, "copies": self.copies, "sha256": self.sha256, **known}
        return {"file": self.name, "status": status} | {
            key: value for key, value in optional.items() if value not in ("", [], None)
        }


def write_report(folder: Path, documents: Path, rows: Sequence[DocumentRow]) -> None:
    """Write the report as a page and as JSON Lines, a line for each file.

    Raises:
        ArtifactError: If writing to disk fails.
    """
    write_text(folder / REPORT_LINES, "".join(json.dumps(row.record(), ensure_ascii=False) + "\n" for row in rows))
    write_text(folder / REPORT, "\n".join(_page(documents, rows)) + "\n")


def say_summary(folder: Path, documents: Path, rows: Sequence[DocumentRow]) -> None:
    """Print what was read, what was not, and where the report is."""
    indexed, failed = _indexed(rows), [row for row in rows if row.failed]
    now = sum(row.read_now for row in indexed)
    earlier = f", {len(indexed) - now:,} unchanged" if now < len(indexed) else ""
    say(f"{documents}: {len(indexed):,} documents ({now:,} read{earlier}), {_in_words(_segments(indexed))}.")
    for row in failed[:_SHOWN]:
        say(f"not read: {clean(row.name)}: {clean(row.why)}")
    further = f"not read: {len(failed) - _SHOWN:,} more; " if len(failed) > _SHOWN else ""
    others = Counter(row.why for row in rows if row.why and not row.failed)
    others["the same content as another"] = sum(bool(row.copy_of) for row in rows)
    left_out = ", ".join(f"{count:,} {why}" for why, count in others.most_common() if count)
    say(f"{further}{f'left out: {left_out}; ' if left_out else ''}report: {folder / REPORT}")


def _indexed(rows: Sequence[DocumentRow]) -> list[DocumentRow]:
    return [row for row in rows if not row.why and not row.copy_of]


def _segments(rows: Sequence[DocumentRow]) -> Counter[str]:
    return sum((Counter(row.segments) for row in rows), Counter())


def _in_words(segments: Counter[str]) -> str:
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(segments.items(), key=lambda item: -item[1]))
    return f"{segments.total():,} segments" + (f" ({kinds})" if kinds else "")


def _page(documents: Path, rows: Sequence[DocumentRow]) -> list[str]:
    indexed = _indexed(rows)
    columns = ("document", "format", "pages", "headings", "tables", "images", "segments", "seconds", *SHARES)
    lines = [f"# Documents of {markdown(str(documents))}", ""]
    lines += [f"{len(indexed):,} documents, {_in_words(_segments(indexed))}.", ""]
    lines += [f"| {' | '.join(columns)} |", f"| --- |{' ---: |' * (len(columns) - 1)}"]
    for row in indexed:
        about, counts = row.about, row.about.get("counts", {})
        numbers: list[object] = [about.get("format"), about.get("pages"), *(counts.get(name) for name in columns[3:6])]
        numbers += [sum(row.segments.values()), about.get("seconds")]
        shares = (about.get(name) for name in columns[8:])
        numbers += [None if share is None else f"{share:.1%}" for share in shares]
        shown = ("" if number is None else str(number) for number in numbers)
        lines.append(f"| {markdown(row.name)} | {' | '.join(shown)} |")
    for title, chosen in (
        ("Not read", [(row.name, row.why) for row in rows if row.failed]),
        (
            "Left out of documents, moved in them, or not read",
            [(row.name, part) for row in indexed for part in row.about.get("left_out", ())],
        ),
        ("The same content as another document", [(row.name, row.copy_of) for row in rows if row.copy_of]),
        ("Files left out", [(row.name, row.why) for row in rows if row.why and not row.failed]),
    ):
        if chosen:
            lines += ["", f"## {title}", "", *(f"- {markdown(name)}: {markdown(why)}" for name, why in chosen)]
    return lines
