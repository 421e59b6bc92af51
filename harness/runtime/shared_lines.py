"""Work whose result is one file of lines: computed batch by batch in bounded memory, resumed, and shared by ranks.

<out>.partial/rank-3.jsonl     journal of rank 3: [batch, its lines, the reasons of its items that failed, by name]

Rank r of W computes every W-th of the missing batches; the first rank joins the journals.

The file has the same bytes whatever was interrupted, and however many ranks shared the work, if lines depend on their
batch alone.
"""

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from common.errors import ArtifactError, SomeFailedError
from common.files import seal, seal_of, write_atomically
from common.outputs import Output, OutputFolder, partial_folder
from common.progress import Progress, say
from harness.runtime.distributed import ProcessGroup, join_process_group, launched
from harness.runtime.failures import FailedQuestions, Failure, each_apart, telling_what_is_kept
from harness.runtime.journal import Journal
from harness.runtime.provenance import library_versions

_FORMAT = 4  # of the journals' lines; increase it when the meaning of a line changes
_EARLIER = "work.json"  # of release 0.2, with one file a batch
PARTIAL = OutputFolder(
    "an interrupted command",
    "unfinished lines",
    lambda _: ["rank-*.jsonl", _EARLIER, "lines-*.jsonl", "lines-*.sha256", "failed-*.json"],
)
Item = TypeVar("Item")
Saved = dict[int, tuple[Journal, int, dict[str, str]]]  # by batch: journal, where its line begins, failed items


def check_unless_shared(output: Output, out: Path) -> None:
    """Refuse an output before models are loaded; one of several ranks locks it later, for all."""
    if launched().size == 1:
        output.check_writable(out)


def write_shared(
    output: Output,
    out: Path,
    survey: Callable[[], tuple[int, Mapping[str, object] | None]],
    items: Callable[[], Iterator[Item]],
    at_once: int,
    lines: Callable[[Sequence[Item]], Iterable[str]],
    what: str,
    name: Callable[[Item], str],
    seen: Callable[[str], object] | None = None,
    joined: ProcessGroup | None = None,
) -> FailedQuestions:
    """Compute the lines of all items and write the file; each rank computes its share.

    An item that fails has no line, and the others are not affected. Returns on the first rank the items that failed.

    Args:
        output: The command's kind of file, by which its own earlier file is known.
        out: The file.
        survey: Number of items, and what their lines depend on, JSON types only: of another run only the lines of the
            same work are reused; None: no other run's are. Called by the first rank, before `items`.
        items: All items, in order; read lazily.
        at_once: Items of a batch: what is saved at once.
        lines: The lines of a batch, one per item, without line breaks.
        what: Description of the work, for the progress line.
        name: Of an item, for what is told of one that failed.
        seen: Called by the first rank for each line of the file.
        joined: The ranks that share the work, all of which see the folder of `out`; those that were launched when None.

    Raises:
        UserError: If another process is writing the file, or the output or its partial folder is something else.
        ArtifactError: If writing to disk fails, or the ranks do not share a folder.
        SomeFailedError: If every item has failed: then nothing is written.
    """
    processes = joined or join_process_group()
    first, partial = processes.rank == 0, partial_folder(out)
    with output.locked(out) if first else nullcontext():
        head, missing, batches, failed, lasts = dict[str, Any](), list[int](), 0, FailedQuestions(), True
        if first:
            failed.asked, depends_on = survey()
            batches = -(-failed.asked // at_once)
            head = {**(depends_on or {}), "at_once": at_once, "versions": library_versions(), "format": _FORMAT}
            PARTIAL.check(partial)
            saved = _saved(partial, head)
            if (partial / _EARLIER).exists():
                say(f"{partial}: saved by an earlier release. Starting over.")
            if not saved or depends_on is None:
                saved = {}
                shutil.rmtree(partial, ignore_errors=True)  # absent
            missing = [batch for batch in range(batches) if batch not in saved]
            if saved and missing:
                say(f"{partial}: {batches - len(missing)} of {batches} batches are there from an earlier run.")
            lasts = depends_on is not None
        head, missing, lasts = processes.broadcast((head, missing, lasts))
        mine = missing[processes.rank :: processes.size]
        stream = items() if mine else iter(())
        journal = Journal(partial / f"rank-{processes.rank}.jsonl", head)
        journal.read(lambda *_: None)
        with Progress(f"{what}, batches of {at_once}", len(mine)) as progress:
            for batch in range(mine[-1] + 1 if mine else 0):
                asked = list(islice(stream, at_once))
                if batch not in mine:  # another rank's, or finished
                    continue
                done = f"{mine.index(batch):,} new batches of {at_once} are kept in {partial}"
                with telling_what_is_kept(done if lasts else ""):
                    found = [*zip(asked, each_apart(lines, asked, batch == mine[0]), strict=True)]
                made = [each for _, each in found if not isinstance(each, Failure)]
                lost = {name(item): each.reason for item, each in found if isinstance(each, Failure)}
                journal.append([batch, made, lost])
                progress.update()
        processes.barrier()
        if first:
            saved = _saved(partial, head)
            if absent := [batch for batch in range(batches) if batch not in saved]:
                raise ArtifactError(
                    f"{partial}: batch {absent[0]} is missing although all processes finished. Choose an --out on a "
                    "file system that all nodes share, and run again: existing batches are reused."
                )
            for _, _, lost in saved.values():
                failed.reasons |= lost
            nothing = 0 < failed.asked == len(failed.reasons)
            if not nothing:
                seal_of(out).unlink(missing_ok=True)
                write_atomically(out, lambda temporary: _join(saved, temporary, seen))
                seal(out)
            shutil.rmtree(partial, ignore_errors=True)  # absent
            if nothing:
                raise SomeFailedError(f"{failed.failed}. Nothing is written.")
    return failed


def _saved(partial: Path, head: Mapping[str, object]) -> Saved:
    saved: Saved = {}
    for file in sorted(partial.glob("rank-*.jsonl")):
        journal = Journal(file, head)

        def place(_: int, line: Any, journal: Journal = journal) -> None:
            saved[line[0]] = journal, journal.end_bytes, line[2]

        journal.read(place)
    return saved


def _join(saved: Saved, target: Path, seen: Callable[[str], object] | None) -> None:
    with target.open("w", encoding="utf-8") as whole:
        for _, (journal, begin_bytes, _) in sorted(saved.items()):
            for line in journal.result_at(begin_bytes)[1]:
                if seen is not None:
                    seen(f"{line}\n")
                whole.write(f"{line}\n")
