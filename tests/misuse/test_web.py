"""Web search on the command line.

Options are checked before anything is requested, secrets are not repeated, and what fails is one line.
"""

import json
from pathlib import Path

import yaml

from tests.helpers.commands import Ended, command, refused
from tests.helpers.fake_server import Searches, answer, page, web_server
from tests.helpers.layout_rows import HOTPOT

WEB = "harness.retrievers.web.WebRetriever"


def ask(folder: Path, *words: str, **options: object) -> Ended:
    """`infer.py ask` with a web search."""
    parts = {"retriever": {"class_path": WEB, "init_args": {"service": "searxng", **options}}, "k": 2}
    system = {"class_path": "harness.systems.retrieve_read.RetrieveRead", "init_args": parts}
    (folder / "web.yaml").write_text(yaml.safe_dump({"system": system}))
    return command(folder, "infer.py", *words, "--config", "web.yaml")


def test_a_searxng_without_json_is_one_line_that_says_what_to_set(tmp_path: Path) -> None:
    with web_server({"/search": answer(b"<html>Forbidden", 403)}) as service:
        ended = ask(tmp_path, "ask", "--question", "Where is alfa?", base_url=service.url)
    refused(ended, 2, "HTTP 403", "add json to search.formats in the settings.yml")


def test_an_answer_shows_its_links_and_a_report_what_was_requested(tmp_path: Path) -> None:
    question = "Where does the Alba end?"
    (tmp_path / "dev.json").write_text(json.dumps([HOTPOT | {"question": question, "answer": "sea"}]))
    with web_server({"/alba": page("Alba", "The Alba ends in the sea. " * 5)}) as site:
        found = [("Alba", f"{site.url}/alba", "A river."), ("Gone", f"{site.url}/gone", "A lost page.")]
        with web_server({"/search": (searches := Searches({question: found}))}) as service:
            options = {"base_url": service.url, "allow_networks": ["127.0.0.1/32"]}
            ended = ask(tmp_path, "ask", "--question", question, "--width", "300", **options)
            assert ended.code == 0, ended.err
            assert f'"link": "{site.url}/alba"' in ended.out
            typed = ("evaluate", "--questions", "dev.json", "--out", "report", "--resamples", "100")
            ended = ask(tmp_path, *typed, **options)
            assert ended.code == 0, ended.err
            searches.faults = {"*": [answer(b"", 400)] * 2}
            failed = ask(tmp_path, "ask", "--question", "Is it?", **options, max_retries=0)
            refused(failed, 69, "searches failed: HTTP 400")
    report = (tmp_path / "report" / "report.md").read_text()
    assert "web search: searxng at 127.0.0.1" in report
    assert "1 lost, the first: HTTP 404" in report
