"""What HTML elements mean for a document's text.

Which ones are no content, which ones begin a new block, and the text within one.
"""

import re

from lxml import etree

from documents.normal_form import one_line


def names(text: str) -> frozenset[str]:
    """Names between blanks."""
    return frozenset(text.split())


HEADINGS = {f"h{level}": level for level in range(1, 7)}
BLOCKS = names(
    "address article aside blockquote body caption center dd details dialog div dl dt fieldset figcaption figure "
    "footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main ol optgroup option p pre search section "
    "summary table tbody td tfoot th thead tr ul"
)
MAIN = names("main article section")  # headers, footers and asides within are content
_NO_CONTENT = names(
    "script style nav noscript template iframe object embed applet button select textarea input svg canvas audio video "
    "map title link meta base annotation annotation-xml dialog datalist frameset"
)
_FRAME = names("header footer aside")  # around the content, where they stand outside of it
_FRAME_ROLES = names("navigation banner contentinfo search complementary menu doc-toc doc-index")
_FRAME_CLASSES = names(  # of documentation generators: navigation and tables of contents, which repeat the headings
    "toc shortcontents element-contents toctree-wrapper sphinxsidebar related navheader navfooter nav-panel "
    "breadcrumbs breadcrumb mini-toc menu viewcode-link linenos headerlink copiable-link copiable-anchor edit-link "
    "skip-link sr-only"
)
_FRAME_IDS = names("toc table-of-contents sec_contents sec_shortcontents")
_HIDDEN = re.compile(r"(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.IGNORECASE)
_ANCHOR_SIGNS = names("\u00b6 # \u00a7 \U0001f517 \uf0c1 \u2691 permalink")  # links of a heading to itself


def tag_of(element: etree._Element) -> str:
    """Lower-case name of an element; empty for comments and their like."""
    return element.tag.lower() if isinstance(element.tag, str) else ""


def classes_of(element: etree._Element) -> set[str]:
    """Class names, lower-case."""
    return set((element.get("class") or "").lower().split())


def is_content(element: etree._Element) -> bool:
    """Whether the text of an element belongs to the document."""
    tag = tag_of(element)
    if not tag or tag in _NO_CONTENT:
        return False
    attributes = element.attrib
    if not attributes and tag not in _FRAME:
        return True
    if tag in ("body", "html", "main", *HEADINGS):
        return True
    if (
        "hidden" in attributes
        or attributes.get("aria-hidden") == "true"
        or _HIDDEN.search(attributes.get("style") or "")
    ):
        return False
    if tag == "a":
        return (
            one_line("".join(element.itertext())[:20]).lower() not in _ANCHOR_SIGNS
            and not classes_of(element) & _FRAME_CLASSES
        )
    role, id_ = (attributes.get("role") or "").lower(), (attributes.get("id") or "").lower()
    is_frame = tag in _FRAME and not any(
        tag_of(above) in MAIN or above.get("role") == "main" for above in element.iterancestors()
    )
    if is_frame or role in _FRAME_ROLES or (tag == "div" and "header" in classes_of(element)):
        return next(element.iter(*HEADINGS), None) is not None and tag != "nav" and role != "navigation"
    return not (id_ in _FRAME_IDS or classes_of(element) & _FRAME_CLASSES or _lists_contents(element))


def _lists_contents(element: etree._Element) -> bool:
    """Whether an element of the class `contents` is a table of contents (docutils, Texinfo).

    Doxygen gives the class to all content.
    """
    classes = classes_of(element)
    return "contents" in classes and ("topic" in classes or next(element.iter("p", "pre", *HEADINGS), None) is None)


def text_of(element: etree._Element, is_code: bool = False) -> str:
    """The text within an element: on one line, or with its own line breaks."""
    parts: list[str] = []
    walk = etree.iterwalk(element, events=("start", "end"))
    for event, part in walk:
        tag = tag_of(part)
        if event == "start":
            if part is not element and not is_content(part):
                walk.skip_subtree()
                continue
            if not is_code and tag in BLOCKS:
                parts.append(" ")
            parts.append(part.text or "")
            if tag == "br":
                parts.append("\n")
            elif tag == "img" and not is_code:
                parts.append(f" {part.get('alt') or ''} ")
        else:
            if not is_code and tag in BLOCKS:
                parts.append(" ")
            if part is not element:
                parts.append(part.tail or "")
    text = "".join(parts)
    return text if is_code else one_line(text)
