"""The page of a report: data that survive any text, what details say, nothing loaded from elsewhere."""

import json
import re
from pathlib import Path

from common.records import Gold, Passage, Question
from common.shown_text import terminal
from harness.evaluation.page import QuestionCase, page
from harness.evaluation.tables import ReportTable
from tests.helpers.browser import drive, needs_chromium
from tests.helpers.pages import CITY, EVIL, NAN, answer, small_page


def blocks(text: str) -> dict[str, object]:
    """The page's data by the id of their script element."""
    scripts = re.findall(r'<script type="application/json" id="([^"]+)">(.*?)</script>', text, re.DOTALL)
    return {id_: json.loads(data) for id_, data in scripts}


def test_data_survive_any_text() -> None:
    evil = Passage("id", EVIL + " \ud800 lone", EVIL, corpus_id=EVIL)
    question = Question("q" + EVIL, EVIL, (EVIL,), (evil,), (evil.id,), EVIL, gold=Gold(("elsewhere" + EVIL,)))
    answers = [answer(question.id, EVIL, evil, evil, costs={EVIL: NAN, "model_calls": 2.0}, notes={EVIL: EVIL})]
    case = QuestionCase(EVIL, (EVIL,), ((EVIL,),), EVIL)
    text = page(EVIL, [EVIL], [ReportTable(EVIL, EVIL, (EVIL,), {EVIL: [None]}, note=EVIL)], EVIL, {EVIL: b"\x89PNG"},
                [question], {EVIL: answers}, {EVIL: {EVIL: [1.0]}}, [[case]])  # fmt: skip
    text.encode()  # UTF-8 has no lone surrogates
    assert "<img src=x" not in text
    assert text.count("<script") == text.count("</script>") == 4  # three blocks of data, one script
    seen = terminal(EVIL)
    data = blocks(text)
    index, (details,), (shown,) = data["index"], data["questions-0"], data["passages-0"]
    assert (index["systems"], index["measures"], index["values"], index["answers"]) == (
        [seen],
        [seen],
        [[[1.0]]],
        [[seen]],
    )
    assert index["questions"] == [{"id": "q" + seen, "text": seen, "kind": seen, "answers": [seen]}]
    assert shown[:2] == [seen, terminal(evil.text)]
    assert shown[2] == f"id: id; corpus id: {seen}"
    assert details["gold"] == [0]
    assert details["elsewhere"] == ["elsewhere" + seen]
    assert details["cases"] == [{"title": seen, "columns": [seen], "rows": [[seen]], "note": seen}]
    (system,) = details["systems"]
    assert system["evidence"] == [[0, 1.0, "gold", ""], [0, 0.0, "gold", ""]]
    assert system["costs"] == {seen.replace("_", " "): None, "model calls": 2.0}
    assert system["notes"] == [[seen, seen]]


def test_details_say_what_was_found_and_why() -> None:
    data = blocks(small_page())
    found, _, _, unknown, _ = data["questions-0"]
    assert [row[0] for row in data["passages-0"]] == ["City", "River", "Ship"]  # each once
    assert data["index"]["values"][0][1] == [1, 0.25, None, 1, 0.5]
    assert found["systems"][0]["evidence"] == [
        [0, 1.0, "gold", "stage: first; partner: River (rank 2); P(relevant): 0.912"],
        [1, 0.0, "", "stage: second"],
    ]
    assert found["systems"][0]["notes"] == [["selection", "cfs"]]
    assert (found["systems"][0]["logprob"], found["systems"][1]["logprob"]) == (-0.5, None)
    assert [row[2] for row in unknown["systems"][0]["evidence"]] == ["", "answer"]  # no gold passage in the file
    assert unknown["elsewhere"] == ["Lost"]


def test_passages_take_the_labels_of_the_corpus() -> None:
    labelled = Passage.of("City", CITY.text, corpus_id="doc-7", metadata={"year": 1900})
    question = Question("q", "Where?", passages=(CITY,), support=(CITY.id,))
    data = blocks(page("T", [], [], "", {}, [question], {"a": [answer("q", "", labelled)]}, {}))
    assert data["passages-0"] == [["City", CITY.text, f"id: {CITY.id}; corpus id: doc-7; metadata: year: 1900"]]


def test_segments_of_documents_are_cited() -> None:
    about = {"document": "a1.pdf", "headings": ["Ratings"], "kind": "image", "page": 7, "image": "index/images/0a.png"}
    segment = Passage("12ab", "| a | b |\n| 1 | 2 |", "Alba > Ratings", metadata=about)
    data = blocks(page("T", [], [], "", {}, [Question("q", "Where?")], {"a": [answer("q", "", segment)]}, {}))
    label = "id: 12ab; document: a1.pdf, page 7: Ratings; image: index/images/0a.png"
    assert data["passages-0"] == [["Alba > Ratings", segment.text, label]]


def test_measures_that_are_undefined_everywhere_are_left_out() -> None:
    """Without a reader EM is undefined: the first measure that has values says what is right."""
    measures = {"a": {"EM": [NAN], "recall of gold": [1.0]}, "b": {"EM": [NAN], "MRR": [0.5]}}
    answers = {name: [answer("q", "")] for name in measures}
    index = blocks(page("T", [], [], "", {}, [Question("q", "?")], answers, measures))["index"]
    assert index["measures"] == ["recall of gold", "MRR"]
    assert index["values"] == [[[1.0], []], [[], [0.5]]]


def test_nothing_is_loaded_from_elsewhere() -> None:
    text = page("T", [], [], "", {"plot": b"\x89PNG"}, [], {}, {})
    sources = re.findall(r'(?:src|href|action|data|poster|srcset)\s*=\s*"([^"]*)"', text)
    assert sources
    assert all(source.startswith(("#", "data:image/png;base64,")) for source in sources), sources
    assert not re.search(r"https?:|url\(|@import|fetch\(|XMLHttpRequest|innerHTML|insertAdjacentHTML|eval\(", text)
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    assert "default-src 'none'" in policy
    assert "img-src data:" in policy
    assert "unsafe" not in policy
    assert text.index(policy) < text.index("<style>")


SETUP = """
const set = (name, value) => {
  const field = document.querySelector(`[name=${name}]`);
  field.value = value;
  field.dispatchEvent(new Event("input", {bubbles: true}));
};
const shown = () => [...document.querySelectorAll("#list button")].map((button) => Number(button.dataset.question));
const count = () => document.querySelector("#count").textContent;
"""


@needs_chromium
def test_filters_show_the_right_questions(tmp_path: Path) -> None:
    script = """
    const tried = (...changes) => {
      document.querySelector("#filters").reset();
      changes.forEach(([name, value]) => set(name, value));
      return shown();
    };
    result.all = tried(["text", ""]); result.count = count();
    result.kind = tried(["kind", "bridge"]); result.some = count();
    result.text = tried(["text", " WHICH "]);
    result.answer = tried(["text", "sea"]);
    result.right = tried(["system0", "right"]);
    result.wrong = tried(["system1", "wrong"]);
    result.unknown = tried(["system0", "unknown"]);
    result.better = tried(["show", "a"]);
    result.worse = tried(["show", "b"]);
    result.swapped = tried(["a", "1"], ["b", "0"], ["show", "a"]);
    result.by = tried(["by", "1"], ["show", "a"]);
    result.equal = tried(["by", "1"], ["show", "equal"]);
    result.several = tried(["by", "1"], ["show", "different"], ["kind", "single"], ["system0", "right"]);
    result.difference = tried(["by", "1"], ["sort", "a-b"]);
    result.reverse = tried(["by", "1"], ["sort", "b-a"]);
    result.low = tried(["by", "1"], ["sort", "low"]);
    result.high = tried(["by", "1"], ["sort", "high"]);
    result.none = tried(["text", "no such text"]); result.zero = count();
    """
    assert drive(small_page(), SETUP + script, tmp_path) == {
        "all": [0, 1, 2, 3, 4], "count": "1 to 5 of 5 questions",
        "kind": [0, 2], "some": "1 to 2 of 2 questions (of 5)",
        "text": [1, 3, 4], "answer": [0, 1, 2],
        "right": [0, 3, 4], "wrong": [0, 3, 4], "unknown": [2],
        "better": [0, 3, 4], "worse": [1], "swapped": [1],
        "by": [0, 3], "equal": [4], "several": [3],
        "difference": [0, 3, 4, 1, 2], "reverse": [1, 4, 0, 3, 2], "low": [1, 4, 0, 3, 2], "high": [0, 3, 4, 1, 2],
        "none": [], "zero": "0 questions (of 5)",
    }  # fmt: skip


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
    assert found["chosen"] == "Which river?"
    assert found["current"] == 1
    assert found["address"] == "#by=1&question=q1"
    assert "gold, but not in the file: Lost" in found["unknown"]
    assert "✓ rank 2" in found["unknown"]
    assert "◆ contains an answer" in found["unknown"]


@needs_chromium
def test_of_many_systems_the_list_shows_two(tmp_path: Path) -> None:
    names = [f"system {number}" for number in range(6)]
    measures = {name: {"EM": [float(number % 2)]} for number, name in enumerate(names)}
    question = Question("q", "Where?", ("City",), (CITY,), (CITY.id,))
    text = page("T", [], [], "", {}, [question], {name: [answer("q", name, CITY)] for name in names}, measures)
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
    evil = Passage("id", EVIL, EVIL)
    question = Question(EVIL, EVIL, (EVIL, "x"), (evil,), (evil.id,), EVIL, gold=Gold((EVIL,)))
    answers = [answer(EVIL, EVIL, evil, costs={EVIL: 1.0}, notes={EVIL: EVIL, "more": [{"id": evil.id, "why": EVIL}]})]
    case = QuestionCase(EVIL, (EVIL,), ((EVIL,),), EVIL)
    text = page(EVIL, [EVIL], [ReportTable(EVIL, EVIL, (EVIL,), {EVIL: [None]}, note=EVIL)], EVIL, {}, [question],
                {EVIL: answers, "other": answers}, {EVIL: {EVIL: [1.0]}}, [[case]])  # fmt: skip
    script = """
    result.opened = document.querySelectorAll("img, script:not([type])").length;
    document.querySelector("#list button").click();
    result.shown = document.querySelector("#details .evidence .text").textContent;
    result.elements = document.querySelectorAll("img, script:not([type])").length;
    result.evil = document.body.dataset.evil ?? null;
    """
    shown = evil.text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")  # separators of lines are visible
    assert drive(text, script, tmp_path) == {"opened": 2, "shown": shown, "elements": 2, "evil": None}
