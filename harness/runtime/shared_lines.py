"""Work whose result is one file of lines: computed batch by batch in bounded memory, resumed, and shared by ranks.

<out>.partial/work.json              what the lines depend on; those of other work are not reused
<out>.partial/lines-000012.jsonl     the lines of batch 12; rank r of W writes every W-th of the missing ones.  They are
                                     complete when their SHA-256 stands beside them
<out>.partial/failed-000012.json     the reasons of the items of batch 12 that failed, by name; absent if none did

The file has the same bytes whatever was interrupted, and however many ranks shared the work, if lines depend on their
batch alone.
"""

import importlib.metadata
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import TypeVar

from common.errors import ArtifactError, SomeFailedError
from common.files import is_sealed, read_json, seal, seal_of, write_atomically, write_json, write_text
from common.outputs import Output, OutputFolder
from common.progress import Progress, say
from harness.runtime.distributed import ProcessGroup
from harness.runtime.failures import Apart, FailedQuestions, Failure
from harness.runtime.provenance import LIBRARIES, differences

_WORK = "work.json"
_FORMAT = 3  # of the lines' files; increase it when the meaning of a line changes
PARTIAL = OutputFolder(
    "an interrupted command", "unfinished lines", lambda _: [_WORK, "lines-*.jsonl", "lines-*.sha256", "failed-*.json"]
)
Item = TypeVar("Item")


def write_shared(
    output: Output,
    out: Path,
    processes: ProcessGroup,
    survey: Callable[[], tuple[int, Mapping[str, object] | None]],
    items: Callable[[], Iterator[Item]],
    at_once: int,
    lines: Callable[[Sequence[Item]], Iterable[str]],
    what: str,
    name: Callable[[Item], str],
    seen: Callable[[str], object] | None = None,
) -> FailedQuestions:
    """Compute the lines of all items and write the file; each rank computes its share.

    An item that fails has no line, and the others are not affected. Returns on the first rank the items that failed.

    Args:
        output: The command's kind of file, by which its own earlier file is known.
        out: The file.
        processes: The ranks that share the work; all see the folder of `out`.
        survey: Number of items, and what their lines depend on, JSON types only: of another run only the lines of the
            same work are reused; None: no other run's are. Called by the first rank, before `items`.
        items: All items, in order; read lazily.
        at_once: Items of a batch: what is saved at once.
        lines: The lines of a batch, one per item, without line breaks.
        what: Description of the work, for the progress line.
        name: Of an item, for what is told of one that failed.
        seen: Called by the first rank for each line of the file.

    Raises:
        UserError: If another process is writing the file, or the output or its partial folder is something else.
        ArtifactError: If writing to disk fails, or the ranks do not share a folder.
        SomeFailedError: If every item has failed: then nothing is written.
    """
    first, partial = processes.rank == 0, out.with_name(f"{out.name}.partial")
    with output.locked(out) if first else nullcontext():
        batches, missing, failed = 0, list[int](), FailedQuestions()
        if first:
            count, depends_on = survey()
            failed.asked = count
            batches = -(-count // at_once)
            _start_or_resume(partial, depends_on, at_once)
            missing = [batch for batch in range(batches) if not _is_there(partial, batch)]
            if missing and len(missing) < batches:
                say(f"{partial}: {batches - len(missing)} of {batches} batches are there from an earlier run.")
        batches, missing = processes.broadcast((batches, missing))
        mine = missing[processes.rank :: processes.size]
        stream, read = items() if mine else iter(()), 0
        apart = Apart[Item, str](lambda batch: list(lines(batch)))
        with Progress(f"{what}, batches of {at_once}", len(mine)) as progress:
            for batch in mine:
                for _ in islice(stream, (batch - read) * at_once):  # other ranks' and finished batches
                    pass
                asked = list(islice(stream, at_once))
                found = apart(asked)
                read = batch + 1
                lost = {
                    name(item): each.reason
                    for item, each in zip(asked, found, strict=True)
                    if isinstance(each, Failure)
                }
                if lost:
                    write_json(partial / f"failed-{batch:06}.json", lost)
                write_text(
                    _path(partial, batch), "".join(line + "\n" for line in found if not isinstance(line, Failure))
                )
                seal(_path(partial, batch))
                progress.advance()
        processes.barrier()
        if first:
            for file in sorted(partial.glob("failed-*.json")):
                failed.reasons |= read_json(file, f"Remove {partial}.")
            nothing = 0 < failed.asked == len(failed.reasons)
            if not nothing:
                seal_of(out).unlink(missing_ok=True)
                write_atomically(out, lambda temporary: _join(partial, temporary, batches, seen))
                seal(out)
            shutil.rmtree(partial)
            if nothing:
                raise SomeFailedError(f"{failed.failed}. Nothing is written.")
    return failed


def _start_or_resume(partial: Path, depends_on: Mapping[str, object] | None, at_once: int) -> None:
    """Keep the batches of the same work; remove those of other work."""
    PARTIAL.check(partial)
    versions = {name: importlib.metadata.version(name) for name in LIBRARIES}
    work = json.loads(json.dumps({**(depends_on or {}), "at_once": at_once, "versions": versions, "format": _FORMAT}))
    record = partial / _WORK
    recorded = read_json(record, f"Remove {partial}.") if record.is_file() else None
    if recorded == work and depends_on is not None:
        return
    if recorded is not None and recorded != work:
        say(f"{partial}: saved by a run that differs in: {differences(recorded, work)}. Starting over.")
    if partial.exists():
        shutil.rmtree(partial)
    write_json(record, work)


def _is_there(partial: Path, batch: int) -> bool:
    """Whether the lines of a batch are saved; damaged ones are not."""
    lines = _path(partial, batch)
    if seal_of(lines).is_file() and not is_sealed(lines):
        say(f"{lines} is damaged: computed again.")
    return is_sealed(lines)


def _path(partial: Path, batch: int) -> Path:
    return partial / f"lines-{batch:06}.jsonl"


def _join(partial: Path, target: Path, batches: int, seen: Callable[[str], object] | None) -> None:
    with target.open("w", encoding="utf-8") as whole:
        for batch in range(batches):
            try:
                part = _path(partial, batch).open(encoding="utf-8")
            except FileNotFoundError as error:
                raise ArtifactError(
                    f"{_path(partial, batch)} is missing although all processes finished. Choose an --out on a file "
                    "system that all nodes share, and run again: existing batches are reused."
                ) from error
            with part:
                for line in part:
                    if seen is not None:
                        seen(line)
                    whole.write(line)
