"""The process that extracts texts of pages (`harness.runtime.isolated_worker` says how it is asked).

request:  {"charset": ..., "html": true} and the page
answer:   {"text": ...} or {"error": ...}

python -m harness.web.extraction_worker SECONDS MEBIBYTES
"""

import sys
from typing import Any

from harness.runtime.isolated_worker import serve

CANNOT_IMPORT = 3  # exit code: the package that extracts texts is broken
_MOST_CHARACTERS = 400_000  # of a page's text


def main(seconds: float, mebibytes: int) -> None:
    """Serve until standard input ends."""
    try:
        import trafilatura
    except Exception:
        sys.exit(CANNOT_IMPORT)

    def text_of(about: dict[str, Any], page: bytes) -> dict[str, str]:
        try:
            source = _decoded(page, about["charset"], about["html"])
            if about["html"]:
                source = trafilatura.extract(source, include_comments=False, output_format="txt") or ""
            return {"text": str(source)[:_MOST_CHARACTERS]}
        except Exception as error:
            if isinstance(error, MemoryError):
                raise
            return {"error": type(error).__name__}

    serve(text_of, seconds, mebibytes)


def _decoded(page: bytes, charset: str, is_html: bool) -> str | bytes:
    """The page as text by the charset that its server names; of HTML without one, the library finds it out."""
    try:
        return page.decode(charset, "replace")
    except LookupError:  # none, or an unknown one
        return page if is_html else page.decode("utf-8", "replace")


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]))
