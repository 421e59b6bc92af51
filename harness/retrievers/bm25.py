"""BM25 retrieval: Lucene's variant, computed by bm25s (Lu 2024, arXiv 2407.03618).

    score(q, d) = sum over the words w of q of  ln(1 + (N - n_w + 1/2) / (n_w + 1/2)) * f / (f + k1 (1 - b + b |d| / mean |d|))

with f the frequency of w in d and n_w the number of passages that contain w.  Repeated query words count repeatedly."""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from common.checks import check_at_least, check_choice, check_share
from common.errors import ArtifactError, DataError
from common.files import scratch_folder
from common.progress import in_bytes, say, track
from common.records import Passage, Ranked, clean
from common.seals import fingerprint
from common.words import CJK
from harness.indexing.index_folder import INDEX, Documents, Verify, is_built, open_index, recipe_of, write_index
from harness.indexing.passage_store import OFFSETS, PASSAGES, PassageStore, indexed_text, write_passages
from harness.runtime.memory_needs import RAM, Machine, Memory, Need

if TYPE_CHECKING:
    import bm25s

StopWords = Literal["english", "none"]
Cjk = Literal["runs", "bigrams"]

_FOLDER = "bm25"  # bm25s's own files, inside the index folder
_WORD_BYTES = 250  # of a word in bm25s's dictionary and set; measured: 170 to 250
_SEARCH_BYTES = 24  # of a passage while one query is searched: scores, positions and copies of both; measured: 6 to 21
_CJK_OR_OTHER = rf"([{CJK}]+)|[^\W{CJK}]{{2,}}"  # as _WORD where there is no Chinese, Japanese or Korean
_WORD = r"(?u)\b\w\w+\b"  # bm25s's default: at least two letters or digits


class Analyser:
    """Splits text into words: lower case, stop words removed, no stemming.

    Args:
        stop_words: `english` (bm25s's list of 33) or `none`.
        cjk: What is a word of Chinese, Japanese and Korean: `runs`, all up to a blank or a punctuation mark, or `bigrams`, every pair of
            neighbouring characters, as in Lucene's CJKAnalyzer.
    """

    def __init__(self, stop_words: StopWords = "english", cjk: Cjk = "runs") -> None:
        check_choice(get_args(StopWords), stop_words=stop_words)
        check_choice(get_args(Cjk), cjk=cjk)
        from bm25s.stopwords import STOPWORDS_EN

        self._stop = frozenset(STOPWORDS_EN if stop_words == "english" else ())
        self._find = re.compile(_WORD).findall if cjk == "runs" else _with_bigrams
        pattern = _WORD if cjk == "runs" else f"{_CJK_OR_OTHER}, bigrams"
        self.recipe = {"stop_words": stop_words, "sha256": fingerprint([pattern, "lower", sorted(self._stop)])}
        self.recipe |= {"cjk": cjk} if cjk != "runs" else {}

    def __call__(self, text: str) -> list[str]:
        return [word for word in self._find(text.lower()) if word not in self._stop]


def _with_bigrams(text: str) -> list[str]:
    """The words of a text, and of Chinese, Japanese and Korean every pair of neighbouring characters; one that stands alone is a word."""
    found: list[str] = []
    for match in re.finditer(_CJK_OR_OTHER, text):
        run = match[1]
        found += [run[n : n + 2] for n in range(max(1, len(run) - 1))] if run else [match[0]]
    return found


def build_bm25(
    passages: Iterable[Passage],
    out: Path,
    k1: float = 1.5,
    b: float = 0.75,
    stop_words: StopWords = "english",
    overwrite: bool = False,
    documents: Documents | None = None,
    cjk: Cjk = "runs",
) -> None:
    """Build a BM25 index folder, unless it is up to date.

    Args:
        passages: The corpus; of passages with the same id only the first is indexed.
        out: The index folder.
        k1: Saturation of term frequency, at least 0.
        b: Strength of length normalization, in [0, 1].
        stop_words: See `Analyser`.
        overwrite: Whether an index of another recipe may be replaced.
        documents: The documents that the passages come from, if they do.
        cjk: See `Analyser`.

    Raises:
        UserError: If a parameter is out of range, `out` holds something else, or another process is writing it.
        DataError: If the corpus is empty or contains no word.
        ArtifactError: If writing to disk fails.
    """
    check_at_least(0, k1=k1)
    check_share(b=b)
    analyser = Analyser(stop_words, cjk)
    with INDEX.locked(out), scratch_folder(out) as staging:
        corpus = write_passages(staging, track(passages, None, "reading passages"))
        recipe = recipe_of("bm25", corpus, documents, k1=k1, b=b, analyser=analyser.recipe)
        if is_built(out, recipe, overwrite, documents=documents):
            return
        store = PassageStore(staging)
        engine = _fit(track(store, len(store), "analysing passages"), analyser, k1, b)
        write_index(
            out,
            recipe,
            corpus.passages,
            staging,
            lambda folder: _save(engine, folder / _FOLDER),
            ["bm25s", "numpy"],
            documents=documents,
        )
    say(f"{out}: BM25 index of {corpus.passages:,} passages, {len(engine.vocab_dict):,} words.")


def _fit(passages: Iterable[Passage], analyser: Analyser, k1: float, b: float) -> "bm25s.BM25":
    """Index a corpus.  Words are numbered by first occurrence, because bm25s's own numbering differs between processes."""
    import bm25s

    vocabulary: dict[str, int] = {}
    ids = [
        [vocabulary.setdefault(word, len(vocabulary)) for word in analyser(indexed_text(passage))]
        for passage in passages
    ]
    if not vocabulary:
        raise DataError("No passage of the corpus contains a word that BM25 can index. Check the files and the layout.")
    engine = bm25s.BM25(k1=k1, b=b, method="lucene")
    engine.index((ids, vocabulary), create_empty_token=False, show_progress=False)
    return engine


def _save(engine: "bm25s.BM25", folder: Path) -> None:
    engine.save(folder, show_progress=False)


def rank_by_bm25(query: str, passages: Sequence[Passage], k: int) -> list[Ranked]:
    """The k passages with the best BM25 scores among themselves, best first; those without a word of the query last, in their order.

    Args:
        query: Split into words as in an index with the default options.
        passages: A small collection, indexed in memory.
        k: Number of passages.
    """
    analyser, scores_N = Analyser(), np.zeros(len(passages))
    with suppress(DataError):  # no passage has a word that can be indexed
        engine = _fit(passages, analyser, k1=1.5, b=0.75)
        if word_ids := engine.get_tokens_ids(analyser(clean(query))):
            scores_N = engine.get_scores_from_ids(word_ids)
    positions = np.argsort(-scores_N, kind="stable")[:k]
    return [Ranked(passages[position], float(scores_N[position])) for position in positions]


class Bm25Retriever:
    """Retrieves passages by BM25 score.

    Args:
        index: Folder that `infer.py index --kind bm25` wrote.
        verify: How its files are verified: `full`, `size` or `off`.
        expect_corpus: Required corpus fingerprint; None accepts any.

    Raises:
        MissingInputError: If there is no such folder.
        ArtifactError: If it is corrupt, incomplete, not a BM25 index, or of another corpus or analyser.
    """

    def __init__(self, index: Path, verify: Verify = "full", expect_corpus: str | None = None) -> None:
        import bm25s

        self.index = open_index(Path(index), "bm25", verify, expect_corpus)
        recorded = self.index.recipe["analyser"]
        self._analyser = Analyser(recorded["stop_words"], recorded.get("cjk", "runs"))
        if self._analyser.recipe != recorded:
            raise ArtifactError(
                f"{index} was built with another analyser (other word pattern or stop-word list). "
                f"Build it again: infer.py index --kind bm25 --out {index} --overwrite true."
            )
        self._passages = PassageStore(self.index.folder)
        self._engine = bm25s.BM25.load(self.index.folder / _FOLDER, mmap=True, show_progress=False)
        arrays = {name: array for name, array in self._engine.scores.items() if isinstance(array, np.ndarray)}
        # plain views of the mapped files: slicing one costs a tenth of slicing a np.memmap
        self._engine.scores |= {name: np.asarray(array) for name, array in arrays.items()}
        size_bytes = sum(array.nbytes for array in arrays.values())
        say(f"{index}: {self.index.passages:,} passages, BM25 of {in_bytes(size_bytes)}, memory-mapped.")

    @staticmethod
    def memory(machine: Machine, index: Path) -> Memory:
        """The vocabulary and the table of passages; scores and passages are mapped from files."""
        import bm25s  # noqa: F401 (the plan counts the memory of libraries)

        folder = Path(index)
        opened = open_index(folder, "bm25", "size")
        words = np.load(folder / _FOLDER / "indptr.csc.index.npy", mmap_mode="r").shape[0] - 1
        arrays = sum(path.stat().st_size for path in (folder / _FOLDER).glob("*.npy"))
        return Memory(
            (
                Need(
                    f"words and passages of {folder}",
                    RAM,
                    index=words * _WORD_BYTES + (folder / OFFSETS).stat().st_size,
                    activations=opened.passages * _SEARCH_BYTES,
                    mapped=arrays + (folder / PASSAGES).stat().st_size,
                ),
            )
        )

    def search(self, queries: Sequence[str], k: int) -> list[list[Ranked]]:
        """The k best passages of each query, best first; ties in the order of the corpus.

        Passages without a word of the query are not returned, so a query of unknown words returns an empty list.

        Raises:
            UserError: If k is below 1.
        """
        check_at_least(1, k=k)
        read: dict[int, Passage] = {}
        return [self._search_one(query, k, read) for query in queries]

    def _search_one(self, query: str, k: int, read: dict[int, Passage]) -> list[Ranked]:
        word_ids = self._engine.get_tokens_ids(self.words(query))
        return self._best(self._engine.get_scores_from_ids(word_ids), k, read) if word_ids else []

    def scores(self, query: str) -> np.ndarray:
        """The score of every passage of the index, float64 (N,)."""
        word_ids = self._engine.get_tokens_ids(self.words(query))
        if not word_ids:
            return np.zeros(self.index.passages)
        return np.asarray(self._engine.get_scores_from_ids(word_ids), dtype=np.float64)

    def _best(self, scores_N: np.ndarray, k: int, read: dict[int, Passage]) -> list[Ranked]:
        """The best passages; `read` holds those that earlier queries of the call found: parsing one takes longer than finding it."""
        positions = best(scores_N, k)
        for position in positions:
            if position not in read:
                read[position] = self._passages[position]
        scores = scores_N[positions].tolist()
        return [Ranked(read[position], score) for position, score in zip(positions, scores, strict=True)]

    def words(self, text: str) -> list[str]:
        """The words of a text, as passages and queries are split."""
        return self._analyser(clean(text))

    def search_weighted(self, queries: Sequence[Mapping[str, float]], k: int) -> list[list[Ranked]]:
        """As `search`, for queries that give each word a weight: the score is the weighted sum of the words' scores.

        Raises:
            UserError: If k is below 1.
        """
        check_at_least(1, k=k)
        found = []
        read: dict[int, Passage] = {}
        for query in queries:
            weights = {
                number: weight for word, weight in query.items() for number in self._engine.get_tokens_ids([word])
            }
            scores = (self._engine.get_scores_from_ids([number]) * weight for number, weight in weights.items())
            found.append(self._best(np.sum([*scores], axis=0), k, read) if weights else [])
        return found

    def shares(self, words: Sequence[str]) -> list[float]:
        """The share of the passages that contain each word, 0 to 1."""
        starts = self._engine.scores["indptr"]
        known = {word: number for word in words for number in self._engine.get_tokens_ids([word])}
        counts = {word: int(starts[number + 1]) - int(starts[number]) for word, number in known.items()}
        return [counts.get(word, 0) / self.index.passages for word in words]


def best(scores_N: np.ndarray, k: int) -> list[int]:
    """Positions of the k greatest scores above 0, best first, ties by position; fewer if fewer are above 0."""
    positions = np.flatnonzero(scores_N > 0)
    if len(positions) > k:
        scores = scores_N[positions]
        least = np.partition(scores, -k)[-k]
        above = int((scores > least).sum())
        # several passages may tie at `least`: the first of them are kept
        positions = np.concatenate((positions[scores > least], positions[scores == least][: k - above]))
    order = np.lexsort((positions, -scores_N[positions]))
    return positions[order].tolist()
