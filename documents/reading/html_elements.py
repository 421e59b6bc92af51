"""The meaning of HTML elements for a document's text.

Which ones are no content, which ones begin a new block, and the text within one.
"""

import re
from collections.abc import Sequence
from itertools import islice

from lxml import etree

from documents.left_out import LeftOut
from documents.normal_form import one_line
from documents.raised import in_line


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
_NO_TEXT = names("title link meta base")
_RULES = {  # the rule that leaves elements out -> the elements
    "scripts and styles left out": "script style", "navigation and contents left out": "nav",
    "embedded objects left out": "noscript template iframe object embed applet svg canvas audio video map frameset",
    "dialogs, fields and buttons left out": "dialog button select textarea input datalist",
    "other forms of formulas left out": "annotation annotation-xml", "struck text left out": "del s strike",
    "readings of ruby left out": "rt rp rtc",
}  # fmt: skip
_LEFT_OUT = {tag: rule for rule, tags in _RULES.items() for tag in tags.split()}
_FRAME = names("header footer aside")  # around the content, where they stand outside of it
_FRAME_ROLES = names("navigation banner contentinfo search complementary menu doc-toc doc-index")
_FRAME_CLASSES = names(  # of documentation generators: navigation and tables of contents, which repeat the headings
    "toc shortcontents element-contents toctree-wrapper sphinxsidebar related navheader navfooter nav-panel "
    "breadcrumbs breadcrumb mini-toc menu viewcode-link linenos headerlink copiable-link copiable-anchor edit-link "
    "skip-link sr-only"
)
_FRAME_IDS = names("toc table-of-contents sec_contents sec_shortcontents")
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)", re.IGNORECASE)
_HIDDEN_TEXT = "hidden text left out"
_STRUCK = re.compile(r"text-decoration[^;]*line-through", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*>")
_ANCHOR_SIGNS = names("\u00b6 # \u00a7 \U0001f517 \uf0c1 \u2691 permalink")  # links of a heading to itself

_SPOKEN = "sr-only"  # the class of text for screen readers alone
_NEAR, _MAX_TWIN = 3, 20  # elements on each side, and within each of them, among which its twin is looked for
_NOTE_CLASSES = names("footnote footnote-ref footnote-reference footnoteref noteref citation-reference")
_NOTE_ROLES = names("doc-noteref noteref")
_SCRIPTS = {"msup": ("", "sup"), "msub": ("", "sub"), "msubsup": ("", "sub", "sup"), "mfrac": ("", "over")}  # MathML
_MAX_SCRIPTS = 5  # in each other


def tag_of(element: etree._Element) -> str:
    """Lower-case name of an element; empty for comments and their like."""
    return element.tag.lower() if isinstance(element.tag, str) else ""


def classes_of(element: etree._Element) -> set[str]:
    """Class names, lower-case."""
    return set((element.get("class") or "").lower().split())


def is_content(element: etree._Element, left_out: LeftOut) -> bool:
    """Whether the text of an element belongs to the document; if not, `left_out` is told."""
    tag = tag_of(element)
    rule = _LEFT_OUT.get(tag) or (_rule(element, tag) if element.attrib or tag in _FRAME else "")
    if rule:
        framed = _TAG.sub(" ", element.get("srcdoc") or "")
        left_out.text(rule, " ".join((*element.itertext(), framed)))
    return bool(tag) and not rule and tag not in _NO_TEXT


def is_shown(element: etree._Element, left_out: LeftOut) -> bool:
    """Whether an element does not say that it is hidden; if it does, `left_out` is told."""
    hidden = _is_hidden(element)
    if hidden:
        left_out.text(_HIDDEN_TEXT, " ".join(element.itertext()))
    return not hidden


def _is_hidden(element: etree._Element) -> bool:
    attributes = element.attrib
    if attributes.get("hidden", "until-found") != "until-found":
        return True
    if attributes.get("aria-hidden") == "true":
        around = element.getparent()  # an element with a label speaks that instead: its text is the twin that stays
        return around is None or not one_line(around.get("aria-label") or "")
    return _HIDDEN.search(attributes.get("style") or "") is not None


def _has_twin(element: etree._Element) -> bool:
    """Whether what only screen readers speak stands beside the same for eyes, which is left out."""
    beside = (*islice(element.itersiblings(), _NEAR), *islice(element.itersiblings(preceding=True), _NEAR))
    parts = (part for other in beside for part in islice(other.iter(), _MAX_TWIN))
    return any(part.get("aria-hidden") == "true" and re.search(r"\w", "".join(part.itertext())) for part in parts)


def _rule(element: etree._Element, tag: str) -> str:
    """The rule that leaves an element out for what it says of itself; empty if none does."""
    attributes = element.attrib
    if tag in ("body", "html", "main"):
        return ""
    if _is_hidden(element):
        return _HIDDEN_TEXT
    if _SPOKEN in classes_of(element) and _has_twin(element):
        return ""
    if _STRUCK.search(attributes.get("style") or ""):
        return "struck text left out"
    if tag in HEADINGS:
        return ""
    frame = "navigation and contents left out"
    if tag == "a":
        is_sign = one_line("".join(element.itertext())[:20]).lower() in _ANCHOR_SIGNS
        return frame if is_sign or classes_of(element) & _FRAME_CLASSES else ""
    role, id_ = (attributes.get("role") or "").lower(), (attributes.get("id") or "").lower()
    is_frame = tag in _FRAME and not any(
        tag_of(above) in MAIN or above.get("role") == "main" for above in element.iterancestors()
    )
    if is_frame or role in _FRAME_ROLES or (tag == "div" and "header" in classes_of(element)):
        has_heading = next(element.iter(*HEADINGS), None) is not None and role != "navigation"
        return "" if has_heading else "headers, footers and asides left out" if is_frame else frame
    return frame if id_ in _FRAME_IDS or classes_of(element) & _FRAME_CLASSES or _lists_contents(element) else ""


def _lists_contents(element: etree._Element) -> bool:
    """Whether an element of the class `contents` is a table of contents (docutils, Texinfo).

    Doxygen gives the class to all content.
    """
    classes = classes_of(element)
    return "contents" in classes and ("topic" in classes or next(element.iter("p", "pre", *HEADINGS), None) is None)


def script_of(element: etree._Element, tag: str) -> str:
    """How an element stands in its line: "sup", "sub", "over" (under a stroke), "note" (it calls one); else empty."""
    if tag not in ("a", "sup", "sub") and not tag.startswith("m"):
        return ""
    if tag == "a":
        parts = list(element)
        is_raised = len(parts) == 1 and tag_of(parts[0]) == "sup" and not one_line(element.text or "")
        is_raised = is_raised and not one_line(parts[0].tail or "")
        return "note" if (is_raised and "#" in (element.get("href") or "")) or _calls_note(element) else ""
    if sum(1 for _ in islice(element.iterancestors("sup", "sub", *_SCRIPTS), _MAX_SCRIPTS)) == _MAX_SCRIPTS:
        return ""
    if tag in ("sup", "sub"):
        if next(element.iter(*BLOCKS), None) is not None:
            return ""
        links = (link for link in element.iter("a") if "#" in (link.get("href") or ""))
        return "note" if tag == "sup" and (next(links, None) is not None or _calls_note(element)) else tag
    above = element.getparent()
    places = _SCRIPTS.get(tag_of(above), ()) if above is not None else ()
    return places[place] if above is not None and places and (place := above.index(element)) < len(places) else ""


def _calls_note(element: etree._Element) -> bool:
    role = element.get("role") or element.get("epub:type") or ""
    return bool(classes_of(element) & _NOTE_CLASSES) or role.lower() in _NOTE_ROLES


def script_text(element: etree._Element, script: str, before: Sequence[str], left_out: LeftOut) -> str:
    """The text of an element that stands in its line in a way of `script_of`.

    Args:
        element: The element.
        script: The way.
        before: The parts of the text before it.
        left_out: See `is_content`.
    """
    text = "".join(element.itertext()) if script == "note" else text_of(element, left_out)
    return in_line(script, text, next((part for part in reversed(before) if part), ""))


def text_of(element: etree._Element, left_out: LeftOut, is_code: bool = False) -> str:
    """The text within an element: on one line, or with its own line breaks.  `left_out`: see `is_content`."""
    parts: list[str] = []
    walk = etree.iterwalk(element, events=("start", "end"))
    for event, part in walk:
        tag = tag_of(part)
        if event == "start":
            if part is not element and not is_content(part, left_out):
                walk.skip_subtree()
                continue
            if part is not element and (script := script_of(part, tag)):
                parts.append(script_text(part, script, parts, left_out))
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
