"""What was left out, said once for each rule."""

from documents.left_out import LeftOut


def test_each_rule_is_one_line_with_its_first_text_and_parts_follow() -> None:
    left_out = LeftOut()
    left_out.append("page 7: broken")
    left_out.text("navigation left out", "  Next \n page of the manual about pumps and their oil, all of them")
    left_out.text("hidden text left out", "東京")  # two words, as everywhere
    left_out.text("navigation left out", "Home")
    left_out.text("hidden text left out", " - ")
    assert left_out.lines == (
        'navigation left out: 2 x, 14 words, e.g. "Next page of the manual about pumps and ..."',
        'hidden text left out: 1 x, 2 words, e.g. "東京"',
        "page 7: broken",
    )
