"""Image files found in documents as PNG, JPEG or SVG, with bounds on their size."""

import base64
import io
import re
import warnings
from collections.abc import Callable
from typing import Literal
from urllib.parse import unquote

ImageLoader = Callable[[str], bytes | None]  # the file that a link names, or None if it is not to be read

LONGEST_SOURCE = 80  # characters of an image's address in a report
MAX_BYTES = 32 * 2**20  # of one image
MAX_PIXELS = 64 * 2**20  # of one that is converted
_SVG = re.compile(rb"\s*(?:<\?xml[^>]*\?>\s*)?(?:<!--(?:(?!-->).)*-->\s*|<!DOCTYPE[^>\[]*>\s*)*<svg[\s>]", re.DOTALL)


def image_of(data: bytes) -> tuple[bytes, Literal[".png", ".jpg", ".svg"]] | None:
    """An image's file and its suffix; GIF, BMP, TIFF and WebP become PNG.

    None for other formats, broken and oversized files.
    """
    if not data or len(data) > MAX_BYTES:
        return None
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return data, ".png"
    if data.startswith(b"\xff\xd8\xff"):
        return data, ".jpg"
    if _SVG.match(data[:4096].removeprefix(b"\xef\xbb\xbf")):
        return data, ".svg"
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(data), formats=("GIF", "BMP", "TIFF", "WEBP")) as picture:
                if picture.width * picture.height > MAX_PIXELS:
                    return None
                made = io.BytesIO()
                picture.convert("RGBA" if "A" in picture.getbands() else "RGB").save(made, "PNG")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None
    return made.getvalue(), ".png"


def linked_image(source: str, load_image: ImageLoader | None) -> tuple[bytes, Literal[".png", ".jpg", ".svg"]] | None:
    """The image that an address holds or names, as `image_of` gives it; None if it is not read.

    Args:
        source: The address.
        load_image: Reads images that are files.
    """
    data = _data_of_uri(source)
    if data is None and load_image is not None and source:
        data = load_image(source)
    return image_of(data or b"")


def _data_of_uri(uri: str) -> bytes | None:
    """The file that a `data:` address holds in base 64; None if it holds none."""
    head, comma, body = uri.partition(",")
    if not comma or not head.startswith("data:image/") or not head.endswith(";base64") or len(body) > 2 * MAX_BYTES:
        return None
    try:
        return base64.b64decode(unquote(body), validate=False)
    except ValueError:
        return None
