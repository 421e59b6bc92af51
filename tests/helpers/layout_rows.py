"""One row of every official layout, the passages in them, files made of such rows, and any JSON at all."""

import csv
import io
import json
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from hypothesis import strategies as st

from common.records import Passage
from tests.helpers.data_page import example_rows

HOTPOT = {
    "_id": "h1", "question": "Who wrote  Hamlet?", "answer": "Shakespeare",
    "supporting_facts": [["Hamlet", 0], ["Hamlet", 1], ["Globe", 0]],
    "context": [["Globe", ["A theatre.", " It burnt."]], ["London", ["A city."]], ["Hamlet", ["A play.",
        " By Shakespeare."]]],
    "type": "bridge", "level": "hard",
}  # fmt: skip
HUB_HOTPOT = {
    **{key: HOTPOT[key] for key in ("question", "answer", "type", "level")}, "id": "h1",
    "supporting_facts": {"title": ["Hamlet", "Hamlet", "Globe"], "sent_id": [0, 1, 0]},
    "context": {"title": ["Globe", "London", "Hamlet"], "sentences": [["A theatre.", " It burnt."], ["A city."],
        ["A play.", " By Shakespeare."]]},
}  # fmt: skip
TWOWIKI = HOTPOT | {
    "context": [["Globe", ["A theatre.", "It burnt."]], ["Hamlet", ["A play.", "By Shakespeare."]]],
    "evidences": [["Hamlet", "author", "Shakespeare"]],
    "evidences_id": [],
    "answer_id": None,
    "type": "compositional",
}
MUSIQUE = {
    "id": "3hop1__1_2_3",
    "paragraphs": [{"idx": 0, "title": "Globe", "paragraph_text": "A theatre.", "is_supporting": False}, {"idx": 1,
        "title": "Hamlet", "paragraph_text": "A play.", "is_supporting": True}],
    "question": "Who wrote Hamlet?",
    "question_decomposition": [{"id": 1, "question": "q", "answer": "a", "paragraph_support_idx": 1}],
    "answer": "Shakespeare", "answer_aliases": ["William Shakespeare", "Shakespeare"], "answerable": True,
}  # fmt: skip
IRCOT = {
    "question_id": "i1", "question_text": "Who wrote Hamlet?",
    "answers_objects": [{"number": "", "date": {"day": "", "month": "", "year": ""}, "spans": ["Shakespeare",
        "the Bard"]}, {"number": "1", "date": {"day": "2", "month": "May", "year": "1600"}, "spans": []}],
    "contexts": [{"id": "0", "title": "Globe", "paragraph_text": "A theatre.", "is_supporting": False}, {"id": "1",
        "title": "Hamlet", "paragraph_text": "A play.", "is_supporting": True}],
}  # fmt: skip
FID = {
    "id": "f1", "question": "Who wrote Hamlet?", "answers": ["Shakespeare"],
    "ctxs": [{"id": "9", "title": "Shakespeare", "text": "A writer.", "score": "1.5"}, {"id": "8", "title": "Hamlet",
        "text": "A play by Shakespeare, of 1600.", "score": "1.2"}],
}  # fmt: skip
FLASHRAG = {"id": "test_0", "question": "Who?", "golden_answers": ["Shakespeare"], "metadata": {"type": "bridge"}}
AMBIGNQ = {
    "id": "-80", "question": "Who plays Hamlet ?",
    "annotations": [{"type": "singleAnswer", "answer": ["Olivier", "Laurence Olivier"]}, {"type": "multipleQAs",
        "qaPairs": [{"question": "Who plays Hamlet in 1948?", "answer": ["Laurence Olivier"]},
        {"question": "Who plays Hamlet in 1996?", "answer": ["Kenneth Branagh", "Branagh"]}]}],
}  # fmt: skip
FRESHQA = {
    "id": "3", "split": "TEST", "question": "Who wrote Hamlet?", "effective_year": "before 2022",
    "next_review": "occasionally", "false_premise": "FALSE", "num_hops": "one-hop", "fact_type": "never-changing",
    "source": "https://example.org/a\nb", **{f"answer_{number}": None for number in range(10)},
    "answer_0": "Shakespeare, a writer", "answer_1": "the \"Bard\"", "note": None,
}  # fmt: skip
STRATEGYQA = {
    "qid": "s1", "term": "Hamlet", "description": "A play", "question": "Could Hamlet be read in a day?",
    "answer": True, "facts": ["Hamlet takes four hours."], "decomposition": ["How long does Hamlet take?"],
    "evidence": [[[["Hamlet-1"]]]],
}  # fmt: skip
MASQA = {
    "Question": "单选题：Hamlet 的作者是谁？\nA: Kyd    B: Shakespeare", "Answer": "B: Shakespeare",
    "Context": "[desc] hamlet __ 1 About __ 作者 [desc]\n本剧有五幕。Hamlet 的作者是 Shakespeare。\n* 1600 年",
}  # fmt: skip
CORPUS_QUESTION = {
    "id": "c1", "question": "Who wrote Hamlet?", "answer": "Shakespeare", "answer_aliases": ["the Bard"], "hops": 2,
    "gold_doc_ids": ["Hamlet_1", "Globe_2"],
}  # fmt: skip
BEIR = {"_id": "b1", "text": "Who wrote Hamlet?", "qrels": {"Hamlet_1": 2, "Globe_2": 0}}
DPR = {
    "question": "Who wrote Hamlet?", "answers": ["Shakespeare"],
    "positive_ctxs": [{"title": "Hamlet", "text": "A play by Shakespeare, of 1600.", "score": 1000, "passage_id": "8"}],
    "negative_ctxs": [], "hard_negative_ctxs": [{"title": "Shakespeare", "text": "A writer.", "passage_id": "9"}],
}  # fmt: skip
CORPUS = {"id": "0", "title": "Hamlet", "text": "A play."}
OWN = ("questions", "judgements", "masqa")  # of which the few fields fit many files
ROWS = {
    "hotpotqa": HOTPOT, "twowiki": TWOWIKI, "musique": MUSIQUE, "ircot": IRCOT, "fid": FID, "flashrag": FLASHRAG,
    "ambignq": AMBIGNQ, "freshqa": FRESHQA, "strategyqa": STRATEGYQA, "masqa": MASQA,
    "corpus_questions": CORPUS_QUESTION, "beir": BEIR, "dpr": DPR, "jsonl": CORPUS,
    "questions": example_rows("questions")[1], "judgements": example_rows("judgements")[1],
}  # fmt: skip

GLOBE, LONDON = Passage.of("Globe", "A theatre. It burnt."), Passage.of("London", "A city.")
HAMLET = Passage.of("Hamlet", "A play. By Shakespeare.")

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


def hotpot_row(id_: str, question: str, answer: str, gold: Iterable[str], context: Iterable[Sequence[str]]) -> dict:
    """A row in HotpotQA's layout: titles of gold passages, and passages by title and text."""
    facts, passages = [[title, 0] for title in gold], [[title, [text]] for title, text in context]
    row = {"_id": id_, "question": question, "answer": answer, "supporting_facts": facts, "context": passages}
    return row | {"type": "bridge", "level": "hard"}


def as_list(rows: list) -> str:
    """The rows as a JSON list, one on each line."""
    return "[" + ",\n".join(map(json.dumps, rows)) + "]\n"


def as_lines(rows: list) -> str:
    """The rows as JSON Lines."""
    return "".join(json.dumps(row) + "\n" for row in rows)


def as_csv(rows: list[dict]) -> str:
    """The rows as CSV with a header."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def source(folder: Path, content: str | bytes, name: str = "file.json") -> str:
    """Write a file; its path as the readers take it."""
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def without(row: dict, *fields: str) -> dict:
    """A row that lacks some fields."""
    return {key: value for key, value in row.items() if key not in fields}


def zipped(**files: bytes) -> bytes:
    """A zip archive."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return target.getvalue()
