"""Texts of pages in pieces."""

from hypothesis import given
from hypothesis import strategies as st

from harness.web.pieces import pieces


def test_whole_paragraphs_then_sentences_then_words() -> None:
    short, long = "One two three.", "Alba is a river. It ends in the sea. It is long."
    assert pieces(f"{short}\n\n{short}\n{short}", 10) == [f"{short}\n{short}\n{short}"]
    parts = [f"{short}\n{short}", "Alba is a river.", "It ends in the sea.\nIt is long.", short]
    assert pieces(f"{short}\n{short}\n{long}\n{short}", 8) == parts
    assert pieces("a b c d e f g", 3) == ["a b c", "d e f", "g"]
    assert pieces("川は海に流れる。長い川である。", 1) == ["川は海に流れる。", "長い川である。"]
    assert pieces(" \n\n ", 5) == []


@given(st.text(st.sampled_from("ab .?!\n。é\u2028\x00x"), max_size=400), st.integers(1, 20))
def test_nothing_is_lost_and_no_piece_is_too_long(text: str, max_words: int) -> None:
    made = pieces(text, max_words)
    assert "".join("".join(made).split()) == "".join(text.split())
    for piece in made:
        assert 0 < len(piece.split()) <= max_words
        assert len(piece.replace("\n", "")) <= 12 * max_words


def test_a_word_without_end_is_cut() -> None:
    assert [len(piece) for piece in pieces("x" * 1000, 20)] == [240, 240, 240, 240, 40]
