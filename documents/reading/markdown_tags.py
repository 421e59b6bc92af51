"""Which tags in Markdown are HTML, and which are text: <hostname>, List<String>, a<b and c>d, <?php."""

import re

from lxml.html.defs import tags

from documents.reading.html_elements import names

_KNOWN = tags | names(
    "main picture dialog template bdi data search slot noframes frame nobr rb rtc mi mn mo ms mtext mspace mrow mfrac "
    "msqrt mroot msup msub msubsup munder mover munderover mtable mtr mtd mfenced mstyle semantics annotation"
)
_PARTNERS = {  # of tags whose names are names of types, too: without a partner before the next one such a tag is none
    name: re.compile(rf"(?:(?!<{name}[\s>]).)*?</{name}\s*>", re.IGNORECASE | re.DOTALL) for name in "abiqsu"
}
_BARE = names("hidden open controls checked disabled selected reversed nowrap noshade async defer inert")
_TAG = re.compile(
    r"""<!--(?:(?!<!--|-->).)*--> | <[?] | <!(?=\[CDATA)
      | <(?P<end>/?)(?P<name>[A-Za-z][\w:.-]*)(?P<rest>(?:[^<>"']|"[^"]*"|'[^']*')*)>""",
    re.DOTALL | re.VERBOSE,
)


def is_markup(tag: str, after: str) -> bool:
    """Whether a tag is HTML.

    Args:
        tag: From its opening bracket to its closing one; or a comment.
        after: The text behind it.
    """
    found = _TAG.match(tag)
    return found is None or _is_markup(found, after, 0)


def with_text(markup: str) -> str:
    """HTML within Markdown, in which what is no tag is text."""
    return _TAG.sub(
        lambda found: found[0] if _is_markup(found, markup, found.end()) else found[0].replace("<", "&lt;"), markup
    )


def _is_markup(found: re.Match[str], text: str, end: int) -> bool:
    if found["name"] is None:
        return found[0].startswith("<!--")
    name, rest = found["name"].lower(), found["rest"].strip(" \t\n/")
    if ":" in name:  # of Word and others: <o:p>
        return True
    if rest and "=" not in rest and not _BARE.issuperset(rest.lower().split()):
        return False
    if name in _PARTNERS and not rest and not found["end"]:
        return _PARTNERS[name].match(text, end) is not None
    return name in _KNOWN
