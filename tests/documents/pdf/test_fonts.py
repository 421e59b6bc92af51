"""Weight, slant and width of fonts by their names."""

import pytest

from documents.pdf.fonts import base_name, is_bold, is_italic, is_monospaced


@pytest.mark.parametrize(
    ("name", "bold", "italic", "monospaced"),
    [
        ("Helvetica", False, False, False),
        ("Helvetica-Bold", True, False, False),
        ("Helvetica-BoldOblique", True, True, False),
        ("TimesNewRomanPS-BoldItalicMT", True, True, False),
        ("Arial,Bold", True, False, False),
        ("NimbusRomNo9L-Medi", True, False, False),
        ("NimbusRomNo9L-MediItal", True, True, False),
        ("NimbusRomNo9L-ReguItal", False, True, False),
        ("NimbusMonL-Regu", False, False, True),
        ("Roboto-Medium", False, False, False),
        ("OpenSans-Semibold", True, False, False),
        ("Courier-Bold", True, False, True),
        ("DejaVuSansMono-Oblique", False, True, True),
        ("MonotypeCorsiva", False, False, False),
        ("CMR10", False, False, False),
        ("CMBX12", True, False, False),
        ("CMTI10", False, True, False),
        ("CMSLTT10", False, True, True),
        ("CMTT9", False, False, True),
        ("SFBX1095", True, False, False),
        ("t1xtt", False, False, True),
        ("LiberationMono", False, False, True),
        ("FuturaStd-Heavy", True, False, False),
    ],
)
def test_style_of_a_name(name: str, bold: bool, italic: bool, monospaced: bool) -> None:
    assert (is_bold(name), is_italic(name), is_monospaced(name)) == (bold, italic, monospaced)


def test_the_prefix_of_a_subset_is_no_part_of_the_name() -> None:
    assert base_name("ABCDEF+Times-Bold") == "Times-Bold"
    assert base_name("Times-Bold") == "Times-Bold"
