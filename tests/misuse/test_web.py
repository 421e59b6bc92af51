"""Web search on the command line.

Options are checked before anything is requested, secrets are not repeated, and what fails is one line.
"""

import json
import sys
from pathlib import Path

import pytest
import yaml

from tests.helpers.commands import command, refused
from tests.helpers.fake_server import Searches, answer, page, web_server

SECRET = "tvly-Abc0123456789defghijkl"  # made up
WEB = "harness.retrievers.web.WebRetriever"
LOCAL = {"service": "searxng", "base_url": "http://127.0.0.1:9"}


def ask(folder: Path, *words: str, **options: object) -> object:
    """`infer.py ask` with a web search."""
    retriever = {"class_path": WEB, "init_args": options}
    system = {
        "class_path": "harness.systems.retrieve_read.RetrieveRead",
        "init_args": {"retriever": retriever, "k": 2},
    }
    (folder / "web.yaml").write_text(yaml.safe_dump({"system": system}))
    return command(folder, "infer.py", *(words or ("ask", "--question", "Where is alfa?")), "--config", "web.yaml")


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("BRAVE_API_KEY", "TAVILY_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def test_a_missing_package_is_named_unless_pages_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trafilatura", None)  # as if it were not installed
    refused(ask(tmp_path, **LOCAL), 2, "trafilatura", "'.[web]'", "or set it to false")
    refused(ask(tmp_path, **LOCAL, read_pages=False, max_retries=0), 69, "cannot be reached")


def test_a_searxng_without_json_is_one_line_that_says_what_to_set(tmp_path: Path) -> None:
    with web_server({"/search": answer(b"<html>Forbidden", 403)}) as service:
        refused(
            ask(tmp_path, service="searxng", base_url=service.url),
            2,
            "HTTP 403",
            "add json to search.formats in the settings.yml",
        )


def test_a_cache_that_cannot_be_written_is_named_before_a_request(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("")
    with web_server({"/search": Searches({})}) as service:
        refused(ask(tmp_path, service="searxng", base_url=service.url), 74, "cache is a file. Choose another folder")
        assert not service.asked


def test_an_answer_shows_its_links_and_a_report_what_was_requested(tmp_path: Path) -> None:
    question = "Where does the Alba end?"
    row = {"_id": "1", "question": question, "answer": "sea", "type": "bridge", "supporting_facts": [], "context": []}
    (tmp_path / "dev.json").write_text(json.dumps([row]))
    with web_server({"/alba": page("Alba", "The Alba ends in the sea. " * 5)}) as site:
        searches = Searches(
            {question: [("Alba", f"{site.url}/alba", "A river."), ("Gone", f"{site.url}/gone", "A lost page.")]}
        )
        with web_server({"/search": searches}) as service:
            options = {"service": "searxng", "base_url": service.url, "allow_networks": ["127.0.0.1/32"]}
            ended = ask(tmp_path, "ask", "--question", question, "--width", "300", **options)
            assert ended.code == 0, ended.err
            assert f'"link": "{site.url}/alba"' in ended.out
            ended = ask(
                tmp_path, "evaluate", "--questions", "dev.json", "--out", "report", "--resamples", "100", **options
            )
            assert ended.code == 0, ended.err
            searches.faults = {"*": [answer(b"", 400)] * 2}
            failed = ask(tmp_path, "ask", "--question", "Is it?", "--width", "300", **options, max_retries=0)
            refused(failed, 69, "searches failed: HTTP 400")
    report = (tmp_path / "report" / "report.md").read_text()
    assert "web search: searxng at 127.0.0.1" in report
    assert "1 lost, the first: HTTP 404" in report
