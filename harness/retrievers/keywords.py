"""Keyword matching, the third route of HiQA.

Passages by the number of the query's critical keywords that they contain.
"""

import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from math import inf
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from common.errors import DataError
from common.files import write_text
from common.progress import say, track
from common.records import Passage, Ranked, as_texts
from common.sealed_json import fingerprint
from harness.indexing.bm25_search import best
from harness.indexing.critical_keywords import RECIPE, KeywordMatcher, as_keyword, critical_keywords
from harness.indexing.index_folder import Build, Index, Verify, build_index, built_with, open_index
from harness.indexing.passage_store import PassageStore

KEYWORDS = "keywords.jsonl"  # one object a line: "keyword" and "passages", the positions of those that contain it


def build_keywords(
    passages: Iterable[Passage],
    out: Path,
    max_share: float = 0.2,
    given: Path | None = None,
    build: Build = Build(),  # noqa: B008 (frozen)
) -> None:
    """Build a keyword index folder, unless it is up to date.

    Args:
        passages: The corpus; of passages with the same id only the first is indexed.
        out: The index folder.
        max_share: A name in a greater share of the passages is no critical keyword.
        given: File of further keywords, one a line.
        build: How it is built.

    Raises:
        UserError: If `out` holds something else, or another process is writing it.
        DataError: If the corpus is empty or has no keyword, or the file of keywords has none.
        ArtifactError: If writing to disk fails.
    """
    own = _given(given)

    def write(store: PassageStore, folder: Path) -> str:
        texts = (
            f"{passage.title}\n{passage.indexed or passage.text}"
            for passage in track(store, len(store), "finding keywords")
        )
        found = critical_keywords(texts, max_share, own)
        if not found:
            raise DataError("The corpus has no critical keyword. Give some, one a line: --keywords.file FILE.")
        rows = (
            json.dumps({"keyword": " ".join(keyword), "passages": positions}, ensure_ascii=False)
            for keyword, positions in found.items()
        )
        write_text(folder / KEYWORDS, "\n".join(rows) + "\n")
        return f"index of {len(found):,} critical keywords of {len(store):,} passages"

    parts = {"max_share": max_share, "given": fingerprint(own), **RECIPE}
    build_index("keywords", passages, out, parts, write, [], build)


def _given(path: Path | None) -> list[str]:
    """The keywords in a file, in alphabetical order."""
    if path is None:
        return []
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"{path}: the keywords cannot be read ({error}). Give a UTF-8 text file, one a line."
        ) from error
    found = sorted({" ".join(keyword) for line in lines if (keyword := as_keyword(line))})
    if not found:
        raise DataError(f"{path} has no keyword: give one a line, or omit --keywords.file.")
    return found


class KeywordRetriever:
    """Retrieves passages by the number of distinct critical keywords of the query that they contain.

    Args:
        index: Folder that `infer.py index --kind keywords` wrote.
        verify: How its files are verified: `sampled` (parts of large files), `full` or `off`.

    Raises:
        MissingInputError: If there is no such folder.
        ArtifactError: If it is corrupt, incomplete, not a keyword index, or of another version.
    """

    prefix_depth = inf  # up to here, a search for fewer passages finds the beginning of the list

    def __init__(self, index: Path, verify: Verify = "sampled") -> None:
        self.folder, self.verify = Path(index), verify

    def load(self) -> None:
        """Open the index."""
        _ = self.index.stored, self._matcher

    @cached_property
    def index(self) -> Index:
        """The index folder, verified."""
        return built_with(open_index(self.folder, "keywords", self.verify), **RECIPE)

    @cached_property
    def _postings(self) -> dict[tuple[str, ...], NDArray[np.int64]]:
        postings: dict[tuple[str, ...], NDArray[np.int64]] = {}
        with (self.index.folder / KEYWORDS).open(encoding="utf-8") as file:
            for row in map(json.loads, file):
                postings[tuple(row["keyword"].split(" "))] = np.array(row["passages"], dtype=np.int64)
        say(f"{self.folder}: {self.index.passages:,} passages, {len(postings):,} critical keywords.")
        return postings

    @cached_property
    def _matcher(self) -> KeywordMatcher:
        return KeywordMatcher(self._postings)

    def keywords(self, query: str) -> list[str]:
        """The critical keywords of a query, by their words as they are compared."""
        return [" ".join(keyword) for keyword in self._matcher.longest(query)]

    def scores(self, query: str) -> NDArray[np.float64]:
        """|C| of every passage of the index, (N,)."""
        counts_N = np.zeros(self.index.passages)
        for keyword in self._matcher.longest(query):
            counts_N[self._postings[keyword]] += 1
        return counts_N

    def search(self, queries: Sequence[str], k: int) -> list[list[Ranked]]:
        """The k passages with the most keywords of each query, ties in the order of the corpus; none without one."""
        scored = map(self.scores, as_texts(queries))
        return [[Ranked(self.index.stored[n], float(counts_N[n])) for n in best(counts_N, k)] for counts_N in scored]
