"""Links between passages (one mentions the title of another), and splits of a corpus along them."""

import re
from collections import deque
from collections.abc import Mapping, Sequence
from random import Random

from common.records import Passage

_WORD = re.compile(r"\w+")
_IN_PARENTHESES = re.compile(r"\s*\([^()]*\)$")  # `Jaws (film)`
_MIN_CHARACTERS = 3  # of a title that is looked for
_PASSAGES_PER_TITLE = 4  # a title of more passages, such as Introduction, is no link

Links = list[dict[int, str]]  # per passage: the passages that it mentions, by position, and the words by which it does


def find_links(passages: Sequence[Passage]) -> Links:
    """The links of all passages.

    A title is found as whole words, in upper and lower case as written, if it begins with a capital letter or a digit.
    Of overlapping titles the longest counts. A title that ends in parentheses is also found without them if no other
    passage has that shorter title.
    """
    positions = _positions_by_title(passages)
    by_begin: dict[tuple[str, ...], list[tuple[tuple[str, ...], str]]] = {}  # by the first two words, or the only one
    for title in positions:
        parts = tuple(_WORD.findall(title))
        by_begin.setdefault(parts[:2], []).append((parts, title))
    for entries in by_begin.values():
        entries.sort(key=lambda entry: -len(entry[0]))
    links: Links = []
    for number, passage in enumerate(passages):
        found: dict[int, str] = {}
        matches = list(_WORD.finditer(passage.text))
        words = tuple(match[0] for match in matches)
        place = 0
        while place < len(words):
            length = 1
            begin = words[place : place + 2]
            for parts, title in [*by_begin.get(begin, ()), *by_begin.get(begin[:1], ())]:
                if words[place : place + len(parts)] == parts:
                    length = len(parts)
                    mention = passage.text[matches[place].start() : matches[place + length - 1].end()]
                    for other in positions[title]:
                        if other != number and passages[other].title != passage.title:
                            found.setdefault(other, mention)
                    break
            place += length
        links.append(found)
    return links


def _positions_by_title(passages: Sequence[Passage]) -> dict[str, list[int]]:
    by_title: dict[str, list[int]] = {}
    for number, passage in enumerate(passages):
        by_title.setdefault(passage.title, []).append(number)
    short: dict[str, list[int]] = {}
    for title, numbers in by_title.items():
        without = _IN_PARENTHESES.sub("", title)
        if without != title and without not in by_title:
            short.setdefault(without, []).extend(numbers)
    unique = {title: numbers for title, numbers in short.items() if len({passages[n].title for n in numbers}) == 1}
    return {
        title: numbers
        for title, numbers in (by_title | unique).items()
        if len(title) >= _MIN_CHARACTERS
        and (title[0].isupper() or title[0].isdigit())
        and _WORD.match(title)
        and len(numbers) <= _PASSAGES_PER_TITLE
    }


def split_passages(passages: Sequence[Passage], links: Links, shares: Mapping[str, float], seed: int) -> list[str]:
    """The split of every passage, so that linked passages, and passages of one title, mostly share theirs.

    The passages are ordered by breadth-first search along the links, from random passages, and the order is cut into
    the shares.

    Args:
        passages: The corpus.
        links: Of `find_links`.
        shares: The share of each split; they sum to 1.
        seed: Of the order of the random passages.
    """
    neighbours: list[set[int]] = [set(found) for found in links]
    for number, found in enumerate(links):
        for other in found:
            neighbours[other].add(number)
    first_of: dict[str, int] = {}
    for number, passage in enumerate(passages):
        if passage.title:
            first = first_of.setdefault(passage.title, number)
            neighbours[number].add(first)
            neighbours[first].add(number)
    starts = list(range(len(passages)))
    Random(f"{seed}/split").shuffle(starts)
    order: list[int] = []
    seen = [False] * len(passages)
    for start in starts:
        queue = deque([start])
        while queue:
            number = queue.popleft()
            if not seen[number]:
                seen[number] = True
                order.append(number)
                queue.extend(sorted(n for n in neighbours[number] if not seen[n]))
    names, cuts, total = list(shares), [], 0.0
    for share in shares.values():
        total += share
        cuts.append(round(total * len(passages)))
    split_of = [names[-1]] * len(passages)
    for place, number in enumerate(order):
        split_of[number] = names[next(n for n, cut in enumerate(cuts) if place < cut)]
    return split_of
