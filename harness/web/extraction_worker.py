"""The process that extracts texts of pages: it reads pages from standard input and writes their texts to standard output.

    in:   4 bytes length and a JSON object {"charset": ..., "html": true}, 4 bytes length and the page
    out:  4 bytes length and a JSON object {"text": ...} or {"error": ...}

A page may make a parser take minutes or gigabytes: SIGPROF ends this process when one takes too much CPU time, and memory is limited.
Run by path; it imports nothing of this project.

    python extraction_worker.py SECONDS MEBIBYTES
"""

import json
import signal
import sys
from contextlib import suppress

CANNOT_IMPORT = 3  # exit code: the package that extracts texts is broken
_MOST_CHARACTERS = 400_000  # of a page's text


def main(seconds: float, mebibytes: int) -> None:
    """Serve until standard input ends."""
    import resource  # not on every system; the caller imports this file

    try:
        import trafilatura
    except Exception:
        sys.exit(CANNOT_IMPORT)
    with suppress(ValueError, OSError):  # not on every system
        resource.setrlimit(resource.RLIMIT_AS, (mebibytes * 2**20,) * 2)
    given, taken = sys.stdin.buffer, sys.stdout.buffer
    while head := given.read(4):
        about = json.loads(given.read(int.from_bytes(head, "big")))
        page = given.read(int.from_bytes(given.read(4), "big"))
        signal.setitimer(signal.ITIMER_PROF, seconds)  # SIGPROF ends the process, also within C code
        try:
            source = _decoded(page, about["charset"], about["html"])
            if about["html"]:
                source = trafilatura.extract(source, include_comments=False, output_format="txt") or ""
            found = {"text": source[:_MOST_CHARACTERS]}
        except Exception as error:
            found = {"error": type(error).__name__}
        signal.setitimer(signal.ITIMER_PROF, 0)
        reply = json.dumps(found).encode()
        taken.write(len(reply).to_bytes(4, "big") + reply)
        taken.flush()


def _decoded(page: bytes, charset: str, is_html: bool) -> str | bytes:
    """The page as text by the charset that its server names; of HTML without one, the library finds it out."""
    try:
        return page.decode(charset, "replace")
    except LookupError:  # none, or an unknown one
        return page if is_html else page.decode("utf-8", "replace")


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]))
