"""House styles of the library's manuals: page, fonts, numbering, tables, captions, headers."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ManualStyle:
    """How a family's manuals look."""

    page: tuple[float, float]  # width and height, points
    columns: int
    fonts: tuple[str, str, str]  # text, bold, headings
    size: float  # of the text, points
    numbering: str  # of headings: "1.2", "1.2.", "chapters" or "" for none
    tables: str  # ruled, booktabs or shaded
    table: str  # how a table is called
    figure: str
    caption_end: str  # between the number and the caption's text
    header: str  # template of the running header: {name}, {kind}, {chapter}
    footer: str
    justified: bool = False
    contents: bool = False  # whether there is a table of contents
    bookmarks: bool = False
    hyphens: bool = False
    file_title: str | None = "{title}"  # of the PDF's properties
    color: str = "#000000"  # of headings

    def numbered(self, text: str, counts: list[int]) -> str:
        """A heading with its number."""
        number = ".".join(map(str, counts))
        if self.numbering == "chapters":
            return f"Chapter {number}: {text}" if len(counts) == 1 else text
        return f"{number}{self.numbering.removeprefix('1.2')} {text}" if self.numbering else text

    def caption(self, kind: str, number: int, text: str) -> str:
        """A caption with its number."""
        return f"{(self.table if kind == 'table' else self.figure).format(number=number)}{self.caption_end}{text}"


A4, LETTER = (595.28, 841.89), (612.0, 792.0)
HELVETICA = ("Helvetica", "Helvetica-Bold", "Helvetica-Bold")
TIMES = ("Times-Roman", "Times-Bold", "Helvetica-Bold")
VERA = ("Vera", "VeraBd", "VeraBd")
STYLES = {
    "ruled": ManualStyle(A4, 1, HELVETICA, 9.5, "1.2", "ruled", "Table {number}", "Figure {number}", ": ", "{name}",
    "{page}",
        contents=True, bookmarks=True),
    "columns": ManualStyle(A4, 2, TIMES, 9.5, "1.2", "booktabs", "Table {number}", "Figure {number}", ". ",
    "{name}|{kind}",
        "Page {page}", justified=True, hyphens=True),
    "shaded": ManualStyle(A4, 1, VERA, 8.2, "", "shaded", "Table {number}", "Picture {number}", ": ", "{chapter}",
    "{page}",
        contents=True, bookmarks=True, color="#7a2a10"),
    "letter": ManualStyle(LETTER, 1, ("Helvetica", "Helvetica-Bold", "Times-Bold"), 9.5, "chapters", "shaded",
        "Table {number}", "Figure {number}", " - ", "{kind}|{name}", "{page}", contents=True, file_title=None),
    "compact": ManualStyle(A4, 2, HELVETICA, 8.5, "1.2.", "shaded", "Tab. {number}", "Fig. {number}", " ",
    "{name}|{chapter}",
        "{page} / {kind}", bookmarks=True, color="#10406a"),
    "booktabs": ManualStyle(LETTER, 1, TIMES, 10.5, "1.2", "booktabs", "Table {number}", "Figure {number}", ": ",
        "{chapter}|{name}", "{page}", justified=True, file_title="Microsoft Word - manual_final_2.docx"),
}  # fmt: skip
