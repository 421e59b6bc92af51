"""Links between passages, and splits along them."""

from collections import Counter

from common.records import Passage
from harness.synthesis.links import find_links, split_passages


def corpus(**texts: str) -> list[Passage]:
    return [Passage.of(title.replace("_", " "), text) for title, text in texts.items()]


def names(passages: list[Passage]) -> list[dict[str, str]]:
    return [{passages[n].title: words for n, words in found.items()} for found in find_links(passages)]


def test_a_mention_of_a_title_is_a_link() -> None:
    passages = corpus(Jaws="shot by Ann Lee.", Ann_Lee="She shot Jaws in Rome; Romeo too.", Rome="a town")
    assert names(passages) == [{"Ann Lee": "Ann Lee"}, {"Jaws": "Jaws", "Rome": "Rome"}, {}]


def test_of_overlapping_titles_the_longest_counts() -> None:
    passages = corpus(
        York="old", New_York="new", New_York_City="newest", Map="New York City lies in New York, not York."
    )
    assert names(passages)[3] == {"New York City": "New York City", "New York": "New York", "York": "York"}


def test_a_title_in_parentheses_is_found_without_them_if_it_is_unambiguous() -> None:
    passages = [Passage.of("Jaws (film)", "a"), Passage.of("Solo (film)", "b"), Passage.of("Solo (band)", "c")]
    passages.append(Passage.of("Ann", "Jaws and Solo are hers."))
    assert names(passages)[3] == {"Jaws (film)": "Jaws"}


def test_titles_of_many_passages_and_common_words_are_no_links() -> None:
    passages = [Passage.of("Introduction", str(n)) for n in range(5)] + corpus(
        house="a", A="b", Ann="Introduction: A house"
    )
    assert names(passages)[-1] == {}


def test_linked_passages_share_their_split() -> None:
    passages = [
        Passage.of(f"Town{n}", f"beside Town{n + 1}" if n % 5 < 4 else "end") for n in range(100)
    ]  # 20 chains of five
    shares = {"train": 0.6, "validation": 0.2, "test": 0.2}
    links = find_links(passages)
    splits = split_passages(passages, links, shares, seed=0)
    assert Counter(splits) == {"train": 60, "validation": 20, "test": 20}
    assert all(splits[other] == splits[n] for n, found in enumerate(links) for other in found)
    assert splits != split_passages(passages, links, shares, seed=1)
    assert splits == split_passages(passages, links, shares, seed=0)


def test_parts_of_one_article_share_their_split() -> None:
    passages = [Passage.of(f"Article {n // 10}", str(n)) for n in range(100)]
    splits = split_passages(passages, find_links(passages), {"train": 0.5, "validation": 0.5}, seed=0)
    assert all(len({splits[n] for n in range(start, start + 10)}) == 1 for start in range(0, 100, 10))
