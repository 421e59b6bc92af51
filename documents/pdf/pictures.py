"""Pictures of a page as files.

A bitmap's own JPEG data where it is shown as it is, else a rendering of the area as PNG.
"""

import io
from ctypes import byref, c_char, c_ubyte, c_uint
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from documents.pdf.page import Box
from documents.pdf.page_objects import PageObject, bounds, clip, objects, own_matrix

if TYPE_CHECKING:
    from pypdfium2 import PdfPage

MAX_PIXELS = 2000  # of a picture's longer side
MIN_PIXELS = 4.0  # of its shorter side
DRAWING_SCALE = 2.0  # pixels a point of a drawing: 144 to the inch
MARGIN = 1.0  # points around what is rendered, as half of a line is outside of the path that it is drawn along
LARGEST_SCALE = 6.0  # pixels a point of a bitmap
MAX_BYTES = 4_000_000  # of a JPEG that is taken as it is
SAME_PLACE = 1.0  # points


class Picture(NamedTuple):
    """A picture's file."""

    data: bytes
    suffix: Literal[".png", ".jpg"]


class Pictures:
    """Makes files of the pictures of a page.

    Args:
        page: An open page.
    """

    def __init__(self, page: "PdfPage") -> None:
        self._page = page
        self._bitmaps: list[tuple[Box, PageObject]] | None = None

    def bitmap(self, box: Box) -> Picture | None:
        """The bitmap shown in a box; None if it is of one color."""
        item = self._object(box)
        if item is None:
            return self.rendered(box)
        width, height = _pixels(item)
        if max(width, height) <= MAX_PIXELS and _is_upright(item) and (data := self._jpeg(item, width, height)):
            return Picture(data, ".jpg")
        return self.rendered(box, min(max(width, height) / max(*_sides(box), 1.0), LARGEST_SCALE))

    def rendered(self, box: Box, scale: float = DRAWING_SCALE) -> Picture | None:
        """What is shown in a box, as PNG; None if it is of one color.

        Args:
            box: On the page as shown.
            scale: Pixels a point; less where the picture would be larger than `MAX_PIXELS`.
        """
        width, height = self._page.get_size()
        shorter, longer = sorted(max(side, 0.1) for side in _sides(box))
        scale = max(min(scale, MAX_PIXELS / longer), min(MIN_PIXELS / shorter, LARGEST_SCALE))
        edges = (box.left, height - box.bottom, width - box.right, box.top)
        crop = tuple(max(edge - MARGIN, 0.0) for edge in edges)
        picture = self._page.render(scale=scale, crop=crop, draw_annots=False).to_pil().convert("RGB")
        if all(low == high for low, high in picture.getextrema()):
            return None
        data = io.BytesIO()
        picture.save(data, "PNG")
        return Picture(data.getvalue(), ".png")

    def _object(self, box: Box) -> PageObject | None:
        """The topmost bitmap that is shown in a box and not clipped."""
        from pypdfium2 import raw

        if self._bitmaps is None:
            images = [item for item in objects(self._page) if item.kind == raw.FPDF_PAGEOBJ_IMAGE]
            self._bitmaps = [(place, item) for item in images if (place := bounds(item))]
        for place, item in reversed(self._bitmaps):
            if _same(place, box) and ((clipped := clip(item)) is None or _same(_meet(place, clipped), box)):
                return item
        return None

    def _jpeg(self, item: PageObject, width: int, height: int) -> bytes | None:
        """A bitmap's JPEG data, if it is that of a gray or colored picture without a mask."""
        from PIL import Image, UnidentifiedImageError
        from pypdfium2 import PdfBitmap, raw

        if _filters(item)[-1:] != ["DCTDecode"]:
            return None
        length = raw.FPDFImageObj_GetImageDataDecoded(item.handle, None, 0)  # all filters but DCTDecode are undone
        if not 0 < length <= MAX_BYTES:
            return None
        data = (c_ubyte * length)()
        raw.FPDFImageObj_GetImageDataDecoded(item.handle, data, length)
        try:
            with Image.open(io.BytesIO(bytes(data)), formats=("JPEG",)) as picture:
                if picture.mode not in ("L", "RGB") or picture.size != (width, height):
                    return None
        except (UnidentifiedImageError, OSError):
            return None
        rendered: Any = raw.FPDFImageObj_GetRenderedBitmap(self._page.pdf, self._page, item.handle)
        if not rendered:
            return None
        shown = PdfBitmap.from_raw(rendered).to_pil()
        masked = "A" in shown.getbands() and shown.getchannel("A").getextrema()[0] < 255
        return None if masked else bytes(data)


def _pixels(item: PageObject) -> tuple[int, int]:
    from pypdfium2 import raw

    width, height = c_uint(), c_uint()
    raw.FPDFImageObj_GetImagePixelSize(item.handle, byref(width), byref(height))
    return width.value, height.value


def _filters(item: PageObject) -> list[str]:
    """Names of the filters that a bitmap's data goes through, in the order that they are undone."""
    from pypdfium2 import raw

    names = []
    for index in range(raw.FPDFImageObj_GetImageFilterCount(item.handle)):
        name = (c_char * 32)()
        raw.FPDFImageObj_GetImageFilter(item.handle, index, name, len(name))
        names.append(name.value.decode("ascii", "replace"))
    return names


def _is_upright(item: PageObject) -> bool:
    """Whether a bitmap is shown neither turned nor mirrored."""
    matrix = own_matrix(item.handle).then(item.placed)
    slant = max(abs(matrix.b), abs(matrix.c))
    return matrix.a > 0 > matrix.d and slant < 0.01 * min(matrix.a, -matrix.d)


def _sides(box: Box) -> tuple[float, float]:
    return box.right - box.left, box.bottom - box.top


def _same(one: Box, other: Box) -> bool:
    return all(abs(a - b) <= SAME_PLACE for a, b in zip(one, other, strict=True))


def _meet(one: Box, other: Box) -> Box:
    left, top = max(one.left, other.left), max(one.top, other.top)
    return Box(left, top, min(one.right, other.right), min(one.bottom, other.bottom))
