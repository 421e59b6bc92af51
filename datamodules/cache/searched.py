"""Search results for training questions: a command of `infer.py` writes them once, before the first training."""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from common.errors import MissingInputError, UserError
from common.locks import exclusive
from common.progress import say
from common.sealed_json import fingerprint
from datamodules.cache.content_digests import content_digest
from datamodules.cache.record_cache import DEFAULT, WAIT_SECONDS
from datamodules.examples.data_files import QuestionDataFile, paths_of
from datamodules.formats.open_data import content_files

_INFER = Path(__file__).resolve().parents[2] / "infer.py"
_OF_RANKS = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "NODE_RANK")


@dataclass
class Search:
    """A retriever that searches for the training questions before the first training.

    The results are kept beside the cache, and written again if a file, the index or the retriever has changed. For many
    questions run `infer.py mine` or `infer.py label` yourself: all GPUs can share that work.

    Args:
        index_root: Folder of the indexes, which `infer.py index --out INDEX_ROOT/bm25` has written.
        retriever: Configuration file of the retriever.
    """

    index_root: str
    retriever: str = "configs/parts/bm25.yaml"


class Searched:
    """The files that a command writes for question files, one each.

    Args:
        command: Of `infer.py`.
        search: The retriever.
        sources: The question files.
        cache: Folder of the cache; the default one when None.
    """

    def __init__(
        self, command: Literal["mine", "label"], search: Search, sources: Sequence[QuestionDataFile], cache: str | None
    ) -> None:
        self._command, self._search, self._sources, self._cache = command, search, sources, cache or DEFAULT

    @property
    def files(self) -> list[str]:
        """The files; `write` may not have written them yet.

        Raises:
            MissingInputError: If the retriever's configuration or the indexes do not exist.
        """
        return [str(self._file(source)) for source in self._sources]

    def write(self) -> None:
        """Write the files that are not there.

        Raises:
            UserError: If the command fails, which has said why.
        """
        for source in self._sources:
            out = self._file(source)
            with exclusive(Path(f"{out}.search"), wait_seconds=WAIT_SECONDS):  # perhaps of another machine of this run
                self._write_one(source, out)

    def _write_one(self, source: QuestionDataFile, out: Path) -> None:
        if out.exists():
            say(f"{source.path}: what the retriever finds was written before, to {out}.")
            return
        given = ["--retriever", self._search.retriever, "--index_root", self._search.index_root]
        given += ["--questions", source.path, "--layout", source.layout, "--out", str(out)]
        given += [] if source.corpus is None else ["--corpus", source.corpus]
        given += ["--limit", str(source.limit)] if self._command == "label" and source.limit else []
        alone = {name: value for name, value in os.environ.items() if name not in _OF_RANKS}
        if code := subprocess.run([sys.executable, str(_INFER), self._command, *given], env=alone).returncode:
            raise UserError(
                f"python infer.py {self._command} {' '.join(given)} ended with exit code {code}, see above: what it "
                "writes is needed for data.search."
            )

    def _file(self, source: QuestionDataFile) -> Path:
        retriever, indexes = Path(self._search.retriever), Path(self._search.index_root).glob("*/index.json")
        read = [retriever, *sorted(indexes)]
        if not retriever.is_file() or len(read) == 1:
            raise MissingInputError(
                f"data.search needs {retriever}, and the indexes below {self._search.index_root}: write one by `python "
                f"infer.py index --corpus FILE --kind bm25 --out {self._search.index_root}/bm25`."
            )
        files = [*read, *(file for path in paths_of([source]) for file in content_files(path))]
        key = [
            self._command,
            asdict(self._search),
            asdict(source),
            [content_digest(file, self._cache) for file in files],
        ]
        return Path(self._cache).parent / "searched" / f"{self._command}-{fingerprint(key)[:16]}.jsonl"
