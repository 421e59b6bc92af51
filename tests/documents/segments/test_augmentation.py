"""Cascaded metadata: blocks to segments, by hand and by a reference that walks the tree."""

from hypothesis import given
from hypothesis import strategies as st

from documents.records import Block, Document, Heading, Image, Paragraph, Segment, Table
from documents.segments.augmentation import passages, sections, segments

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


def of(*blocks: Block, max_words: int = 200) -> list[Segment]:
    return segments(Document("p.pdf", "Pump", blocks), max_words)


def test_text_under_a_heading_is_one_segment_with_its_path_and_pages() -> None:
    found = of(
        Paragraph("Before.", 1),
        Heading("1 Setup", 1, 1), Paragraph("First.", 1), Paragraph("- a\n- b", 2),
        Heading("1.1 Sleep mode", 2, 2),
        Heading("2 Use", 1, 3), Paragraph("Third.", 3),
        Heading("2 Use", 1, 3), Paragraph("Third.", 3),
    )  # fmt: skip
    assert [(s.path, s.text, s.page, s.last_page) for s in found] == [
        (("Pump",), "Before.", 1, 1),
        (("Pump", "1 Setup"), "First.\n- a\n- b", 1, 2),
        (("Pump", "1 Setup", "1.1 Sleep mode"), "1.1 Sleep mode", 2, 2),  # with nothing below
        *[(("Pump", "2 Use"), "Third.", 3, 3)] * 2,
    ]
    assert {(s.kind, s.document, s.part, s.parts) for s in found} == {("text", "p.pdf", 1, 1)}
    assert len({passage.id for passage in passages(found)}) == len(found)
    cascades = [passages(found)[1], passages(found, "heading")[1], passages(found, "none")[1]]
    assert [passage.title for passage in cascades] == ["Pump > 1 Setup", "1 Setup", ""]
    for passage in cascades:
        assert (passage.id, passage.text) == (cascades[0].id, "First.\n- a\n- b")
        assert (passage.metadata or {})["headings"] == ["1 Setup"]


def test_levels_may_be_skipped() -> None:
    found = sections([Heading(name, level) for name, level in zip("ABCDEF", (3, 5, 4, 1, 6, 2), strict=True)])
    assert [" ".join(section.headings) for section in found] == ["", "A", "A B", "A C", "D", "D E", "D F"]
    assert [section.is_leaf for section in found[1:]] == [False, True, True, False, True, True]


HEADINGS = st.builds(Heading, st.sampled_from("ABC"), st.integers(1, 6))


@given(st.lists(st.one_of(HEADINGS, st.builds(Paragraph, st.sampled_from("xyz")))))
def test_paths_are_those_of_the_tree(blocks: list[Block]) -> None:
    def path(place: int) -> tuple[str, ...]:
        """The nearest heading before a place, and before it the nearest one that is higher, and so on."""
        found: list[Heading] = []
        for block in reversed(blocks[:place]):
            if isinstance(block, Heading) and (not found or block.level < found[-1].level):
                found.append(block)
        return tuple(block.text for block in reversed(found))

    expected: list[tuple[tuple[str, ...], str]] = []
    for place, block in enumerate(blocks):
        if isinstance(block, Paragraph):
            if place and isinstance(blocks[place - 1], Paragraph):
                expected[-1] = (expected[-1][0], f"{expected[-1][1]}\n{block.text}")
            else:
                expected.append((path(place), block.text))
        elif isinstance(block, Heading):
            after = blocks[place + 1 :][:1]
            if not after or (isinstance(after[0], Heading) and after[0].level <= block.level):
                expected.append((path(place + 1), block.text))
    assert [(s.headings, s.text) for s in of(*blocks)] == expected


def test_a_table_is_embedded_without_its_data_and_returned_whole() -> None:
    rows = (("Rating", "Rating", "Unit"), ("Name", "Max", "Unit"), ("Voltage", "13", "V"), ("", "14", "V"))
    ratings = Table((*rows, ("7", "15", "A")), 2, "Table 1: Ratings", 2)
    text, found = of(Heading("1 Data", 1, 1), Paragraph("Zero. The pump is strong. See the limits below.", 1), ratings)
    assert text.text == "Zero. The pump is strong. See the limits below.\nTable 1: Ratings"
    assert (text.page, text.last_page) == (1, 2)
    assert found.kind == "table"
    context = "The pump is strong. See the limits below."
    assert found.embedded == f"{context}\nTable 1: Ratings\nRating Unit\nName Max Unit\nVoltage"
    assert found.text.startswith("Table 1: Ratings\n\n| Rating | Rating | Unit |\n| --- | --- | --- |\n| Name |")
    assert "| 7 | 15 | A |" in found.text
    assert (found.page, found.headings) == (2, ("1 Data",))
    (_, passage) = passages([text, found])
    assert "13" not in passage.indexed.split()
    assert passage.indexed.startswith("Pump > 1 Data The pump is strong.")


def test_a_long_table_is_split_by_rows() -> None:
    long = Table((("Part", "Size"), *((f"part {n}", f"{n}") for n in range(30))), caption="Table 2", page=1)
    found = of(Heading("Sizes", 1), long, max_words=34)
    assert [(s.part, s.parts) for s in found] == [(1, 3), (2, 3), (3, 3)]
    assert all("| Part | Size |" in s.text and s.text.startswith("Table 2\n") for s in found)
    assert "part 0" in found[0].embedded
    assert "part 0" not in found[1].embedded


def test_an_image_is_embedded_by_caption_context_and_its_text() -> None:
    image = Image(PNG, ".png", "Figure 1: Wiring", "L1 N PE", 3)
    before, after = "Open it. Take the cover off. Look inside.", "Then close. Go on. End."
    text, found = of(Heading("Wiring", 1), Paragraph(before), image, Paragraph(after))
    assert text.text == f"{before}\nFigure 1: Wiring\n{after}"
    assert found.text == "Figure 1: Wiring\nTake the cover off. Look inside.\nThen close. Go on."
    assert found.embedded == found.text + "\nL1 N PE"
    assert (found.kind, found.image, found.page) == ("image", image.file, 3)
    (alone,) = of(Heading("Wiring", 1), Image(PNG, ".png"))
    assert (alone.text, alone.embedded) == ("Wiring", "Wiring")
    _, found = of(Paragraph("word " * 500), Image(PNG, ".png", "Figure 1"), Paragraph("other " * 500), max_words=9999)
    assert found.text.split() == ["Figure", "1", *["word"] * 40, *["other"] * 40]  # the context is short


def test_a_long_text_is_split_with_its_path_and_own_pages() -> None:
    paragraphs = [Paragraph(f"Paragraph {n} has six words here.", n) for n in range(1, 11)]
    found = of(Heading("A", 1, 1), *paragraphs, max_words=30)
    assert [(s.part, s.parts, s.page, s.last_page) for s in found] == [(1, 2, 1, 5), (2, 2, 6, 10)]
    assert "\n".join(s.text for s in found) == "\n".join(paragraph.text for paragraph in paragraphs)
    assert {s.headings for s in found} == {("A",)}
