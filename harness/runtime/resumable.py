"""Resumable batches: the results of finished batches are saved in a journal and reused.

Each line of the journal holds {"batch": 0, "seconds": 12.3, "result": ...}, in order of the batches.
"""

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, TypeVar

from common.progress import Progress, say, track
from harness.runtime.journal import Journal
from harness.runtime.provenance import library_versions

_FORMAT = 4  # version of the lines; increase it when the meaning of a result changes
_Batch = TypeVar("_Batch", bound=Sequence)


class ResumableBatches:
    """Runs batched work and saves the result of each finished batch.

    Args:
        file: JSON Lines file for the results; None saves nothing.
        depends_on: Everything that determines the results, by name, JSON types only.
    """

    def __init__(self, file: Path | None = None, depends_on: Mapping[str, object] | None = None) -> None:
        self.file, self.depends_on = file, dict(depends_on or {})
        self.seconds = 0.0  # computing time of the reused results, in the earlier runs

    def run(
        self, batches: Sequence[_Batch], work: Callable[[_Batch], Any], what: str | None
    ) -> Generator[Any, None, None]:
        """The result of every batch, in order.

        Reused from an earlier run, or `work(batch)`, saved before it is yielded.

        Args:
            batches: All batches.
            work: Returns a result of JSON types; a reused one has lists for tuples and strings for all keys.
            what: Description of the work, for the progress line; None for a caller that shows its own.

        Raises:
            ArtifactError: If the file is corrupt before its last line, or writing to disk fails.
            UserError: If another process is writing the same file.
        """
        if self.file is None:
            yield from map(work, batches if what is None else track(batches, len(batches), what))
            return
        versions = library_versions()
        size = len(batches[0]) if batches else 0
        journal = Journal(self.file, {**self.depends_on, "batch size": size, "versions": versions, "format": _FORMAT})
        with journal.locked():
            saved = journal.read(lambda _, line: (line["seconds"], line["result"]))
            if saved:
                say(f"{self.file}: reusing {len(saved)} of {len(batches)} batches from an earlier run.")
            for number, (seconds, result) in enumerate(saved):
                saved[number] = (0.0, None)  # frees its memory
                self.seconds += seconds
                yield result
            progress = Progress(what or "", len(batches))
            with progress if what is not None else nullcontext():
                progress.skip(len(saved))
                for number, batch in enumerate(batches[len(saved) :], len(saved)):
                    started = time.perf_counter()
                    result = work(batch)
                    journal.append({"batch": number, "seconds": time.perf_counter() - started, "result": result})
                    progress.advance()
                    yield result
