"""Files of `make reproduce-lm` for rewriters: who is in which file, labels of words, answers, and the tables."""

import json
from pathlib import Path

import numpy as np
import pytest

from common.rewrites import RewriteExample
from datamodules.formats.word_labels import from_row
from scripts.reproduce_lm import dialogues, rewrite_files
from tests.helpers.layout_rows import HOTPOT

CANARD = [  # three dialogues under two pages; some answers stand in no later turn
    (["Bartram", "Travels"], "What did he find?", "What did Bartram find?"),
    (["Bartram", "Travels", "What did he find?", "A vale."], "Where?", "Where did Bartram find a vale?"),
    (["Bartram", "Travels", "What did he find?", "A vale.", "Where?", "I don't know."], "When?", "When was it?"),
    (["Bartram", "Life"], "Did he draw?", "Did Bartram draw?"),
    (["Bartram", "Life", "Did he draw?", "A bird in a vale."], "Which?", "Which bird did Bartram draw?"),
    (["Bach Choir (London)", "Life"], "Who led it?", "Who led the Bach Choir?"),
    (["Bach Choir (London)", "Life", "Who led it?", "A vale of singers."], "Why?", "Why did he lead the Bach Choir?"),
]


@pytest.fixture
def canard(tmp_path: Path) -> str:
    rows = [{"History": history, "Question": question, "Rewrite": rewrite} for history, question, rewrite in CANARD]
    (tmp_path / "canard.json").write_text(json.dumps(rows))
    return str(tmp_path / "canard.json")


def read(file: Path) -> list[str]:
    return [json.loads(line)["question"] for line in file.read_text().splitlines()]


def drawn(turns: list[tuple[str, str, str]], canard: str, tmp_path: Path) -> tuple[list[str], list[str]]:
    """The questions of the training and the validation file that are made of some turns of QReCC."""
    rows = [{"conversation": before, "question": question, "label": rewrite} for before, question, rewrite in turns]
    (tmp_path / "qrecc.json").write_text(json.dumps(rows))
    rewrite_files.dialogues(str(tmp_path / "qrecc.json"), canard, tmp_path)
    return read(tmp_path / "qrecc-train.jsonl"), read(tmp_path / "qrecc-validation.jsonl")


ED = [("", "Who is Ed?", "Who is Ed?"), ("Q: Who is Ed? A: A wood.", "Whose?", "Whose is Ed?")]


def test_no_dialogue_is_torn_apart_and_answers_of_the_test_are_known(
    canard: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rewrite_files, "TURNS", 1)
    train, validation = drawn([*ED, ("", "Who is Al?", "Who is Al?")], canard, tmp_path)
    assert (train, validation) in ((["Who is Ed?"], ["Who is Al?"]), (["Who is Al?"], ["Who is Ed?", "Whose?"]))
    assert sorted(read(tmp_path / "canard-test.jsonl")) == ["Did he draw?", "What did he find?", "Who led it?"]


@pytest.mark.parametrize(
    "turn",
    [
        ("", "who led it", "Who led the choir?"),  # the first question of both
        ("Q: Who is Al? A: A man.", "when", "When was Al?"),  # a later turn's, which is not in the test
        ("Q: When? A: Once.\nQ: Who is Al? A: A man.", "Whom?", "Whom is Al?"),  # of a history
        ("Q: Who is Al? A: A man.", "Whom?", "When was it?"),  # equal rewrites
        ("Q: Who is Al? A: A man.", "Whom?", "Where did Bartram find a vale"),
        ("", "Who was the Bach Choir's head?", "Who was the head?"),  # the page, without "(London)"
        ("Q: Who is Al? A: A man.", "Whom?", "Whom did Bartram meet?"),  # the page, in a rewrite
    ],
)
def test_an_equal_question_or_the_page_keeps_a_dialogue_out(
    turn: tuple[str, str, str], canard: str, tmp_path: Path
) -> None:
    assert drawn([*ED, turn], canard, tmp_path) == (["Who is Ed?", "Whose?"], [])


def test_queries_are_distinct_and_none_is_in_dev(tmp_path: Path) -> None:
    (tmp_path / "a.source").write_text("Who is Ed?\nwho is ed\nWho is Al?\nWho is Jo?\n")
    (tmp_path / "a.target").write_text("Ed\nEd Wood\nAl\nJo\n")
    (tmp_path / "dev.json").write_text(json.dumps([HOTPOT | {"question": "who is AL"}]))
    rewrite_files.queries(str(tmp_path / "a.source"), tmp_path, [str(tmp_path / "dev.json")])
    assert sorted(read(tmp_path / "rrr-train.jsonl")) == ["Who is Jo?", "who is ed"]


def test_a_pseudo_answer_is_title_and_first_sentence_of_the_gold_passage(tmp_path: Path) -> None:
    gold = {"title": "Cat", "text": "A cat purrs. It sleeps.", "hasanswer": True, "isgold": True}
    (tmp_path / "nq.jsonl").write_text(json.dumps({"question": "what purrs", "answers": ["cat"], "ctxs": [gold]}))
    rewrite_files.passages(str(tmp_path / "nq.jsonl"), tmp_path / "out.jsonl")
    assert json.loads((tmp_path / "out.jsonl").read_text())["rewrite"] == "Cat. A cat purrs."


def test_words_of_the_rewrite_stay_and_join(tmp_path: Path) -> None:
    row = RewriteExample("What did he find?", "gqr", "What did Bartram find?", ("Bartram", "Travels"))
    labels = dialogues.labels(row, 3)
    assert labels.without_word == {"what": -0.5, "did": -0.5, "he": 0.5, "find": -0.5}
    assert labels.with_word == {"bartram": 0.5}
    assert [each.text for each in labels.passages] == ["Travels Bartram"]
    assert from_row(json.loads(json.dumps(dialogues.to_row(labels)))) == labels


@pytest.mark.parametrize(
    ("among", "first", "reciprocal"),
    [([1, 3, 4], 1 / 2, 3 / 4), ([1, 2, 3], 0, 5 / 12), ([1, 4], 1, 1), ([0, 1, 2], 0, 1 / 3)],
)
def test_answers_with_one_score_count_as_in_every_order(among: list[int], first: float, reciprocal: float) -> None:
    scores_P = np.array([3.0, 1.0, 2.0, 1.0, 0.0])
    assert dialogues.measured("R@1", scores_P, 1, among) == first
    assert dialogues.measured("MRR", scores_P, 1, among) == pytest.approx(reciprocal)


@pytest.fixture
def _no_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    """All cosines are zero."""
    monkeypatch.setattr(dialogues, "SentenceEncoder", lambda: None)
    monkeypatch.setattr(dialogues, "cosines", lambda asked, _: [np.zeros(len(each.passages)) for each in asked])


@pytest.mark.usefixtures("_no_encoder")
def test_the_report_by_hand(canard: str) -> None:
    """The page Bartram has the answers "A vale." and "A bird in a vale.", Bach Choir a single one."""
    answers = dialogues.answers_of(canard)
    assert [answer.text for answer in answers.values()] == ["A vale.", "A bird in a vale.", "A vale of singers."]
    rows = [RewriteExample(each[1], "gqr", each[2], tuple(each[0])) for each in (CANARD[0], CANARD[3], CANARD[5])]
    others = dialogues.other_turns(rows, answers)
    assert {place: row.question for place, row in others.items()} == {0: "Did he draw?", 1: "What did he find?"}
    assert all(row.history == rows[place].history for place, row in others.items())
    made = {"rewriter": ["the vale", "the bird", "Who led the Bach Choir?", "the bird", "the vale"]}
    tables = [part.splitlines() for part in dialogues.report(rows, made, [*others], answers).split("\n\n")]
    shown = {part[0].split(" | ")[1]: dict(line[2:].split(" | ")[:2] for line in part[2:]) for part in tables}
    f1 = shown["token F1, %, n = 3"]
    assert f1["question"].startswith("66.27 ")  # 3/4, 2/3, and 4/7: the article does not count
    assert f1["human rewrite"] == "100.00 [100.00, 100.00]"
    own = {name: text.split()[0] for name, text in shown["R@1 among the page's, BM25, %, n = 2"].items()}
    # not of Bach Choir; no word of an answer is in the question: each order counts
    even = dict.fromkeys(("question", "floor", "chance"), "50.00")
    assert own == {**even, "rewriter": "100.00", "another question": "0.00"}
    assert shown["MRR among the page's, MiniLM, %, n = 2"]["rewriter"] == "75.00 [75.00, 75.00]"


@pytest.mark.usefixtures("_no_encoder")
def test_answers_that_the_turns_have_are_candidates_of_the_page_alone() -> None:
    history = ("Page", "Section", "What?", "A red vale.")
    answers = {
        (history[:2], "What?"): dialogues.Passage.of("", "A red vale."),
        (history, "Where?"): dialogues.Passage.of("", "The vale."),
        (("Page", "Other"), "Who?"): dialogues.Passage.of("", "A bird."),
        (("Elsewhere", "Other"), "Whose?"): dialogues.Passage.of("", "The red vale."),
    }
    row = RewriteExample("Where?", "gqr", "Where is the red vale?", history)
    lines = dialogues.searched({"question": ["red vale"]}, [row], answers, None)  # type: ignore[arg-type]
    shown = {
        head.split(" | ")[1]: text.split(" | ")[1].split()[0]
        for head, text in zip(lines[::5], lines[2::5], strict=True)
    }
    assert shown["R@1 among the page's, BM25, %, n = 1"] == "0.00"  # behind "A red vale."
    assert shown["MRR among the page's, BM25, %, n = 1"] == "50.00"
    assert shown["R@1 among the page's not in the turns, BM25, %, n = 1"] == "100.00"  # before "A bird."
    assert shown["MRR among the page's not in the turns, MiniLM, %, n = 1"] == "75.00"  # both have one score
