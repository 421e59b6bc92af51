"""Where points of a PDF page's own coordinates stand on the page as it is shown.

From the top left corner, turned and cropped.
"""

from typing import TYPE_CHECKING, NamedTuple

from documents.pdf.page import Box, box_of

if TYPE_CHECKING:
    from pypdfium2 import PdfPage


class PlacementMatrix(NamedTuple):
    """An affine map: x' = a x + c y + e, y' = b x + d y + f."""

    a: float
    b: float
    c: float
    d: float
    e: float
    f: float

    def then(self, after: "PlacementMatrix") -> "PlacementMatrix":
        """The map that applies this one first and `after` to its result."""
        return PlacementMatrix(
            self.a * after.a + self.b * after.c,
            self.a * after.b + self.b * after.d,
            self.c * after.a + self.d * after.c,
            self.c * after.b + self.d * after.d,
            self.e * after.a + self.f * after.c + after.e,
            self.e * after.b + self.f * after.d + after.f,
        )

    def point(self, x: float, y: float) -> tuple[float, float]:
        """Where a point comes to lie."""
        return self.a * x + self.c * y + self.e, self.b * x + self.d * y + self.f

    def box(self, left: float, bottom: float, right: float, top: float) -> Box:
        """The upright rectangle around a rectangle's image."""
        return box_of(self.point(x, y) for x in (left, right) for y in (bottom, top))


def placement(page: "PdfPage") -> PlacementMatrix:
    """From the page's own coordinates to those it is shown with.

    Its own are points from the bottom left of its media, before rotation.
    """
    left, bottom, right, top = visible_area(page)
    match page.get_rotation():
        case 90:
            return PlacementMatrix(0, 1, 1, 0, -bottom, -left)
        case 180:
            return PlacementMatrix(-1, 0, 0, 1, right, -bottom)
        case 270:
            return PlacementMatrix(0, -1, -1, 0, top, right)
        case _:
            return PlacementMatrix(1, 0, 0, -1, -left, top)


def visible_area(page: "PdfPage") -> tuple[float, float, float, float]:
    """Left, bottom, right and top of what a page shows (its crop box within its media box), in its coordinates."""
    return page.get_bbox()
