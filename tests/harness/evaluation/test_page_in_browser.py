"""The browser of questions in a real Chromium.

Filters, details, texts that try to run, and the time of 5,000 questions.
"""

import random
import re
from pathlib import Path

import pytest

from common.records import Passage, Question
from harness.evaluation.page import Case, page
from harness.evaluation.tables import Table
from tests.helpers.browser import drive, needs_chromium
from tests.helpers.pages import CITY, EVIL, answer, small_page

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
        "stage: first; partner: River (rank 2); probability: 0.912", "log-probability -0.5", "EM 1 · F1 1", "CFS",
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
    question = Question(EVIL, EVIL, (EVIL, "x"), (evil,), (evil.id,), (EVIL,), EVIL)
    answers = [answer(EVIL, EVIL, evil, costs={EVIL: 1.0}, notes={EVIL: EVIL, "more": [{"id": evil.id, "why": EVIL}]})]
    case = Case(EVIL, (EVIL,), ((EVIL,),), EVIL)
    text = page(EVIL, [EVIL], [Table(EVIL, EVIL, (EVIL,), {EVIL: [None]}, note=EVIL)], EVIL, {}, [question],
                {EVIL: answers, "other": answers}, {EVIL: {EVIL: [1.0]}}, [[case]])  # fmt: skip
    script = """
    result.opened = document.querySelectorAll("img, script:not([type])").length;
    document.querySelector("#list button").click();
    result.shown = document.querySelector("#details .evidence .text").textContent;
    result.elements = document.querySelectorAll("img, script:not([type])").length;
    result.evil = document.body.dataset.evil ?? null;
    """
    assert drive(text, script, tmp_path) == {"opened": 2, "shown": evil.text, "elements": 2, "evil": None}


def large_page() -> str:
    """5,000 questions under 4 systems with 4 passages each, 40,000 different passages of 100 words."""
    draw = random.Random(0)
    sentences = [" ".join("".join(draw.choices("etaoinshr", k=5)) for _ in range(20)) for _ in range(500)]
    questions, systems = [], {f"system {number}": [] for number in range(4)}
    measures = {name: {"EM": [], "F1": []} for name in systems}
    for place in range(5000):
        own = [Passage(f"{place:08x}{i:08x}", " ".join(draw.choices(sentences, k=5)), "Title") for i in range(8)]
        id_ = f"q{place}"
        questions.append(Question(id_, sentences[place % 500], ("etao",), (own[0], own[4]), (own[0].id, own[4].id),
                                  kind=("bridge", "comparison")[place % 2]))  # fmt: skip
        for name, answers in systems.items():
            found = draw.sample(own, 4)
            notes = {"documents": [{"id": p.id, "stage": "first", "probability": 0.5} for p in found]}
            answers.append(answer(id_, "etao", *found, costs={"seconds/reading": 0.1}, notes=notes))
            for values in measures[name].values():
                values.append(float(draw.random() < 0.5))
    return page("Large", [], [], "", {}, questions, systems, measures)


@needs_chromium
@pytest.mark.whole_run
def test_five_thousand_questions_open_and_filter_in_time(tmp_path: Path) -> None:
    script = """
    document.body.offsetHeight; // lays the page out
    result.open = performance.now(); // since the address was opened
    const timed = (name, value) => {
      const before = performance.now();
      set(name, value);
      document.body.offsetHeight;
      return performance.now() - before;
    };
    result.filters = [["text", "etaoi"], ["text", ""], ["kind", "bridge"], ["system0", "wrong"], ["show", "b"], \
["sort", "b-a"]]
      .map(([name, value]) => timed(name, value));
    const before = performance.now();
    document.querySelector("#list button").click();
    document.body.offsetHeight;
    result.choose = performance.now() - before;
    result.count = count();
    """
    text = large_page()
    tried = []
    for _ in range(3):  # other work on the machine can only slow it down
        found = drive(text, SETUP + script, tmp_path)
        assert re.fullmatch(r"1 to 50 of \d{3} questions \(of 5,000\)", found["count"])
        tried.append((found["open"], max(found["filters"]), found["choose"]))
        print(f"opened in {tried[-1][0]:.0f} ms, filtered in {tried[-1][1]:.0f} ms, question in {tried[-1][2]:.0f} ms")
        if tried[-1][0] < 2000 and max(tried[-1][1:]) < 200:
            break
    assert min(one for one, _, _ in tried) < 2000, tried
    assert min(one for _, one, _ in tried) < 200, tried
    assert min(one for _, _, one in tried) < 200, tried
