"""Search results for training questions: files of `infer.py mine` or `label`, kept beside the cache."""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Literal

from common.errors import MissingInputError
from common.sealed_json import fingerprint
from datamodules.cache.content_digests import content_digest
from datamodules.cache.record_cache import DEFAULT
from datamodules.examples.data_files import QuestionDataFile, paths_of
from datamodules.formats.open_data import content_files, versions_of


@dataclass
class Search:
    """A retriever that searches for the training questions before the first training.

    The results are kept beside the cache, and written again if a file, the index or the retriever has changed. For many
    questions run `infer.py mine` or `infer.py label` yourself: all GPUs can share that work.

    Args:
        index_root: Folder of the indexes, such as INDEX_ROOT/bm25, which `infer.py index` has written.
        retriever: Configuration file of the retriever.
    """

    index_root: str
    retriever: str = "configs/parts/bm25.yaml"


class SearchResults:
    """The files that a command of `infer.py` writes for question files, one each.

    `train.py` runs the commands before training (`trainers.run.searching`); a data module only reads the files.

    Args:
        command: Of `infer.py`.
        search: The retriever.
        sources: The question files.
        cache: Folder of the cache; the default one when None.
    """

    def __init__(
        self, command: Literal["mine", "label"], search: Search, sources: Sequence[QuestionDataFile], cache: str | None
    ) -> None:
        self._command, self._search, self.sources, self._cache = command, search, sources, cache or DEFAULT

    @property
    def files(self) -> list[str]:
        """The files, of which some may be yet to be written.

        Raises:
            MissingInputError: If the retriever's configuration or the indexes do not exist.
        """
        return [self._file(source) for source in self.sources]

    @property
    def commands(self) -> list[list[str]]:
        """The arguments of `infer.py` that write each file."""
        return [self._arguments(*each) for each in zip(self.sources, self.files, strict=True)]

    def _arguments(self, source: QuestionDataFile, out: str) -> list[str]:
        given = ["--retriever", self._search.retriever, "--index_root", self._search.index_root]
        given += ["--questions", source.path, "--layout", source.layout, "--out", out]
        given += [] if source.corpus is None else ["--corpus", source.corpus]
        given += ["--min_grade", str(source.min_grade)] if source.min_grade else []
        given += ["--limit", str(source.limit)] if self._command == "label" and source.limit else []
        return [self._command, *given]

    def _file(self, source: QuestionDataFile) -> str:
        retriever, indexes = Path(self._search.retriever), Path(self._search.index_root).glob("*/index.json")
        read = [retriever, *sorted(indexes)]
        if not retriever.is_file() or len(read) == 1:
            kinds, root = ", ".join(_kinds(retriever) or ["KIND"]), self._search.index_root
            raise MissingInputError(
                f"data.search needs {retriever}, and the indexes below {root}: write them by "
                f"`python infer.py index --corpus FILE --kind '[{kinds}]' --out {root}`."
            )
        files = [*read, *(file for path in paths_of([source]) for file in content_files(path))]
        key = [
            self._command,
            asdict(self._search),
            asdict(source),
            [content_digest(file, self._cache) for file in files],
            versions_of(files[len(read) :]),
        ]
        return str(Path(self._cache).parent / "searched" / f"{self._command}-{fingerprint(key)[:16]}.jsonl")


def _kinds(retriever: Path) -> list[str]:
    """The kinds of index that a retriever's configuration reads, and those that it names: their folders' names."""
    text = re.sub(r"#.*", "", retriever.read_text(encoding="utf-8")) if retriever.is_file() else ""
    named = (_kinds(retriever.parent / name) for name in re.findall(r"[\w./-]+\.ya?ml\b", text))
    return [*dict.fromkeys([*re.findall(r"\$\{?index_root\}?/(\w+)", text), *chain.from_iterable(named)])]
