"""Encodings of text files: what pages say, as browsers read it; guesses by the letters of languages; their report."""

import pytest

from documents.reading.any_file import read_document


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("text", ["It\u2019s é", "東京都\n\n天気", "plain"])
def test_utf_16_without_a_mark(encoding: str, text: str) -> None:
    for name, markup in (("a.txt", text), ("a.html", f"<!doctype html><html><p>{text}</p>")):
        document = read_document(markup.encode(encoding), name)
        assert " ".join(getattr(block, "text", "") for block in document.blocks) == " ".join(text.split())
        assert document.left_out == ()


def test_characters_that_cannot_be_read_are_counted_and_an_unclear_encoding_is_said() -> None:
    mostly = "é und ä, ".encode() * 20 + b"\xe9\n"  # UTF-8 with one broken byte
    assert read_document(mostly, "a.txt").left_out == ("characters that cannot be read in utf-8: 1 x \ufffd",)
    page = b"<meta charset=gb2312><p>\xb1\xea\xcc\xe2 \xff\xff"
    assert read_document(page, "a.html").left_out == ("characters that cannot be read in gb18030: 2 x \ufffd",)
    assert "as its encoding is unclear" in read_document("Größe".encode("mac-roman"), "a.txt").left_out[0]
