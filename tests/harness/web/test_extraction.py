"""Texts of pages: the extracting process cannot be held up, cannot take all memory, and does not know the keys."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import httpx2
import pytest

from common.errors import UserError
from harness.web.extraction import extracted, extractor
from harness.web.transport import FetchError

PARAGRAPH = "<p>The Alba is a river that ends in the sea, and it is longer than the Brune.</p>"
PAGE = f"<html><body><nav><a href='/'>Home</a></nav><article><h1>Alba</h1>{PARAGRAPH * 3}</article></body></html>"
SLOW = "<html><body>" + "<p>a b c.</p>" * 300_000  # trafilatura takes minutes


def html(text: str | bytes, kind: str = "text/html") -> httpx2.Response:
    return httpx2.Response(200, headers={"content-type": kind}, content=text)


def extract(pages, threads: int = 2, **limits) -> list[str | FetchError]:
    def one(page: httpx2.Response) -> str | FetchError:
        try:
            return extracted(processes, page)
        except FetchError as error:
            return error

    with ThreadPoolExecutor(threads) as pool, closing(extractor(threads, **limits)) as processes:
        return [*pool.map(one, pages)]


def test_the_text_without_the_menu_in_any_encoding() -> None:
    sentences = "<p>Büyük ağaç ve yeşil dağ, güneş doğar ve göl parlar.</p>" * 4
    turkish = f"<html><body><article>{sentences}</article></body></html>"
    found = extract([
        html(PAGE), html(turkish.encode("iso-8859-9"), "text/html; charset=ISO-8859-9"), html(turkish),
        html("Plain <b> text.", "text/plain"), html("größe", "text/plain;charset=nonsense"),
        html("half \\ud800", "text/plain; charset=unicode_escape"), html(""), html("<html></html>"),
        html(b"\xff\xfe\x00"),
    ])  # fmt: skip
    assert ("ends in the sea" in str(found[0]), "Home" in str(found[0])) == (True, False)
    assert "Büyük ağaç ve yeşil dağ" in str(found[1]) == str(found[2])
    assert found[3:6] == ["Plain <b> text.", "größe", "half \ufffd"]
    assert all(nothing == "" or isinstance(nothing, FetchError) for nothing in found[6:])


def test_a_page_that_takes_too_long_is_lost_and_the_others_are_not() -> None:
    began = time.monotonic()
    found = extract([html(PAGE), html(SLOW), html(PAGE), html(PAGE)], threads=1, seconds=4.0)
    assert time.monotonic() - began < 60  # four seconds, and the start of two processes
    assert ["sea" in str(each) for each in found] == [True, False, True, True]
    assert "takes too much time or memory to extract" in str(found[1])


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_AS holds on Linux")
def test_a_page_cannot_take_all_memory() -> None:
    """It has no text then, or fails, and the next page is read."""
    large = "<html><body>" + "<b>a</b>" * 400_000  # takes 300 MB

    with closing(extractor(1, mebibytes=150)) as processes:
        with suppress(FetchError):
            assert extracted(processes, html(large)) == ""
        (process,) = processes.running
        status = Path(f"/proc/{process.pid}/status").read_text()
        text = extracted(processes, html(PAGE))
    assert int(status.partition("VmPeak:")[2].split()[0]) <= 150 * 1024
    assert "sea" in text


def test_a_package_that_cannot_be_imported_is_no_fault_of_the_pages(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "trafilatura.py").write_text("import no_such_part_of_lxml\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(UserError, match="installed, but its import fails; python -c 'import trafilatura' says why"):
        extract([html(PAGE)])
