"""Relevance judgement of passages by the evidence of gold segments.

Hand-worked cases, and what must not change the verdict.
"""

from hypothesis import given
from hypothesis import strategies as st

from common.gold_segments import is_relevant
from common.records import GoldSegment, Passage

ANY = st.text(max_size=40)
PRESS = GoldSegment("press.pdf", ("Hold the self-test button for 12 seconds.",))
ROW = GoldSegment("press.pdf", ("E07", "Motor too hot", "85 °C"), kind="table")


def passage(text: str, document: str = "press.pdf", title: str = "") -> Passage:
    return Passage("1", text, title, metadata={"document": document})


def test_a_sentence_is_found_in_its_own_document_or_a_copy_of_it_only() -> None:
    twice = Passage.of("", "it weighs 9 kg", metadata={"document": "a.md", "copies": ["b.md"]})
    found = [is_relevant(twice, GoldSegment(name, ("9 kg",))) for name in ("a.md", "b.md", "c.md")]
    assert found == [True, True, False]
    text = "First start. Hold the self-test button for 12 seconds. The lamp lights."
    assert is_relevant(passage(text), PRESS)
    assert not is_relevant(passage(text, "drill.pdf"), PRESS)
    assert not is_relevant(Passage("1", text), PRESS)
    assert not is_relevant(passage("Something else.", title=PRESS.evidence[0]), PRESS)  # a heading is no evidence
    assert not is_relevant(passage(text.replace("12", "14")), PRESS)
    assert not is_relevant(passage(text.replace("12", "112")), PRESS)
    assert not is_relevant(passage("Hold the self-test button. It takes 12 seconds."), PRESS)


def test_in_chinese_blanks_beside_other_letters_do_not_count() -> None:
    gold = GoldSegment("press.pdf", ("每个 DDC 通道 16 个 NCO",))
    for text in ("* 每个DDC通道16个NCO", "（每个 DDC 通道16 个\nNCO）。", "带宽：每个 DDC 通道 16 个 NCO，可选"):
        assert is_relevant(passage(text), gold), text
    for text in ("每个 DDC 通道 8 个 NCO", "每 DDC 通道 16 个 NCO", "每个 DDC 通道 116 个 NCO"):
        assert not is_relevant(passage(text), gold), text


def test_line_breaks_hyphens_case_and_markdown_do_not_count() -> None:
    for text in (
        "Hold the self-test but-\nton for 12\nseconds.",
        "Hold the self-\ntest button for 12 seconds",
        "hold the **self\u2011test** button for 12&nbsp;seconds\\.",
        "Hold the selftest button for *12 seconds*.",
        "Hold the self\u00ad-test button<br>for 12 seconds.",
        "Hold the self-test but\x02ton for 12 sec\ufffe\r\nonds.",
    ):
        assert is_relevant(passage(text), PRESS), text


def test_a_row_is_found_in_every_notation_if_all_its_cells_are_there() -> None:
    for text in (
        "| Code | Cause | Limit |\n|---|---|---|\n| E06 | No water | 5 °C |\n| E07 | Motor too hot | 85 °C |",
        "<tr><td>E07</td><td>Motor too<br/>hot</td><td>85 °C</td></tr>".replace("<td>", " ").replace("</td>", " "),
        "E07 Motor too hot 85 ℃",
        "85 °C E07\nMotor too hot",
    ):
        assert is_relevant(passage(text), ROW), text
    assert not is_relevant(passage("| E07 | Motor too hot | 35 °C |"), ROW)
    assert not is_relevant(passage("| E07 | Motor too hot |"), ROW)


def test_a_cell_without_a_word_is_no_condition() -> None:
    assert is_relevant(passage("| E07 | Motor too hot | \u2013 |"), GoldSegment("press.pdf", ("E07", "\u2013")))
    assert not is_relevant(passage(""), GoldSegment("press.pdf", ("E07", "\u2013")))


@given(ANY, ANY, ANY.filter(lambda text: any(map(str.isalnum, text))))
def test_what_stands_before_and_after_does_not_count(before: str, after: str, evidence: str) -> None:
    gold = GoldSegment("press.pdf", (evidence,))
    assert is_relevant(passage(evidence), gold)
    assert is_relevant(passage(f"{before}\n\n. {evidence}\n\n. {after}"), gold)
