"""Parent sections: which segments are joined, what the joined text is, where it stands.

Scores of parents beside a brute-force reference.
"""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from common.records import Kind, Passage
from documents.records import PATH_SEPARATOR, Segment, as_passage
from documents.segments.splitting import word_count
from harness.retrievers.multi_route import best_of_parents
from harness.retrievers.parent_sections import ParentSections
from harness.runtime.citation import citation, images_of, tables_of


def segment(
    headings: tuple[str, ...], text: str, kind: Kind = "text", page: int = 1, document: str = "a.pdf", image: str = ""
) -> Passage:
    whole = Segment(document, "Alto 300", headings, kind, text, text, page, page, image=image)
    return as_passage(whole, whole.path)


def groups(passages: list[Passage], max_words: int) -> list[int]:
    """Segments of each parent."""
    parents = ParentSections(passages, max_words)
    return np.diff([*parents.starts, len(passages)]).tolist()


def test_sections_of_one_chapter_are_joined_while_they_fit() -> None:
    passages = [
        *(segment((), text) for text in ("cover page", "publisher")),  # before all headings: alone
        segment(("Care",), "one two three"),
        segment(("Care", "Cleaning"), "four five"),
        segment(("Care", "Lime"), "six seven"),  # 7 words with those before
        segment(("Repair",), "eight"),  # another chapter
        segment(("Repair",), "nine", document="b.pdf"),  # another document
        *(Passage.of(title, "no segment of a document") for title in ("Alto", "Boreal")),
    ]
    assert groups(passages, 7) == [1, 1, 3, 1, 1, 1, 1]
    assert groups(passages, 6) == [1, 1, 2, 1, 1, 1, 1, 1]
    assert groups(passages, 1) == [1] * 9
    assert list(ParentSections([], 5)) == []
    # a section stays whole, and a long one is read in parts
    short = segment(("Care", "Lime"), "one two")
    long = [segment(("Care", "Cleaning"), f"{n} two three four") for n in range(3)]
    assert groups([short, *long], 8) == [1, 2, 1]  # 2 + 4 words would fit, but not the whole of Cleaning's first part
    assert groups([short, *long], 20) == [4]


def test_the_text_has_headings_where_they_change_and_says_nothing_twice() -> None:
    passages = [
        segment(("Care", "Cleaning"), "Wipe it.\nFig. 1 Cloth", page=4),
        segment(("Care", "Cleaning"), "Fig. 1 Cloth\nWipe it.\nblue", "image", page=5, image="f.png"),
        segment(("Care", "Lime", "Tablets"), "Use ours.", page=6),
        segment(("Care", "Lime", "Tablets"), "| Litres |\n| --- |\n| 280 |", "table", page=6),
    ]
    (parent,) = ParentSections(passages, 100)
    lime = f"Lime{PATH_SEPARATOR}Tablets\nUse ours.\n| Litres |\n| --- |\n| 280 |"
    assert parent.text == f"Cleaning\nWipe it.\nFig. 1 Cloth\nblue\n{lime}"
    assert parent.title == f"Alto 300{PATH_SEPARATOR}Care"
    assert citation(parent) == "a.pdf, pages 4 to 6: Care"
    assert images_of(parent) == ["f.png"]
    assert len(tables_of(parent)) == 1


def test_a_parent_of_one_is_the_segment_itself_and_the_title_is_what_of_the_path_was_indexed() -> None:
    table = segment(("Care",), "| a |", "table")
    picture = segment(("Care",), "a picture", "image", image="f.png", document="b.pdf")
    assert list(ParentSections([table, picture], 100)) == [table, picture]
    assert (tables_of(table), images_of(picture)) == ([table.id], ["f.png"])
    assert tables_of(picture) == images_of(table) == []
    whole = [Segment("a.pdf", "Alto 300", ("Care", name), "text", name, name) for name in ("Cleaning", "Lime")]
    for metadata, title in ((("Alto 300",), "Alto 300"), ((), "")):
        (parent,) = ParentSections([as_passage(each, metadata) for each in whole], 9)
        assert parent.title == title


ROWS = st.tuples(st.sampled_from("ab"), st.sampled_from(["", "c", "c/d", "c/e", "f"]), st.integers(1, 9))


@given(st.lists(ROWS, min_size=1, max_size=30), st.integers(1, 20))
def test_every_segment_is_in_one_parent_of_its_chapter(rows: list[tuple[str, str, int]], max_words: int) -> None:
    passages = [
        segment(tuple(filter(None, headings.split("/"))), " ".join(f"w{n}" for n in range(words)), document=document)
        for document, headings, words in rows
    ]
    starts = [*ParentSections(passages, max_words).starts, len(passages)]
    members = [passages[start:end] for start, end in pairwise(starts)]
    assert [each for group in members for each in group] == passages
    for group in (group for group in members if len(group) > 1):
        assert len({(each.metadata["document"], each.metadata["headings"][0]) for each in group}) == 1
        assert sum(word_count(each.text) for each in group) <= max_words


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(-3, 3)), min_size=1, max_size=30))
def test_a_parent_has_the_score_of_its_best_candidate(rows: list[tuple[bool, bool, int]]) -> None:
    starts = [place for place, (begins, _, _) in enumerate(rows) if begins or place == 0]
    places = [place for place, (_, candidate, _) in enumerate(rows) if candidate]
    expected: dict[int, int] = {}
    for place in places:
        parent = max(n for n, start in enumerate(starts) if start <= place)
        expected[parent] = max(expected.get(parent, -9), rows[place][2])
    given = np.array([float(rows[place][2]) for place in places])
    found, scores = best_of_parents(given, np.array(places, dtype=np.int64), np.array(starts, dtype=np.int64))
    assert dict(zip(found.tolist(), scores.tolist(), strict=True)) == expected
    assert found.tolist() == sorted(expected)
