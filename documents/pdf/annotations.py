"""Form fields and FreeText notes of a PDF page as text of the page, where they are seen.

pdfium draws what the file has of their looks; the values of others are written in their place.
"""

import textwrap
from contextlib import closing
from ctypes import byref, c_float, c_ushort
from typing import Any, NamedTuple

from pypdfium2 import PdfDocument, PdfPage, raw

from documents.left_out import LeftOut

_HIDDEN = 0b100010  # flags: hidden, not to be viewed (PDF 32000-1, table 165)
_PASSWORD = 1 << 13  # flag of a field (table 228)
_SIZE, _LEADING, _WIDTH, _PAD = 10.0, 1.2, 0.5, 2.0  # points; in sizes: lines, a mean character; points from the edge
_NO_COMMENT = (2, 16, 20)  # subtypes: link, popup, widget
_MAX_CHARACTERS = 20_000  # of a value


class _Value(NamedTuple):
    text: str
    box: tuple[float, float, float, float]  # left, bottom, right, top, in the page's coordinates
    before: str | None  # the page's text in the box; None if the value has no looks that are text


def open_page(file: PdfDocument, place: int, left_out: LeftOut) -> PdfPage:
    """A page with the values of its fields and its FreeText notes as text; the caller closes it.

    A box that is marked is "[x]", another "[ ]".

    Args:
        file: `init_forms` must have been called.
        place: Of the page, from 0.
        left_out: Gets the comments, which are not read, and values that cannot be written.

    Raises:
        PdfiumError: If the page is broken.
    """
    page = file[place]
    values: list[_Value] = []
    others: list[int] = []  # annotations that are not drawn
    for at in reversed(range(raw.FPDFPage_GetAnnotCount(page))):
        annotation = raw.FPDFPage_GetAnnot(page, at)
        subtype = raw.FPDFAnnot_GetSubtype(annotation)
        value = _value(file, page, annotation, subtype) if annotation else None
        comment = "" if value or subtype in _NO_COMMENT else _string(annotation, b"Contents")
        raw.FPDFPage_CloseAnnot(annotation)
        if value is None or value.before is None:
            left_out.text("comments left out", comment)
            others.append(at)
        values += [value] if value else []
    if any(value.before is not None for value in values):
        for at in others:
            raw.FPDFPage_RemoveAnnot(page, at)
        raw.FPDFPage_Flatten(page, raw.FLAT_NORMALDISPLAY)
        page.close()
        page = file[place]
    for value in reversed(values):
        if value.text and value.before in (None, _text_in(page, value.box)) and not _write(file, page, value):
            left_out.text("values of form fields left out", value.text)
    return page


def _value(file: PdfDocument, page: PdfPage, annotation: Any, subtype: int) -> _Value | None:
    """What an annotation shows as text; None for one that is not to be read."""
    rectangle = raw.FS_RECTF()
    if subtype not in (raw.FPDF_ANNOT_WIDGET, raw.FPDF_ANNOT_FREETEXT):
        return None
    if raw.FPDFAnnot_GetFlags(annotation) & _HIDDEN or not raw.FPDFAnnot_GetRect(annotation, byref(rectangle)):
        return None
    box = (rectangle.left, rectangle.bottom, rectangle.right, rectangle.top)
    if subtype == raw.FPDF_ANNOT_FREETEXT or not file.formenv:
        return _Value(_string(annotation, b"Contents"), box, _text_in(page, box))
    form = file.formenv
    kind = raw.FPDFAnnot_GetFormFieldType(form, annotation)
    if kind in (raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON):
        return _Value("[x]" if raw.FPDFAnnot_IsChecked(form, annotation) else "[ ]", box, None)
    if raw.FPDFAnnot_GetFormFieldFlags(form, annotation) & _PASSWORD:
        return None
    text = _utf_16(lambda buffer, length: raw.FPDFAnnot_GetFormFieldValue(form, annotation, buffer, length))
    return _Value(text, box, None if kind == raw.FPDF_FORMFIELD_LISTBOX else _text_in(page, box))


def _text_in(page: PdfPage, box: tuple[float, float, float, float]) -> str:
    with closing(page.get_textpage()) as text:
        return str(text.get_text_bounded(*box))


def _string(annotation: Any, key: bytes) -> str:
    return _utf_16(lambda buffer, length: raw.FPDFAnnot_GetStringValue(annotation, key, buffer, length))


def _utf_16(read: Any) -> str:
    """A text that pdfium writes into a buffer: it says how many bytes it needs."""
    length = min(read(None, 0), 2 * _MAX_CHARACTERS)
    buffer = (c_ushort * (length // 2 + 1))()
    read(buffer, length)
    return bytes(buffer).decode("utf-16-le", "replace").rstrip("\x00")


def _write(file: PdfDocument, page: PdfPage, value: _Value) -> bool:
    """Write a value into its box; False if the standard font does not have its characters."""
    if value.text.encode("cp1252", "ignore").decode("cp1252") != value.text:
        return False
    left, bottom, right, top = value.box
    turn = page.get_rotation() // 90  # against the clock: as the page is shown, the value stands upright
    width, height = (right - left, top - bottom) if turn % 2 == 0 else (top - bottom, right - left)
    given = value.text.splitlines()
    size = min(_SIZE, 0.8 * height)
    if len(given) > 1 or height > 2 * _LEADING * _SIZE:
        room = max(int((width - 2 * _PAD) / (_WIDTH * size)), 1)
        given = [line for long in given for line in textwrap.wrap(long, room) or [""]]
    size = min(size, height / (_LEADING * len(given)), width / (_WIDTH * max(map(len, given)) or 1))
    x, y = ((left, top), (left, bottom), (right, bottom), (right, top))[turn]  # where it is seen top left
    along, down = ((1, 0), (0, 1), (-1, 0), (0, -1))[turn], ((0, -1), (1, 0), (0, 1), (-1, 0))[turn]
    first = (height - _LEADING * size * len(given)) / 2 if len(given) == 1 else 0.0
    for number, line in enumerate(given):
        below = first + size * (0.95 + _LEADING * number)
        item = raw.FPDFPageObj_NewTextObj(file, b"Helvetica", c_float(size))
        letters = f"{line}\0".encode("utf-16-le")
        raw.FPDFText_SetText(item, (c_ushort * (len(letters) // 2)).from_buffer_copy(letters))
        start = (x + along[0] * _PAD + down[0] * below, y + along[1] * _PAD + down[1] * below)
        raw.FPDFPageObj_Transform(item, along[0], along[1], -down[0], -down[1], *start)
        raw.FPDFPage_InsertObject(page, item)
    return True
