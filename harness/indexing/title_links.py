"""Titles of a corpus and the links between its passages.

Which passages have a title, and which titles a passage's text mentions.

Arrays in the folder `links` of an index, with F forms of titles, T nodes of their trie (`harness.indexing.titles`), P
pairs of a form and a passage with that title, N passages and L links:

    nodes.npy, node_forms.npy        (T,) uint64, int32    the trie
    starts.npy                       (F + 1,) int64        of form f: titled[starts[f]:starts[f + 1]]
    titled.npy, exact.npy            (P,) uint32, bool     its passages in the order of the corpus; whether it is the
                                                           whole title
    mentions.npy                     (F,) int32            passages of other titles whose text mentions it
    link_starts.npy                  (N + 1,) int64        of passage p: links[link_starts[p]:link_starts[p + 1]]
    links.npy                        (L,) uint32           the forms that its text mentions, its own left out

A link leads to a form, not to passages, so that a title that a hundred passages share costs each link four bytes. The
files are mapped into memory when they are used.

Size on disk: 12 bytes for each distinct beginning of a title, 12 for each form, 13 for each passage (5 more for a
second form), 4 for each link. Opening them takes no memory but the pages that searches touch. The build's peak,
measured with titles of three words: 150 bytes a passage where every passage has its own title, 40 where ten share one,
as much as the table of ids with which the passages were written; links go to disk as they are found.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from common.errors import DataError
from common.progress import track
from common.records import Passage
from harness.indexing.titles import Named, TitleTrie, prefix_hashes, title_forms

FOLDER = "links"
_AT_ONCE = 1024  # passages whose texts are searched for titles together


def write_title_links(folder: Path, passages: Sequence[Passage]) -> None:
    """Write the arrays.

    Args:
        folder: The index folder.
        passages: The corpus; read twice, in order.

    Raises:
        DataError: If no passage has a title.
    """
    out, count = folder / FOLDER, len(passages)
    out.mkdir()
    forms_P, passages_P = _write_titles(out, track(passages, count, "reading titles"))
    _write_links(out, track(passages, count, "finding titles in passages"), count, forms_P, passages_P)


def _write_titles(out: Path, passages: Iterable[Passage]) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Write trie and passages of each form; returns the pairs of form and passage in the order of the passages."""
    nodes, hashes, titled, exact = array("Q"), array("Q"), array("I"), array("B")
    title, own, forms = None, [], []
    for position, passage in enumerate(passages):
        if passage.title != title:  # passages of one article mostly follow each other
            title, forms = passage.title, title_forms(passage.title)
            paths = [prefix_hashes(words) for words, _ in forms]
            for path in paths:
                nodes.extend(path)
            own = [path[-1] for path in paths]
        hashes.extend(own)
        titled.extend([position] * len(own))
        exact.extend(whole for _, whole in forms)
    if not hashes:
        raise DataError(
            "No passage of the corpus has a title, and links are found by titles. Check the files and the layout."
        )
    nodes_T = np.unique(np.frombuffer(nodes, dtype=np.uint64))
    del nodes
    of_forms_F, forms_P = np.unique(np.frombuffer(hashes, dtype=np.uint64), return_inverse=True)
    del hashes
    node_forms_T = np.full(len(nodes_T), -1, dtype=np.int32)
    node_forms_T[np.searchsorted(nodes_T, of_forms_F)] = np.arange(len(of_forms_F), dtype=np.int32)
    order_P = np.argsort(forms_P, kind="stable")
    titled_P = np.frombuffer(titled, dtype=np.uint32)
    np.save(out / "nodes.npy", nodes_T)
    np.save(out / "node_forms.npy", node_forms_T)
    np.save(out / "starts.npy", _starts(np.bincount(forms_P)))
    np.save(out / "titled.npy", titled_P[order_P])
    np.save(out / "exact.npy", np.frombuffer(exact, dtype=np.bool_)[order_P])
    return forms_P.astype(np.uint32), titled_P


def _write_links(
    out: Path, passages: Iterable[Passage], count: int, forms_P: NDArray[np.uint32], passages_P: NDArray[np.uint32]
) -> None:
    """Write the links and the number of mentions of each form; the pairs are those that `_write_titles` returns."""
    forms = len(np.load(out / "starts.npy", mmap_mode="r")) - 1
    trie = TitleTrie(np.load(out / "nodes.npy"), np.load(out / "node_forms.npy"))
    mentions_F, lengths_N = np.zeros(forms, dtype=np.int32), np.zeros(count, dtype=np.int64)
    raw = out / "links.raw"
    with raw.open("wb") as file:
        for first, texts in _texts(passages):
            named = trie.named(texts)
            own = slice(*np.searchsorted(passages_P, [first, first + len(texts)]))
            own_pairs = (passages_P[own].astype(np.int64) - first) * forms + forms_P[own]
            pairs = np.setdiff1d(named.texts_M * forms + named.forms_M, own_pairs)  # sorted, each once
            mentioned = pairs % forms
            mentions_F += np.bincount(mentioned, minlength=forms).astype(np.int32)
            lengths_N[first : first + len(texts)] = np.bincount(pairs // forms, minlength=len(texts))
            file.write(mentioned.astype(np.uint32).tobytes())
    links = int(lengths_N.sum())
    np.save(out / "links.npy", np.memmap(raw, dtype=np.uint32, mode="r") if links else np.zeros(0, dtype=np.uint32))
    raw.unlink()
    np.save(out / "link_starts.npy", _starts(lengths_N))
    np.save(out / "mentions.npy", mentions_F)


def _texts(passages: Iterable[Passage]) -> Iterator[tuple[int, list[str]]]:
    """The number of the first passage of each batch, and the batch's texts."""
    first, left = 0, iter(passages)
    while texts := [passage.text for passage in islice(left, _AT_ONCE)]:
        yield first, texts
        first += len(texts)


def _starts(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)


class TitleLinks:
    """The arrays of an index, mapped into memory.

    Args:
        folder: The index folder, verified.
    """

    def __init__(self, folder: Path) -> None:
        def opened(name: str) -> NDArray:
            # a plain view of the mapped file: slicing one costs a tenth of slicing a np.memmap
            return np.asarray(np.load(folder / FOLDER / f"{name}.npy", mmap_mode="r"))

        self._trie = TitleTrie(opened("nodes"), opened("node_forms"))
        self._starts, self._titled, self._exact = opened("starts"), opened("titled"), opened("exact")
        self._mentions, self._link_starts, self._links = opened("mentions"), opened("link_starts"), opened("links")
        self.forms, self.links, self.passages = len(self._mentions), len(self._links), len(self._link_starts) - 1

    def named(self, texts: Sequence[str]) -> Named:
        """The forms of titles that texts name."""
        return self._trie.named(texts)

    def titled(self, form: int, most: int) -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
        """The first passages with a title, in the corpus's order, and of each whether the form is its whole title."""
        own = slice(self._starts[form], min(self._starts[form] + most, self._starts[form + 1]))
        return self._titled[own], self._exact[own]

    def mentioned_by(self, passage: int) -> NDArray[np.uint32]:
        """The forms that a passage's text mentions."""
        return self._links[self._link_starts[passage] : self._link_starts[passage + 1]]

    def weights(self, forms: Sequence[int]) -> NDArray[np.float64]:
        """How much it says that a form is named, above 0 and at most 1; see `harness.retrievers.links`."""
        numbers = np.array(forms, dtype=np.int64)
        rarity = 1 - np.log1p(self._mentions[numbers]) / np.log1p(self.passages)
        return rarity / (1 + np.log(self._starts[numbers + 1] - self._starts[numbers]))
