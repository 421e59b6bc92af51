"""Title links: passages whose title the query names, and passages whose title those passages mention.  No model.

    score(d) = max over the forms f of d's title of  reach(f) * weight(f)
               * (1, or 1/2 for a title without its final parenthesis)
    reach(f) = 1 for a form that the query names,
               1 - product over the passages p of the hop before that mention f of (1 - 0.8 score(p))  for others
    weight(f) = (1 - ln(1 + mentions(f)) / ln(1 + N)) / (1 + ln passages(f))

with N passages in all, mentions(f) of other titles whose text mentions f, and passages(f) whose title it is: a common
title or an ambiguous one counts little. A passage that one passage leads to comes after it, a passage
that several lead to comes before one that only one of them leads to. Passages with equal scores, such as those of one
article, come in the order of the distinct words that they share with the query, then in that of the corpus. What is a
form, and named: `harness.indexing.titles`.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from common.progress import say
from common.ranges import NonNegativeInt, Share
from common.records import Passage, Ranked, as_texts
from common.words import word_texts
from harness.indexing.index_folder import Build, Index, Verify, build_index, built_with, open_index
from harness.indexing.passage_store import PassageStore
from harness.indexing.title_links import TitleLinks, write_title_links
from harness.indexing.titles import MATCHING

_PER_HOP = 0.8  # of a passage's score, what it passes on
_QUALIFIED = 0.5  # of a title without its final parenthesis
_OF_A_TITLE = 256  # passages with one title that are looked at, the first of the corpus
_FOLLOWED = 64  # passages of a hop whose mentions are followed, the best
_READ = 512  # passages with equal scores whose words are compared with the query's, the first of the corpus


def build_links(
    passages: Iterable[Passage],
    out: Path,
    build: Build = Build(),  # noqa: B008 (frozen)
) -> None:
    """Build an index folder of titles and links, unless it is up to date.

    Args:
        passages: The corpus; of passages with the same id only the first is indexed.
        out: The index folder.
        build: How it is built.

    Raises:
        UserError: If `out` holds something else, or another process is writing it.
        DataError: If the corpus is empty or has no title.
        ArtifactError: If writing to disk fails.
    """

    def write(store: PassageStore, folder: Path) -> str:
        write_title_links(folder, store)
        links = TitleLinks(folder)
        return f"index of {links.forms:,} forms of titles and {links.links:,} links of {len(store):,} passages"

    build_index("links", passages, out, {"matching": MATCHING}, write, ["numpy"], build)


class LinkRetriever:
    """Retrieves passages by the titles that the query names, and those that the passages found so mention.

    Args:
        index: Folder that `infer.py index --kind links` wrote.
        hops: How often mentions are followed; 0: only passages whose title the query names.
        min_score: A passage with a lower score is not returned, nor are its mentions followed; 0 to 1.
        verify: How the files of the index are verified: `sampled` (parts of large files), `full` or `off`.

    Raises:
        MissingInputError: If there is no such folder.
        ArtifactError: If it is corrupt, incomplete, or not an index of links.
    """

    def __init__(
        self, index: Path, hops: NonNegativeInt = 1, min_score: Share = 0.0, verify: Verify = "sampled"
    ) -> None:
        self.folder, self.verify, self.hops, self.min_score = Path(index), verify, hops, min_score

    def load(self) -> None:
        """Open the index."""
        _ = self.index.stored, self._links

    @cached_property
    def index(self) -> Index:
        """The index folder, verified."""
        return built_with(open_index(self.folder, "links", self.verify), matching=MATCHING)

    @cached_property
    def _links(self) -> TitleLinks:
        links = TitleLinks(self.index.folder)
        say(f"{self.folder}: {self.index.passages:,} passages, {links.links:,} links, memory-mapped.")
        return links

    def search(self, queries: Sequence[str], k: int) -> list[list[Ranked]]:
        """The k best passages of each query, best first.

        Fewer where fewer are reached, none for a query that names no title.
        """
        queries = as_texts(queries)
        return [self._search_one(query, k) for query in queries]

    def _search_one(self, query: str, k: int) -> list[Ranked]:
        words = set(word_texts(query))
        reach = dict.fromkeys(self._links.named([query]).forms_M.tolist(), 1.0)
        found: dict[int, float] = {}
        for hop in range(self.hops + 1):
            reached = self._titled(reach, found)
            found |= reached
            if hop < self.hops:
                reach = self._mentioned(self._best(reached, _FOLLOWED, words))
        return [Ranked(self.index.stored[place], score) for place, score in self._best(found, k, words)]

    def _titled(self, reach: Mapping[int, float], known: Mapping[int, float]) -> dict[int, float]:
        """The score of every passage that has one of these forms as its title and is not known."""
        scores: dict[int, float] = {}
        for form, weight in zip(reach, self._links.weights([*reach]).tolist(), strict=True):
            places, exact = self._links.titled(form, _OF_A_TITLE)
            for place, whole in zip(places.tolist(), exact.tolist(), strict=True):
                score = reach[form] * weight * (1.0 if whole else _QUALIFIED)
                if place not in known and score > scores.get(place, 0.0) and score >= self.min_score:
                    scores[place] = score
        return scores

    def _mentioned(self, best: Sequence[tuple[int, float]]) -> dict[int, float]:
        """The reach of every form that these passages mention."""
        missed: dict[int, float] = {}
        for place, score in best:
            for form in self._links.mentioned_by(place).tolist():
                missed[form] = missed.get(form, 1.0) * (1 - _PER_HOP * score)
        return {form: 1 - each for form, each in missed.items()}

    def _best(self, scores: Mapping[int, float], k: int, words: set[str]) -> list[tuple[int, float]]:
        """The places of the k best passages with their scores, best first."""
        ordered = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
        least = ordered[k - 1][1] if len(ordered) > k else 0.0
        kept = [item for item in ordered if item[1] >= least][: max(k, _READ)]
        return sorted(kept, key=lambda item: (-item[1], -self._shared(item[0], words), item[0]))[:k]

    def _shared(self, place: int, words: set[str]) -> int:
        """Number of distinct words that a passage shares with the query."""
        passage = self.index.stored[place]
        return len(words.intersection(word_texts(f"{passage.title} {passage.text}")))
