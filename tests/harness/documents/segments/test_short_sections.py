"""Short sections that are read together: hand-worked groups, what a joined text holds, invariances."""

from hypothesis import given
from hypothesis import strategies as st

from common.documents import Document, Heading, Image, Paragraph, Table
from harness.documents.segments.augmentation import segments
from harness.documents.segments.sections import Section, sections
from harness.documents.segments.short_sections import as_one, grouped
from harness.documents.segments.splitting import word_count


def section(path: str, words: int) -> Section:
    return Section(tuple(path.split()), [Paragraph(" ".join(["word"] * words))] if words else [])


def paths(groups: list[list[Section]]) -> list[str]:
    return [" + ".join(" ".join(each.headings) for each in group) for group in groups]


def test_groups_by_hand() -> None:
    found = [section("A a", 30), section("A b", 20), section("A c", 50), section("A d", 10), section("B a", 5)]
    # a and b make 50, no longer short, and d alone is short: it joins c; B is another chapter
    assert paths(grouped(found, 50, 100)) == ["A a + A b", "A c + A d", "B a"]
    assert paths(grouped(found, 0, 100)) == ["A a", "A b", "A c", "A d", "B a"]
    assert paths(grouped(found, 50, 40)) == ["A a", "A b", "A c", "A d", "B a"]  # no two fit


def test_the_shared_headings_become_fewer() -> None:
    found = [section("A a i", 9), section("A a ii", 9), section("A b", 9)]
    assert paths(grouped(found, 100, 100)) == ["A a i + A a ii + A b"]
    one = as_one(grouped(found, 100, 100)[0])
    assert one.headings == ("A",)
    assert [block.text.partition(" word")[0] for block in one.blocks if isinstance(block, Paragraph)] == [
        "a > i", "word", "a > ii", "word", "b", "word"
    ]  # fmt: skip


def test_the_title_alone_joins_no_chapters() -> None:
    assert len(grouped([section("A", 1), section("B", 1)], 100, 100)) == 2
    assert len(grouped([Section((), [Paragraph("x")]), section("A", 1)], 100, 100)) == 2


def test_tables_and_images_keep_the_path_of_their_own_section() -> None:
    blocks = (
        Heading("Use", 1), Heading("Start", 2), Paragraph("Hold the button."), Heading("Data", 2),
        Paragraph("See below."), Table((("part", "force"), ("button", "9 N"))), Image(b"x", ".png", "Figure 1: it"),
    )  # fmt: skip
    made = segments(Document("a.pdf", "Alto", blocks), least_words=50)
    assert [(each.kind, each.headings) for each in made] == [
        ("text", ("Use",)), ("table", ("Use", "Data")), ("image", ("Use", "Data"))
    ]  # fmt: skip
    assert made[0].text.split("\n") == ["Start", "Hold the button.", "Data", "See below.", "Figure 1: it"]


TREES = st.lists(st.tuples(st.lists(st.sampled_from("ab"), min_size=1, max_size=3), st.integers(0, 12)), max_size=12)


@given(TREES, st.integers(0, 30), st.integers(1, 30))
def test_nothing_is_lost_and_no_group_is_too_long(tree: list, least: int, most: int) -> None:
    found = [section(" ".join(path), words) for path, words in tree]
    groups = grouped(found, least, most)
    assert [each for group in groups for each in group] == found
    for group in groups:
        shared = as_one(group).headings
        assert shared or len(group) == 1
        assert all(each.headings[: len(shared)] == shared for each in group)
        words = [sum(word_count(block.text) for block in each.blocks if isinstance(block, Paragraph)) for each in group]
        assert sum(words) <= most or len(group) == 1


def test_without_the_option_segments_are_the_sections() -> None:
    blocks = [Heading("A", 1), Paragraph("x"), Heading("B", 2), Paragraph("y")]
    made = segments(Document("a", "T", tuple(blocks)))
    assert [each.headings for each in made] == [each.headings for each in sections(blocks) if each.blocks]
