"""Numbers as lists write them: letters and Roman numerals."""

_ROMAN = ((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x"),
    (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))  # fmt: skip


def written(number: int, style: str) -> str:
    """A number in a style; unusual styles as a decimal number."""
    if style in ("lowerLetter", "upperLetter") and 0 < number < 1000:
        text = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1)
    elif style in ("lowerRoman", "upperRoman") and 0 < number < 4000:
        text, left = "", number
        for worth, letters in _ROMAN:
            text += letters * (left // worth)
            left %= worth
    elif style == "decimalZero":
        text = f"{number:02}"
    else:
        text = str(number)
    return text.upper() if style.startswith("upper") else text
