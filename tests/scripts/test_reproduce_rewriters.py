"""Files of `make reproduce-lm` for rewriters: who is in which file, labels of words, answers, and the tables."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from common.rewrites import RewriteExample
from datamodules.formats.word_labels import from_row
from scripts.reproduce_lm import dialogues, rewrite_files

CANARD = [  # two dialogues; the second begins as one of QReCC's
    (["Bartram", "Travels"], "What did he find?", "What did Bartram find?"),
    (["Bartram", "Travels", "What did he find?", "A vale."], "Where?", "Where did Bartram find a vale?"),
    (["Bartram", "Travels", "What did he find?", "A vale.", "Where?", "I don't know."], "When?", "When was it?"),
    (["Bach", "Life"], "Where was he born?", "Where was Bach born?"),
]


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    qrecc = [
        {"conversation": "", "question": "where was he born", "label": "Where was Bach born?"},
        {"conversation": "", "question": "Who is Ed?", "label": "Who is Ed?"},
        {"conversation": "Q: Who is Ed? A: A wood.", "question": "Where?", "label": "Where is Ed?"},
        {"conversation": "", "question": "Who is Al?", "label": "Who is Al?"},
    ]
    canard = [{"History": history, "Question": question, "Rewrite": rewrite} for history, question, rewrite in CANARD]
    for name, rows in (("qrecc", qrecc), ("canard", canard)):
        (tmp_path / f"{name}.json").write_text(json.dumps(rows))
    return str(tmp_path / "qrecc.json"), str(tmp_path / "canard.json")


def read(file: Path) -> list[str]:
    return [json.loads(line)["question"] for line in file.read_text().splitlines()]


def test_dialogues_of_both_files_are_in_neither_and_none_is_torn_apart(
    files: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rewrite_files, "TURNS", 1)
    rewrite_files.dialogues(*files, tmp_path)
    train, validation = read(tmp_path / "qrecc-train.jsonl"), read(tmp_path / "qrecc-validation.jsonl")
    assert (train, validation) in ((["Who is Ed?"], ["Who is Al?"]), (["Who is Al?"], ["Who is Ed?", "Where?"]))
    assert sorted(read(tmp_path / "canard-test.jsonl")) == ["What did he find?", "When?", "Where?"]


def test_queries_are_distinct_and_none_is_in_dev(tmp_path: Path) -> None:
    (tmp_path / "a.source").write_text("Who is Ed?\nwho is ed\nWho is Al?\nWho is Jo?\n")
    (tmp_path / "a.target").write_text("Ed\nEd Wood\nAl\nJo\n")
    dev = {
        "_id": "1",
        "question": "who is AL",
        "answer": "x",
        "supporting_facts": [["T", 0]],
        "context": [["T", ["S."]]],
    }
    (tmp_path / "dev.json").write_text(json.dumps([dev | {"type": "bridge", "level": "hard"}]))
    rewrite_files.queries(str(tmp_path / "a.source"), tmp_path, [str(tmp_path / "dev.json")])
    assert sorted(read(tmp_path / "rrr-train.jsonl")) == ["Who is Jo?", "who is ed"]


def test_a_pseudo_answer_is_title_and_first_sentence_of_the_gold_passage(tmp_path: Path) -> None:
    gold = {"title": "Cat", "text": "A cat purrs. It sleeps.", "hasanswer": True, "isgold": True}
    row = {"question": "what purrs", "answers": ["cat"], "ctxs": [gold]}
    (tmp_path / "nq.jsonl").write_text(json.dumps(row) + "\n")
    rewrite_files.passages(str(tmp_path / "nq.jsonl"), tmp_path / "out.jsonl")
    assert json.loads((tmp_path / "out.jsonl").read_text())["rewrite"] == "Cat. A cat purrs."


def test_words_of_the_rewrite_stay_and_join(tmp_path: Path) -> None:
    row = RewriteExample("What did he find?", "gqr", "What did Bartram find?", ("Bartram", "Travels"))
    labels = dialogues.labels(row, 3)
    assert labels.without_word == {"what": -0.5, "did": -0.5, "he": 0.5, "find": -0.5}
    assert labels.with_word == {"bartram": 0.5}
    assert [each.text for each in labels.passages] == ["Travels Bartram"]
    assert from_row(json.loads(json.dumps(dialogues.to_row(labels)))) == labels


class _Search:
    """Finds the passage whose number the query names."""

    def __init__(self, found: Sequence[dialogues.Passage]) -> None:
        self.found = found

    def search(self, queries: Sequence[str], k: int) -> list[list[dialogues.Ranked]]:
        assert k == dialogues.DEPTH
        return [[dialogues.Ranked(each, 1.0) for each in self.found if each.title in query] for query in queries]


def test_the_report_by_hand(files: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer to "Where?" is not known, to "When?" and of Bach's dialogue it is not in the file."""
    answers = dialogues.answers_of(files[1])
    assert answers == {(("Bartram", "Travels"), "What did he find?"): dialogues.Passage.of("Bartram", "A vale.")}
    for name in ("Bm25Retriever", "DenseRetriever"):
        monkeypatch.setattr(dialogues, name, lambda _: _Search([*answers.values()]))
    rows = [RewriteExample(question, "gqr", rewrite, tuple(history)) for history, question, rewrite in CANARD[:2]]
    text = dialogues.report(rows, {"rewriter": ["What did Bartram find?", "Where"]}, files[1], Path(), Path())
    f1, bm25, dense = (part.splitlines() for part in text.split("\n\n"))
    assert f1[0] == "| text | token F1, %, n = 2 | difference to the question |"
    assert f1[2] == "| question | 54.17 [33.33, 75.00] |  |"  # 3/4; one word of five without the article: 1/3
    assert f1[3].startswith("| rewriter | ")
    for recall in (bm25, dense):
        assert recall[0].endswith("%, n = 1 | difference to the question |")
        assert recall[2] == "| question | 0.00 [0.00, 0.00] |  |"
        assert recall[3] == "| rewriter | 100.00 [100.00, 100.00] | +100.00 [+100.00, +100.00] |"
