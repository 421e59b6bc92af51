"""Pictures of a page as files.

A bitmap's own JPEG data where it is shown as it is, else a rendering of the area as PNG.
"""

import io
from typing import Literal

from PIL import Image, UnidentifiedImageError
from pypdfium2 import PdfImage, PdfiumError, PdfPage, raw

from documents.pdf.page import Box
from documents.pdf.page_objects import PageObject, bounds, clipped, objects

MAX_PIXELS = 2000  # of a picture's longer side
MIN_PIXELS = 4.0  # of its shorter side
DRAWING_SCALE = 2.0  # pixels a point of a drawing: 144 to the inch
MARGIN = 1.0  # points around what is rendered, as half of a line is outside of the path that it is drawn along
LARGEST_SCALE = 6.0  # pixels a point of a bitmap
MAX_BYTES = 4_000_000  # of a JPEG that is taken as it is
SAME_PLACE = 1.0  # points


Picture = tuple[bytes, Literal[".png", ".jpg"]]  # a file, and its suffix


class Pictures:
    """Makes files of the pictures of a page.

    Args:
        page: An open page.
    """

    def __init__(self, page: PdfPage) -> None:
        self._page = page
        self._bitmaps = [
            (place, item)
            for item in objects(page)
            if item.item.type == raw.FPDF_PAGEOBJ_IMAGE and (place := bounds(item))
        ]

    def bitmap(self, box: Box) -> Picture | None:
        """The bitmap shown in a box; None if it is of one color."""
        item = self._object(box)
        if item is None:
            return self.rendered(box)
        image = item.item
        longer = max(image.get_px_size())
        if longer <= MAX_PIXELS and _is_upright(item) and (data := _jpeg(image)):
            return data, ".jpg"
        return self.rendered(box, min(longer / max(box.width, box.height, 1.0), LARGEST_SCALE))

    def rendered(self, box: Box, scale: float = DRAWING_SCALE) -> Picture | None:
        """What is shown in a box, as PNG; None if it is of one color.

        Args:
            box: On the page as shown.
            scale: Pixels a point; less where the picture would be larger than `MAX_PIXELS`.
        """
        width, height = self._page.get_size()
        shorter, longer = sorted(max(side, 0.1) for side in (box.width, box.height))
        scale = max(min(scale, MAX_PIXELS / longer), min(MIN_PIXELS / shorter, LARGEST_SCALE))
        edges = (box.left, height - box.bottom, width - box.right, box.top)
        crop = tuple(max(edge - MARGIN, 0.0) for edge in edges)
        picture = self._page.render(scale=scale, crop=crop, draw_annots=False).to_pil().convert("RGB")
        if all(low == high for low, high in picture.getextrema()):
            return None
        data = io.BytesIO()
        picture.save(data, "PNG")
        return data.getvalue(), ".png"

    def _object(self, box: Box) -> PageObject | None:
        """The topmost bitmap that is shown in a box and not clipped."""
        for place, item in reversed(self._bitmaps):
            if _same(place, box) and (shown := clipped(item, place)) and _same(shown, box):
                return item
        return None


def _jpeg(image: PdfImage) -> bytes | None:
    """A bitmap's JPEG data, if it is that of a gray or colored picture without a mask."""
    try:
        if image.get_filters()[-1:] != ["DCTDecode"]:
            return None
        data = bytes(image.get_data(decode_simple=True))
        if len(data) > MAX_BYTES:
            return None
        with Image.open(io.BytesIO(data), formats=("JPEG",)) as picture:
            if picture.mode not in ("L", "RGB") or picture.size != image.get_px_size():
                return None
        shown = image.get_bitmap(render=True, scale_to_original=False).to_pil()
    except (PdfiumError, UnicodeDecodeError, UnidentifiedImageError, OSError):  # a broken file
        return None
    masked = "A" in shown.getbands() and shown.getchannel("A").getextrema()[0] < 255
    return None if masked else data


def _is_upright(item: PageObject) -> bool:
    """Whether a bitmap is shown neither turned nor mirrored."""
    matrix = item.matrix
    slant = max(abs(matrix.b), abs(matrix.c))
    return matrix.a > 0 > matrix.d and slant < 0.01 * min(matrix.a, -matrix.d)


def _same(one: Box, other: Box) -> bool:
    return one.contains(other, SAME_PLACE) and other.contains(one, SAME_PLACE)
