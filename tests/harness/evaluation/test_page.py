"""The page of a report: data that survive any text, what details say, nothing loaded from elsewhere."""

import json
import re

from common.records import Passage, Question
from harness.evaluation.page import Case, page
from harness.evaluation.tables import Table
from tests.helpers.pages import CITY, EVIL, NAN, answer, small_page


def blocks(text: str) -> dict[str, object]:
    """The page's data by the id of their script element."""
    scripts = re.findall(r'<script type="application/json" id="([^"]+)">(.*?)</script>', text, re.DOTALL)
    return {id_: json.loads(data) for id_, data in scripts}


def test_data_survive_any_text() -> None:
    evil = Passage("id", EVIL + " \ud800 lone", EVIL, corpus_id=EVIL)
    question = Question("q" + EVIL, EVIL, (EVIL,), (evil,), (evil.id,), ("elsewhere" + EVIL,), EVIL)
    answers = [answer(question.id, EVIL, evil, evil, costs={EVIL: NAN, "model_calls": 2.0}, notes={EVIL: EVIL})]
    case = Case(EVIL, (EVIL,), ((EVIL,),), EVIL)
    text = page(EVIL, [EVIL], [Table(EVIL, EVIL, (EVIL,), {EVIL: [None]}, note=EVIL)], EVIL, {EVIL: b"\x89PNG"},
                [question], {EVIL: answers}, {EVIL: {EVIL: [1.0]}}, [[case]])  # fmt: skip
    text.encode()  # UTF-8 has no lone surrogates
    assert "<img src=x" not in text
    assert text.count("<script") == text.count("</script>") == 4  # three blocks of data, one script
    data = blocks(text)
    index, (details,), (shown,) = data["index"], data["questions-0"], data["passages-0"]
    assert (index["systems"], index["measures"], index["values"], index["answers"]) == (
        [EVIL],
        [EVIL],
        [[[1.0]]],
        [[EVIL]],
    )
    assert index["questions"] == [{"id": "q" + EVIL, "text": EVIL, "kind": EVIL, "answers": [EVIL]}]
    assert shown[:2] == [evil.title, evil.text]
    assert shown[2] == f"id: id; corpus id: {EVIL}"
    assert details["gold"] == [0]
    assert details["elsewhere"] == ["elsewhere" + EVIL]
    assert details["cases"] == [{"title": EVIL, "columns": [EVIL], "rows": [[EVIL]], "note": EVIL}]
    (system,) = details["systems"]
    assert system["evidence"] == [[0, 1.0, "gold", ""], [0, 0.0, "gold", ""]]
    assert system["costs"] == {EVIL.replace("_", " "): None, "model calls": 2.0}
    assert system["notes"] == [[EVIL, EVIL]]


def test_details_say_what_was_found_and_why() -> None:
    data = blocks(small_page())
    found, _, _, unknown, _ = data["questions-0"]
    assert [row[0] for row in data["passages-0"]] == ["City", "River", "Ship"]  # each once
    assert data["index"]["values"][0][1] == [1, 0.25, None, 1, 0.5]
    assert found["systems"][0]["evidence"] == [
        [0, 1.0, "gold", "stage: first; partner: River (rank 2); probability: 0.912"],
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
