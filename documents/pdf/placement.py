"""Where points of a PDF page's own coordinates stand on the page as it is shown.

From the top left corner, turned and cropped.
"""

from pypdfium2 import PdfMatrix, PdfPage

from documents.pdf.page import Box


def placed_box(placed: PdfMatrix, left: float, bottom: float, right: float, top: float) -> Box:
    """The upright rectangle around a rectangle's image."""
    return Box(*placed.on_rect(left, bottom, right, top))


def placement(page: PdfPage) -> PdfMatrix:
    """From the page's own coordinates to those it is shown with.

    Its own are points from the bottom left of its media, before rotation. It shows its crop box within its media box.
    """
    left, bottom, right, top = page.get_bbox()
    match page.get_rotation():
        case 90:
            return PdfMatrix(0, 1, 1, 0, -bottom, -left)
        case 180:
            return PdfMatrix(-1, 0, 0, 1, right, -bottom)
        case 270:
            return PdfMatrix(0, -1, -1, 0, top, right)
        case _:
            return PdfMatrix(1, 0, 0, -1, -left, top)
