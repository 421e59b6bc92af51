"""Opening a page in headless Chromium: what its document holds after a script has driven it."""

import base64
import hashlib
import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="needs chromium, chromium-browser or google-chrome: a page in a real browser"
)


def drive(page: str, script: str, folder: Path, fragment: str = "") -> dict[str, Any]:
    """Open a copy of the page from disk with a script added at its end, and return the script's `result`.

    The copy's content security policy allows this one script beside the page's own.

    Args:
        page: The page's text.
        script: Statements; they set properties of the object `result` to JSON types.
        folder: For the copy and for the browser's profile.
        fragment: What follows # in the address.
    """
    whole = f"const result = {{}};\n{script}\ndocument.body.dataset.result = JSON.stringify(result);"
    whole += '\nfor (const data of document.querySelectorAll("script[type]")) data.remove();'  # a short dump
    allowed = f"'sha256-{base64.b64encode(hashlib.sha256(whole.encode()).digest()).decode()}'"
    copy = folder / "page.html"
    changed = page.replace("script-src ", f"script-src {allowed} ", 1)
    changed = changed.replace("</body>", f"<script>{whole}</script>\n</body>")
    assert allowed in changed
    copy.write_text(changed, encoding="utf-8")
    found = re.search(r'<body[^>]* data-result="([^"]*)"', text := dumped(f"{copy.as_uri()}{fragment}", folder))
    assert found, text[:2000]
    return json.loads(html.unescape(found[1]))


def dumped(address: str, folder: Path, *options: str) -> str:
    """The document of a page after its scripts have run.

    Args:
        address: Of the page.
        folder: For the browser's profile.
        options: Further ones of Chromium.
    """
    assert CHROMIUM is not None
    as_root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []  # else Chromium refuses to start
    command = [CHROMIUM, "--headless", *as_root, "--disable-gpu", "--disable-dev-shm-usage",
               f"--user-data-dir={folder / 'profile'}", "--window-size=1400,1000", *options,
               "--dump-dom", address]  # fmt: skip
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert ended.stdout, ended.stderr[-3000:]
    return ended.stdout
