"""Formatting by a language model.

Windows, calibration, levels by numbers, padding, garbled and missing replies.
"""

import random
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import UnavailableError
from documents.records import Block, Document, Heading, Image, Paragraph, Table
from documents.segments.splitting import word_count
from harness.indexing.documents.formatter import LlmFormatter
from harness.indexing.documents.windows import windows
from harness.llm.endpoint import ChatEndpoint
from tests.helpers.scripted_lm import FormattingLm

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
LINE = f"![Figure 1: Wiring](images/{Image(PNG, '.png').file})"
HEADINGS = {"Setup": "1 Setup", "Power supply": "1.1 Power supply", "Fuses": "1.1.1 Fuses", "Use": "2 Use"}


def prose(name: str) -> Paragraph:
    """Forty words that stand nowhere else."""
    return Paragraph(" ".join(f"{name}{n}" for n in range(40)) + ".", 1)


def manual() -> Document:
    """A document whose headings were read as flat: the first as prose, the others on one level."""
    blocks: list[Block] = [
        Paragraph("Setup", 1), prose("alpha"), Heading("Power supply", 1, 1), prose("beta"),
        Table((("Part", "Volt"), ("pump", "230")), 1, "Table 1: Ratings", 2),
        Image(PNG, ".png", "Figure 1: Wiring", page=2), Heading("Fuses", 1, 2), replace(prose("gamma"), page=2),
        Heading("Use", 1, 3), replace(prose("delta"), page=3),
    ]  # fmt: skip
    return Document("a.pdf", "Pump", tuple(blocks), 3)


EXPECTED = (
    Heading("1 Setup", 1, 1), prose("alpha"), Heading("1.1 Power supply", 2, 1), prose("beta"),
    Table((("Part", "Volt"), ("pump", "230")), 1, "Table 1: Ratings", 2),
    Image(PNG, ".png", "Figure 1: Wiring", page=2), Heading("1.1.1 Fuses", 3, 2), replace(prose("gamma"), page=2),
    Heading("2 Use", 1, 3), replace(prose("delta"), page=3),
)  # fmt: skip


def perfect(window: str, before: str = "", after: str = "") -> str:
    """What a model replies that follows the instructions."""
    return "\n\n".join(f"# {HEADINGS[part]}" if part in HEADINGS else part for part in window.split("\n\n"))


def convert(lm: FormattingLm, *documents: Document, **options: object) -> list[Document]:
    return LlmFormatter(lm, **{"window_words": 60, "padding_words": 8, **options}).convert(documents or [manual()])  # type: ignore[arg-type]


PERFECT = [
    *((perfect, {"window_words": words}) for words in (40, 60, 10_000)),
    # what it converts of the padding is left out; of few words, that a reply has too many is no sign
    *((lambda *parts: "\n\n".join((parts[1], perfect(parts[0]), parts[2])), {"padding_words": n}) for n in (4, 8)),
    (lambda window, *_: f"```markdown\n{perfect(window)}\n```", {}),
    (lambda window, *_: perfect(window).replace(LINE, f"{LINE}\n\n{LINE}"), {}),
]


@pytest.mark.parametrize(("reply", "options"), PERFECT)
def test_a_perfect_reply_gives_levels_by_numbers_and_keeps_pages_images_and_tables(reply, options) -> None:
    (document,) = convert(FormattingLm(reply), **options)
    assert document == replace(manual(), blocks=EXPECTED)


def test_a_paragraph_longer_than_a_window_is_several_and_a_forgotten_image_stands_once() -> None:
    (document,) = convert(FormattingLm(perfect), window_words=15)
    assert not document.left_out
    found, expected = ([each for each in some if isinstance(each, Heading)] for some in (document.blocks, EXPECTED))
    assert found == expected
    (document,) = convert(FormattingLm(lambda window, *_: perfect(window).replace(LINE, "")))
    assert sum(isinstance(block, Image) for block in document.blocks) == 1


def test_each_window_is_asked_with_the_one_before_and_documents_together() -> None:
    lm = FormattingLm(perfect)
    formatter = LlmFormatter(lm, 60, 8)
    first, second = formatter.convert([manual(), Document("b.pdf", "B", (Paragraph("Use"), prose("omega")))])
    assert (first.blocks, second.blocks[0]) == (EXPECTED, Heading("2 Use", 1))
    assert [len(chats) for chats in lm.asked] == [2, 1, 1, 1]
    assert (formatter.costs["model_calls"], formatter.costs["tokens"]) == (5.0, 50.0)
    assert [message.role for message in lm.asked[0][0].messages] == ["system", "user"]
    for (earlier, *_), (chat,) in pairwise(lm.asked):
        system, previous, reply, _ = chat.messages
        assert (system, previous, reply.role) == (earlier.messages[0], earlier.messages[-1], "assistant")
    assert lm.asked[1][0].messages[2].content.startswith("# 1 Setup\n\nalpha0 alpha1")


def test_windows_are_padded() -> None:
    found = windows(manual(), 60, 8)
    for earlier, window in pairwise(found):
        assert window.before.split() == earlier.text.split()[-8:]
        assert earlier.after.split() == (window.text + "\n\n" + window.after).split()[:8]
    assert found[0].before == found[-1].after == windows(manual(), 60, 0)[1].before == ""
    assert [window.text.split()[0] for window in found] == ["Setup", "Power", "![Figure", "Use"]  # headings with texts


@given(st.lists(st.integers(1, 90), min_size=1, max_size=8), st.integers(5, 50), st.integers(0, 20))
def test_windows_hold_every_word_once(lengths: list[int], window_words: int, padding_words: int) -> None:
    blocks = tuple(Paragraph(" ".join(f"w{place}x{n}" for n in range(length))) for place, length in enumerate(lengths))
    found = windows(Document("a", "T", blocks), window_words, padding_words)
    assert " ".join(window.text for window in found).split() == " ".join(block.text for block in blocks).split()
    assert all(word_count(window.text) <= window_words for window in found)


def shuffled(window: str, *_: str) -> str:
    words = window.split()
    random.Random(1).shuffle(words)
    return " ".join(words)


GARBLED = [
    (lambda window, *_: window[: len(window) // 2], "% of the words lost"),
    (lambda window, *_: window + " and much more" * 20, "% of the words invented"),
    (lambda *_: "", "no text"),
    (lambda *_: "I am sorry, but I cannot help with that request.", "100% of the words lost"),
    (shuffled, "the text mixed up"),
    (lambda window, *_: perfect(window) if window.startswith("Setup") else "FAILS", "3 x no reply (HTTP 500)"),
]


@pytest.mark.parametrize(("garble", "reason"), GARBLED)
def test_a_document_that_the_model_garbles_keeps_its_first_reading(garble: object, reason: str) -> None:
    (document,) = convert(FormattingLm(garble))  # type: ignore[arg-type]
    assert document.blocks == manual().blocks
    (note,) = document.left_out
    assert note.startswith("all windows as read without formatting: ")
    assert reason in note


def test_one_garbled_window_keeps_its_first_reading_and_calibrates_the_next() -> None:
    lm = FormattingLm(lambda window, *rest: "" if "beta1 " in window else perfect(window))
    (document,) = convert(lm)
    assert document.left_out == ("1 of 4 windows as read without formatting: 1 x no text",)
    assert document.blocks == (*EXPECTED[:2], Heading("Power supply", 1, 1), *EXPECTED[3:])
    assert lm.asked[2][0].messages[2].content.startswith("# Power supply\n\nbeta0 ")


def test_levels_of_numbered_and_unnumbered_headings() -> None:
    headings = {"# 3.2.1. Pumps": 3, "# Appendix B.2 Tables": 2, "# Chapter 4 Use": 1, "# A.1 Forms": 2, "### Notes": 3,
                "# A guide": 1, "## 2024 report": 2, "# 1.2.3.4.5.6.7.8 Deep": 6}  # fmt: skip
    names = [line.lstrip("# ") for line in headings]
    document = Document("a", "T", tuple(Paragraph(name) for name in names))
    (found,) = convert(FormattingLm(lambda *_: "\n\n".join(headings)), document)
    levels = {block.text: block.level for block in found.blocks if isinstance(block, Heading)}
    assert levels == dict(zip(names, headings.values(), strict=True))


def test_a_dead_endpoint_is_one_line() -> None:
    dead = ChatEndpoint("m", "http://127.0.0.1:9/v1", key_variable=None, max_retries=0, cache=None)
    with pytest.raises(UnavailableError, match=r"127\.0\.0\.1:9"):
        LlmFormatter(dead).convert([manual()])


def test_empty_documents() -> None:
    empty = Document("a", "T", ())
    assert convert(FormattingLm(perfect), empty) == [empty]
    assert LlmFormatter(FormattingLm(perfect)).convert([]) == []
