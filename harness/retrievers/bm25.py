"""BM25 retrieval: Lucene's variant, computed by bm25s (Lu 2024, arXiv 2407.03618).

    score(q, d) = sum over the words w of q of
                  ln(1 + (N - n_w + 1/2) / (n_w + 1/2)) * f / (f + k1 (1 - b + b |d| / mean |d|))

with f the frequency of w in d and n_w the number of passages that contain w.  Repeated query words count repeatedly.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from math import inf
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from common.files import check_space, read_json
from common.progress import say
from common.ranges import PositiveInt
from common.records import Passage, Ranked, as_texts, clean
from harness.indexing.analyser import Analyser, StopWords
from harness.indexing.bm25_files import POSTING_BYTES, VOCABULARY, write_bm25
from harness.indexing.bm25_search import BatchSearch, Postings, Query
from harness.indexing.index_folder import Build, Index, Verify, build_index, built_with, open_index
from harness.indexing.passage_store import PassageStore, indexed_text
from harness.indexing.posting_runs import write_runs
from harness.indexing.workers import worker_count

K1, B = 1.5, 0.75  # saturation of term frequency, and strength of length normalization
_FOLDER = "bm25"  # bm25s's own files, inside the index folder


def build_bm25(
    passages: Iterable[Passage],
    out: Path,
    k1: float = K1,
    b: float = B,
    stop_words: StopWords = "english",
    workers: int | None = 1,
    build: Build = Build(),  # noqa: B008 (frozen)
) -> None:
    """Build a BM25 index folder, unless it is up to date.

    Memory grows with the number of different words, and by some bytes with each passage; see
    `harness.indexing.posting_runs`.

    Args:
        passages: The corpus; of passages with the same id only the first is indexed.
        out: The index folder.
        k1: Saturation of term frequency, at least 0.
        b: Strength of length normalization, in [0, 1].
        stop_words: See `Analyser`.
        workers: Processes that split passages into words, of more than one block; None: one for each processor, at most
            8.
        build: How it is built.

    Raises:
        UserError: If `out` holds something else, or another process is writing it.
        DataError: If the corpus is empty or contains no word.
        ArtifactError: If writing to disk fails.
    """
    analyser = Analyser(stop_words)

    def write(store: PassageStore, folder: Path) -> str:
        runs = write_runs(store, analyser, store.folder, worker_count(workers))
        check_space(out, int(runs.passages_W.sum()) * POSTING_BYTES)
        write_bm25(runs, k1, b, folder / _FOLDER)
        return f"BM25 index of {len(store):,} passages, {len(runs.vocabulary):,} words"

    parts = {"k1": k1, "b": b, "analyser": analyser.recipe}
    build_index("bm25", passages, out, parts, write, ["bm25s", "numpy"], build)


def bm25_scores(texts: Sequence[str], queries: Sequence[str]) -> Iterator[NDArray[np.float32]]:
    """The BM25 scores (P,) of P texts for each query; all 0 for a query without a word of the texts.

    Words are numbered by first occurrence, because bm25s's own numbering differs between processes.
    """
    import bm25s

    analyser = Analyser()
    vocabulary: dict[str, int] = {}
    ids = [[vocabulary.setdefault(word, len(vocabulary)) for word in analyser(text)] for text in texts]
    engine = bm25s.BM25(k1=K1, b=B, method="lucene")
    if vocabulary:
        engine.index((ids, vocabulary), create_empty_token=False, show_progress=False)
    for query in queries:
        words = engine.get_tokens_ids(analyser.of_query(clean(query), vocabulary)) if vocabulary else []
        yield engine.get_scores_from_ids(words) if words else np.zeros(len(texts), dtype=np.float32)


def rank_by_bm25(query: str, passages: Sequence[Passage], k: int) -> list[Ranked]:
    """The k passages with the best BM25 scores among themselves, best first.

    Those without a word of the query last, in their order.

    Args:
        query: Split into words as in an index with the default options.
        passages: A small collection, indexed in memory.
        k: Number of passages.
    """
    (scores_N,) = bm25_scores([*map(indexed_text, passages)], [query])
    positions = np.argsort(-scores_N, kind="stable")[:k]
    return [Ranked(passages[position], float(scores_N[position])) for position in positions]


class Bm25Retriever:
    """Retrieves passages by BM25 score.

    Args:
        index: Folder that `infer.py index --kind bm25` wrote.
        verify: How its files are verified: `sampled` (parts of large files), `full` or `off`.
        workers: Processes that share a large batch of queries; None: one for each processor, at most 8.

    Raises:
        MissingInputError: If there is no such folder.
        ArtifactError: If it is corrupt, incomplete, not a BM25 index, or of another analyser.
    """

    prefix_depth = inf  # up to here, a search for fewer passages finds the beginning of the list

    def __init__(self, index: Path, verify: Verify = "sampled", workers: PositiveInt | None = None) -> None:
        self.folder, self.verify, self.workers = Path(index), verify, workers

    def load(self) -> None:
        """Open the index."""
        _ = self._analyser, self.index.stored, self._vocabulary, self._searched

    def knows(self, text: str) -> bool:
        """Whether a passage has one of the terms of a text; stop words count where the text has nothing else."""
        return any(term in self._vocabulary for term in self._analyser.terms_that_count(clean(text)))

    @cached_property
    def index(self) -> Index:
        """The index folder, verified."""
        return open_index(self.folder, "bm25", self.verify)

    @cached_property
    def _analyser(self) -> Analyser:
        analyser = Analyser(self.index.recipe["analyser"]["stop_words"])
        built_with(self.index, analyser=analyser.recipe)
        return analyser

    @cached_property
    def _vocabulary(self) -> dict[str, int]:
        numbers: dict[str, int] = read_json(self.index.folder / _FOLDER / VOCABULARY, "Build the index again.")
        return numbers

    @cached_property
    def _postings(self) -> Postings:
        say(f"{self.folder}: {self.index.passages:,} passages, BM25, memory-mapped.")
        return Postings(self.index.folder / _FOLDER, self.index.passages)

    @cached_property
    def _searched(self) -> BatchSearch:
        return BatchSearch(self._postings, self.workers)

    def search(self, queries: Sequence[str], k: int) -> list[list[Ranked]]:
        """The k best passages of each query, best first; ties in the order of the corpus.

        Passages without a word of the query are not returned, so a query of unknown words returns an empty list.
        """
        queries = as_texts(queries)
        return self._search([self._query(query) for query in queries], k)

    def search_weighted(self, queries: Sequence[Mapping[str, float]], k: int) -> list[list[Ranked]]:
        """As `search`, for queries that give each word a weight: the score is the weighted sum of the words' scores."""
        known = self._vocabulary
        return self._search([[(known[word], each[word]) for word in each if word in known] for each in queries], k)

    def _search(self, queries: list[Query], k: int) -> list[list[Ranked]]:
        found = self._searched.search(queries, k)
        # each passage is read once: parsing one takes longer than finding it
        read = {position: self.index.stored[position] for position in sorted({p for each, _ in found for p in each})}
        return [[Ranked(read[p], score) for p, score in zip(*each, strict=True)] for each in found]

    def _query(self, text: str) -> Query:
        return [(self._vocabulary[word], 1.0) for word in self.words(text) if word in self._vocabulary]

    def scores(self, query: str) -> np.ndarray:
        """The score of every passage of the index, float64 (N,)."""
        return self._postings.scores(self._query(query)).astype(np.float64)

    def words(self, text: str) -> list[str]:
        """The terms of a text by which it is searched (`Analyser.of_query`)."""
        return self._analyser.of_query(clean(text), self._vocabulary)

    def shares(self, words: Sequence[str]) -> list[float]:
        """The share of the passages that contain each word, 0 to 1."""
        words = as_texts(words)
        starts_W = self._postings.starts_W
        known = {word: self._vocabulary[word] for word in words if word in self._vocabulary}
        counts = {word: int(starts_W[number + 1] - starts_W[number]) for word, number in known.items()}
        return [counts.get(word, 0) / self.index.passages for word in words]
