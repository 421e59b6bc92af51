"""The page of a report: data that survive any text, what details say, nothing loaded from elsewhere; its tables."""

import csv
import io
import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from common.records import Answer, Gold, Passage, Question
from common.shown_text import terminal
from harness.evaluation.page import QuestionCase, page
from harness.evaluation.tables import Cell, ReportTable, not_measured, tables_csv, tables_html, tables_markdown
from tests.helpers.browser import drive, needs_chromium
from tests.helpers.pages import CITY, EVIL, NAN, answer, small_page


def blocks(text: str) -> dict[str, Any]:
    """The page's data by the id of their script element."""
    scripts = re.findall(r'<script type="application/json" id="([^"]+)">(.*?)</script>', text, re.DOTALL)
    return {id_: json.loads(data) for id_, data in scripts}


def page_of(question: Question, *answers: Answer, measures: dict[str, dict[str, list[float]]] | None = None) -> str:
    """The page of one question that each answer's system has answered; `a`, `b`, ... are the systems."""
    systems = {name: [each] for name, each in zip("abcdef", answers, strict=False)}
    return page("T", [], [], "", {}, [question], systems, measures or {})


def evil_page() -> str:
    """A page whose every text tries to become markup."""
    evil = Passage("id", f"{EVIL} \ud800 lone", EVIL, corpus_id=EVIL)
    question = Question(EVIL, EVIL, (EVIL,), (evil,), (evil.id,), EVIL, gold=Gold((f"elsewhere{EVIL}",)))
    costs, notes = {EVIL: NAN, "model_calls": 2.0}, {EVIL: EVIL, "more": [{"id": evil.id, "why": EVIL}]}
    answers = [answer(EVIL, EVIL, evil, evil, costs=costs, notes=notes)]
    case = QuestionCase(EVIL, (EVIL,), ((EVIL,),), EVIL)
    table = ReportTable(EVIL, EVIL, (EVIL,), {EVIL: [None]}, note=EVIL)
    systems, measures = {EVIL: answers, "other": answers}, {EVIL: {EVIL: [1.0]}}
    return page(EVIL, [EVIL], [table], EVIL, {EVIL: b"\x89PNG"}, [question], systems, measures, [[case]])


def test_data_survive_any_text() -> None:
    text, seen = evil_page(), terminal(EVIL)
    text.encode()  # UTF-8 has no lone surrogates
    assert "<img src=x" not in text
    assert text.count("<script") == text.count("</script>") == 4  # three blocks of data, one script
    data = blocks(text)
    index, (details,), (shown,) = data["index"], data["questions-0"], data["passages-0"]
    assert [index["systems"], index["measures"], index["answers"]] == [[seen, "other"], [seen], [[seen], [seen]]]
    assert index["values"] == [[[1.0]], [[]]]
    assert index["questions"] == [{"id": seen, "text": seen, "kind": seen, "answers": [seen]}]
    assert shown == [seen, terminal(f"{EVIL} \ud800 lone"), f"id: id; corpus id: {seen}"]
    assert (details["gold"], details["elsewhere"]) == ([0], [f"elsewhere{seen}"])
    assert details["cases"] == [{"title": seen, "columns": [seen], "rows": [[seen]], "note": seen}]
    system, _ = details["systems"]
    assert system["evidence"] == [[0, score, "gold", f"why: {seen}"] for score in (1.0, 0.0)]
    assert system["costs"] == {seen.replace("_", " "): None, "model calls": 2.0}
    assert system["notes"][0] == [seen, seen]


def test_passages_are_kept_once_and_values_by_question() -> None:
    """What the details say of them is shown in `test_a_question_is_chosen_by_key_and_kept_in_the_address`."""
    data = blocks(small_page())
    assert [row[0] for row in data["passages-0"]] == ["City", "River", "Ship"]
    assert data["index"]["values"][0][1] == [1, 0.25, None, 1, 0.5]
    assert [each["logprob"] for each in data["questions-0"][0]["systems"]] == [-0.5, None]


def test_passages_are_cited_with_the_labels_of_their_corpus() -> None:
    labelled = Passage.of("City", CITY.text, corpus_id="doc-7", metadata={"year": 1900})
    about = {"document": "a1.pdf", "headings": ["Ratings"], "kind": "image", "page": 7, "image": "index/images/0a.png"}
    segment = Passage("12ab", "| a | b |\n| 1 | 2 |", "Alba > Ratings", metadata=about)
    known = Question("q", "Where?", passages=(CITY,), support=(CITY.id,))
    for question, passage, label in (
        (known, labelled, f"id: {CITY.id}; corpus id: doc-7; metadata: year: 1900"),
        (Question("q", "?"), segment, "id: 12ab; document: a1.pdf, page 7: Ratings; image: index/images/0a.png"),
    ):
        shown = blocks(page_of(question, answer("q", "", passage)))["passages-0"]
        assert shown == [[passage.title, passage.text, label]]


def test_measures_that_are_undefined_everywhere_are_left_out() -> None:
    """Without a reader EM is undefined: the first measure that has values says what is right."""
    measures = {"a": {"EM": [NAN], "recall of gold": [1.0]}, "b": {"EM": [NAN], "MRR": [0.5]}}
    index = blocks(page_of(Question("q", "?"), answer("q", ""), answer("q", ""), measures=measures))["index"]
    assert index["measures"] == ["recall of gold", "MRR"]
    assert index["values"] == [[[1.0], []], [[], [0.5]]]


def test_nothing_is_loaded_from_elsewhere() -> None:
    text = page("T", [], [], "", {"plot": b"\x89PNG"}, [], {}, {})
    sources = re.findall(r'(?:src|href|action|data|poster|srcset)\s*=\s*"([^"]*)"', text)
    assert sources
    assert all(source.startswith(("#", "data:image/png;base64,")) for source in sources), sources
    assert not re.search(r"https?:|url\(|@import|fetch\(|XMLHttpRequest|innerHTML|insertAdjacentHTML|eval\(", text)
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    assert all(part in policy for part in ("default-src 'none'", "img-src data:"))
    assert "unsafe" not in policy
    assert text.index(policy) < text.index("<style>")


SETUP = """
const set = (name, value) => {
  const field = document.querySelector(`[name=${name}]`);
  field.value = value;
  field.dispatchEvent(new Event("input", {bubbles: true}));
};
const shown = () => [...document.querySelectorAll("#list button")].map((button) => Number(button.dataset.question));
"""


FILTERS = {
    "text=": [0, 1, 2, 3, 4], "kind=bridge": [0, 2], "text=no such text": [], "text= WHICH ": [1, 3, 4],
    "text=sea": [0, 1, 2], "system0=right": [0, 3, 4], "system1=wrong": [0, 3, 4], "system0=unknown": [2],
    "show=a": [0, 3, 4], "show=b": [1], "a=1&b=0&show=a": [1], "by=1&show=a": [0, 3], "by=1&show=equal": [4],
    "by=1&show=different&kind=single&system0=right": [3], "by=1&sort=a-b": [0, 3, 4, 1, 2],
    "by=1&sort=b-a": [1, 4, 0, 3, 2], "by=1&sort=low": [1, 4, 0, 3, 2], "by=1&sort=high": [0, 3, 4, 1, 2],
}  # fmt: skip


@needs_chromium
def test_filters_show_the_right_questions(tmp_path: Path) -> None:
    script = """
    const tried = (filters) => {
      document.querySelector("#filters").reset();
      new URLSearchParams(filters).forEach((value, name) => set(name, value));
      return {shown: shown(), count: document.querySelector("#count").textContent};
    };
    result.tried = %s.map(tried);
    """
    tried = drive(small_page(), SETUP + script % json.dumps([*FILTERS]), tmp_path)["tried"]
    assert {name: each["shown"] for name, each in zip(FILTERS, tried, strict=True)} == FILTERS
    counts = ["1 to 5 of 5 questions", "1 to 2 of 2 questions (of 5)", "0 questions (of 5)"]
    assert [each["count"] for each in tried[:3]] == counts


@needs_chromium
def test_a_question_is_chosen_by_key_and_kept_in_the_address(tmp_path: Path) -> None:
    script = """
    const details = document.querySelector("#details");
    const text = () => details.innerText;
    result.restored = {shown: shown(), title: details.querySelector("h3").textContent, by: filters.by.value};
    result.first = text();
    set("kind", "");
    document.querySelector("#list button").focus();
    document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowDown", bubbles: true}));
    document.activeElement.click();
    result.chosen = details.querySelector("h3").textContent;
    result.current = document.querySelectorAll("[aria-current]").length;
    result.address = location.hash;
    [...details.querySelectorAll("button")].at(-1).click(); // next
    [...details.querySelectorAll("button")].at(-1).click();
    result.unknown = text();
    """
    found = drive(small_page(), SETUP + script, tmp_path, "#kind=bridge&by=1&question=q0")
    assert found["restored"] == {"shown": [0, 2], "title": "Where is the harbour?", "by": "1"}
    for part in (
        "Found and missed", "✓ rank 1", "✗ missed", "missed: City", "★ gold", CITY.text,
        "stage: first; partner: River (rank 2); P(relevant): 0.912", "log-probability -0.5", "EM 1 · F1 1", "CFS",
        "as Table 8", "retriever calls", "selection: cfs",
    ):  # fmt: skip
        assert part in found["first"], part
    assert [found[name] for name in ("chosen", "current", "address")] == ["Which river?", 1, "#by=1&question=q1"]
    for part in "gold, but not in the file: Lost", "✓ rank 2", "◆ contains an answer":
        assert part in found["unknown"]


@needs_chromium
def test_of_many_systems_the_list_shows_two(tmp_path: Path) -> None:
    names, question = [*"abcdef"], Question("q", "Where?", ("City",), (CITY,), (CITY.id,))
    measures = {name: {"EM": [float(number % 2)]} for number, name in enumerate(names)}
    text = page_of(question, *(answer("q", name, CITY) for name in names), measures=measures)
    script = """
    const listed = () => [...document.querySelectorAll("#list .name")].map((each) => each.textContent);
    result.first = listed();
    set("a", "5"); set("b", "2");
    result.second = listed();
    result.right = document.querySelector("#list .item").innerText.includes("right: 3 of 6 systems");
    document.querySelector("#list button").click();
    result.open = [...document.querySelectorAll("#details .of-system")].map((each) => each.open);
    """
    assert drive(text, SETUP + script, tmp_path) == {
        "first": names[:2], "second": [names[5], names[2]], "right": True,
        "open": [False, False, True, False, False, True],
    }  # fmt: skip


@needs_chromium
def test_texts_run_nothing(tmp_path: Path) -> None:
    script = """
    result.opened = document.querySelectorAll("img, script:not([type])").length;
    document.querySelector("#list button").click();
    result.shown = document.querySelector("#details .evidence .text").textContent;
    result.elements = document.querySelectorAll("img, script:not([type])").length;
    result.evil = document.body.dataset.evil ?? null;
    """
    found = drive(evil_page(), script, tmp_path)
    assert found["shown"].startswith(terminal(EVIL))  # separators of lines are visible
    assert (found["opened"], found["elements"], found["evil"]) == (3, 3, None)  # the page's own


# --- tables in other formats


def test_tables_have_the_cells_of_the_markdown_report() -> None:
    nothing, none = not_measured("every set holds an answer"), not_measured("none refused")
    rows = {"a": [Cell(1234.5, (-1.0, 2.0)), Cell(1234)], "both": [nothing, nothing], "one": [Cell(NAN), none]}
    first = {"paper": {"P": [Cell(2.0), None]}, "note": "A note <i>.\n\nAnother.", "signed": frozenset({"y"})}
    tables = [
        ReportTable("first", "One & <two>", ("x <b>%</b>", "y"), rows, **first),  # type: ignore[arg-type]
        ReportTable("first", "Silent", ("x",), {"a": [nothing]}, {"P": [Cell(2.0)]}),
        ReportTable("Second (of all)", "Only silent", ("x", "y"), {"a": [nothing] * 2}),
    ]
    lines = tables_markdown("T", [], tables, "").replace("*paper:*", "paper:").splitlines()
    expected = [unescape(line).strip("|").split("|") for line in lines if line.startswith("|") and "---" not in line]
    sentence = "not measured: every set holds an answer."
    expected += [[sentence]] * lines.count(sentence)
    html = tables_html(tables)
    cells = [re.findall(r"<t[dh].*?>(.*?)</t[dh]>", row) for row in re.findall(r"<tr.*?</tr>", html)]
    found = [[unescape(re.sub("<.*?>", "", cell)) for cell in row if cell] for row in cells]
    assert sorted(found) == sorted([cell.strip() for cell in row if cell.strip()] for row in expected)
    assert html.count('<tr class="paper">') == 2
    assert '<p class="note">A note &lt;i&gt;.</p><p class="note">Another.</p>' in html


def test_tables_as_files() -> None:
    rows = {"a": [Cell(1234.5, (-1.0, 2.0))], "d": [Cell(2)], "e": [Cell(2.0)]}
    table = ReportTable("t", "T", ("x %",), rows, {"p": [Cell(NAN)]}, signed=frozenset("e"))
    assert [line.partition("x %,")[2] for line in tables_csv([table]).splitlines()[1:]] == [
        "1234.5,-1,2,ours,", "2,,,ours,", "2,,,ours,", ",,,paper,",
    ]  # fmt: skip
    text = tables_markdown("Title", ["fact"], [table], "")
    for line in "| a | 1234.50 [-1.00, 2.00] |", "| d | 2 |", "| e | +2.00 |", "| *paper:* p |  |":
        assert line in text
    with pytest.raises(ValueError, match="2 cells"):
        ReportTable("t", "T", ("x",), {"a": [None, None]})


def test_names_from_data_are_names_in_every_format() -> None:
    row, column, note = "=HYPERLINK(1)", "![c](http://e.example)|", "# <img src=x> \x1b[2J"
    table = ReportTable(row, f"{row} {column}", (column,), {row: [Cell(-1.5)], "b": [not_measured(note)]}, note=note)
    (head, first, second) = csv.reader(io.StringIO(tables_csv([table]), newline=""))
    assert len(head) == len(first) == 8
    assert [first[:4], second[7]] == [[f"'{row}", f"'{row}", column, "-1.5"], f"not measured: {note[:-4]}\\x1b[2J"]
    page = MarkdownIt("commonmark").enable("table").render(tables_markdown(column, [note], [table], note))
    assert {*re.findall(r"<(\w+)", page)} == {"h1", "h2", "ul", "li", "p", "table", "thead", "tbody", "tr", "th", "td"}
    assert page.count("<h1>") == page.count("<table>") == 1
    assert page.count("<td") == 4
    assert not {"\x1b", "<img"} & {*re.split(r"(\x1b|<img)", page + tables_html([table]))}
