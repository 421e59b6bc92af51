"""The text of a page, by trafilatura; runs in a process of its own (`common.killable`)."""

MAX_CHARACTERS = 400_000  # of a page's text


def page_text(page: bytes, charset: str, is_html: bool) -> str | None:
    """The main text of a page, its paragraphs as lines; empty if it has none, None if trafilatura cannot be imported.

    Args:
        page: As it was sent.
        charset: That its server names, if it does; of HTML without a known one, the library finds it out.
        is_html: Or plain text.
    """
    try:
        import trafilatura
    except Exception:  # whatever a broken installation raises
        return None
    source: str | bytes
    try:
        source = page.decode(charset, "replace")
    except LookupError:  # none, or an unknown one
        source = page if is_html else page.decode("utf-8", "replace")
    text = trafilatura.extract(source, include_comments=False, output_format="txt") if is_html else source
    return str(text or "")[:MAX_CHARACTERS]
