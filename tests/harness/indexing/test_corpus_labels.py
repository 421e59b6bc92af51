"""A corpus's own ids and metadata.

Kept by every index, returned in answers and reports, without changing what a passage is.
"""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from common.errors import UserError
from common.records import Passage, Question, Source
from common.retrieval import search_for
from datamodules.formats.reading import read_passages, read_questions
from harness.commands.evaluate import evaluate
from harness.evaluation.serialization import pack_passages, unpack_passages
from harness.indexing.index_folder import open_index
from harness.indexing.passage_store import OTHER_IDS, PassageStore, write_passages
from harness.retrievers.bm25 import Bm25Retriever, build_bm25
from harness.retrievers.dense import DenseRetriever, build_dense
from harness.systems.retrieve_read import RetrieveRead
from tests.helpers import river_corpus
from tests.helpers.commands import done
from tests.helpers.reports import questions as records_of

ROWS = [
    {"_id": "doc-17", "title": "Alba", "text": "alba river joins brune", "url": "https://example.org/17",
        "meta": {"page": 3}},
    {"_id": "doc-18", "title": "Brune", "text": "brune ends ocean", "metadata": {}},
    {"title": "Dorn", "text": "dorn ends lake", "year": 1999},
    {"id": 19, "contents": '"Elbe"\nelbe mountain', "url": None},
    {"title": "Fulda", "text": "fulda mountain"},
]  # fmt: skip
LABELS = [
    {"corpus_id": "doc-17", "metadata": {"url": "https://example.org/17", "meta": {"page": 3}}},
    {"corpus_id": "doc-18"},
    {"metadata": {"year": 1999}},
    {"corpus_id": "19"},
    {},
]


def write_rows(folder: Path, rows: list[dict]) -> str:
    file = folder / "corpus.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(file)


@pytest.fixture
def passages(tmp_path: Path) -> list[Passage]:
    read = list(read_passages("jsonl", [write_rows(tmp_path, ROWS)]))
    assert [passage.labels for passage in read] == LABELS
    assert [passage.title for passage in read] == ["Alba", "Brune", "Dorn", "Elbe", "Fulda"]
    return read


UNUSUAL = [
    ({"id": "", "text": "a"}, {}),
    ({"_id": None, "id": " ", "doc_id": 7, "text": "a"}, {"metadata": {"doc_id": 7}}),
    ({"_id": None, "doc_id": 7, "text": "a"}, {"corpus_id": "7"}),
    ({"id": 7.0, "text": "a"}, {"corpus_id": "7"}),
    ({"id": "  a  b ", "text": "a"}, {"corpus_id": "  a  b "}),
    ({"_id": "one", "id": "other", "text": "a"}, {"corpus_id": "one", "metadata": {"id": "other"}}),
    ({"id": 1, "text": "a", "contents": "b"}, {"corpus_id": "1"}),
    ({"text": "a", "x": float("nan"), "y": 0, "z": False}, {"metadata": {"y": 0, "z": False}}),
]


@pytest.mark.parametrize(("row", "labels"), UNUSUAL)
def test_unusual_ids_and_values(row: dict, labels: dict, tmp_path: Path) -> None:
    (passage,) = read_passages("jsonl", [write_rows(tmp_path, [row])])
    write_passages(tmp_path, [passage])
    assert [each.labels for each in (passage, *PassageStore(tmp_path))] == [labels] * 2


NO_IDS = [
    *(({"doc_id": id_, "text": "a"}, f"field 'doc_id' is {shown}") for id_, shown in (
        (1.5, "the number 1.5"), (True, "true or false"), ([1], "a list"),
        ({}, "an object"))),
    ({"id": "\ud800", "text": "a"}, "unpaired surrogate"),
    ({"id": "1", "text": "a", "url": ["\ud800"]}, "unpaired surrogate"),
]  # fmt: skip


@pytest.mark.parametrize(("row", "word"), NO_IDS)
def test_what_is_no_id_or_no_text_is_a_data_error(row: dict, word: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=rf"corpus\.jsonl, line 1: .*{word}"):
        list(read_passages("jsonl", [write_rows(tmp_path, [row])]))


def test_contexts_of_questions_keep_their_ids(tmp_path: Path) -> None:
    context = {"id": 4711, "title": "Alba", "text": "alba river", "score": "1.5", "hasanswer": True}
    (tmp_path / "fid.json").write_text(json.dumps([{"question": "where", "answers": ["alba"], "ctxs": [context]}]))
    (question,) = read_questions("fid", str(tmp_path / "fid.json"))
    assert question.passages[0].labels == {"corpus_id": "4711"}


def test_both_kinds_of_index_return_them_and_they_do_not_identify_a_passage(tmp_path, passages, encoder) -> None:
    build_bm25(passages, tmp_path / "bm25")
    build_dense(passages, tmp_path / "dense", encoder)
    bare = [Passage(p.id, p.text, p.title) for p in passages]
    assert [(p, hash(p), repr(p)) for p in passages] == [(p, hash(p), repr(p)) for p in bare]
    (hit, *_) = Bm25Retriever(tmp_path / "bm25").search(["alba"], 1)[0]
    assert hit.passage.labels == LABELS[0]
    found = DenseRetriever(tmp_path / "dense", "cpu").search(["alba"], 5)[0]
    assert {hit.passage.title: hit.passage.labels for hit in found} == {p.title: p.labels for p in passages}


def test_the_recipe_of_a_corpus_without_labels_is_that_of_earlier_releases(tmp_path: Path, passages) -> None:
    bare, labelled = tmp_path / "bare", tmp_path / "labelled"
    build_bm25([Passage(p.id, p.text, p.title) for p in passages], bare)
    assert open_index(bare).recipe.keys() == {"kind", "corpus", "text", "k1", "b", "analyser"}
    row = json.loads((bare / "passages.jsonl").read_text().splitlines()[0])
    assert row.keys() == {"id", "title", "text", "source"}
    for _ in range(2):  # the second time it is up to date
        build_bm25(passages, labelled)
    assert open_index(bare).corpus == open_index(labelled).corpus
    renamed = [Passage(p.id, p.text, p.title, corpus_id=f"new-{p.id}") for p in passages]
    for others, folder in ((passages, bare), (renamed, labelled)):
        with pytest.raises(UserError, match=r"holds another index \(differs in: labels\)"):
            build_bm25(others, folder)


def test_of_equal_passages_the_first_id_is_returned_and_the_others_are_counted(tmp_path: Path) -> None:
    write_rows(tmp_path, [{"id": id_, "title": "Alba", "text": "y" if id_ == "c" else "x"} for id_ in "abac"])
    ended = done(tmp_path, "infer.py", "index", "--corpus", "corpus.jsonl", "--kind", "bm25", "--out", "index")
    said = "a passage with the title and text of an earlier one: 2, left out; the first: corpus.jsonl, line 2."
    assert [line for line in ended.err.splitlines() if "earlier one" in line] == [said]
    store = PassageStore(tmp_path / "index")
    assert [(passage.corpus_id, passage.other_ids) for passage in store] == [("a", ("b",)), ("c", ())]
    question = Question("q", "who", passages=())
    packed = json.loads(json.dumps(pack_passages(question, store)))
    assert [each.other_ids for each in unpack_passages(question, packed)] == [("b",), ()]
    assert [Question(id_, "who").is_itself(store[0]) for id_ in "abc"] == [True, True, False]
    own = Question("b", "Alba", source=Source(exclude_self=True))
    found = search_for(Bm25Retriever(tmp_path / "index"), [own], 2)[0]
    assert [hit.passage.corpus_id for hit in found] == ["c"]
    assert json.loads((tmp_path / "index" / OTHER_IDS).read_text()) == {"b": [store[0].id]}


def test_saved_results_keep_them(passages: list[Passage]) -> None:
    shipped = tuple(Passage(p.id, p.text, p.title) for p in passages[:2])
    question = Question("q", "where", passages=shipped)
    packed = json.loads(json.dumps(pack_passages(question, [*passages, *shipped])))
    unpacked = unpack_passages(question, packed)
    assert list(unpacked) == [*passages, *shipped]
    assert [passage.labels for passage in unpacked] == [*LABELS, {}, {}]
    assert packed[-2:] == [0, 1]
    old = [passages[0].id, passages[0].text, passages[0].title, ""]  # as earlier releases saved a passage
    assert unpack_passages(question, [old]) == (passages[0],)
    table = Passage("12ab", "| a |", "Alba", metadata={"kind": "table"}, indexed="Alba a")
    (unpacked,) = unpack_passages(question, json.loads(json.dumps(pack_passages(question, [table]))))
    assert asdict(unpacked) == asdict(table)


def test_reports_have_them_per_question(tmp_path: Path) -> None:
    river = [Passage.of(title, text, corpus_id=title, metadata={"n": 1}) for title, text in river_corpus.TEXTS.items()]
    build_bm25(river, tmp_path / "index")
    questions = str(river_corpus.write_questions(tmp_path))
    evaluate(RetrieveRead(Bm25Retriever(tmp_path / "index")), tmp_path / "report", questions=questions, resamples=10)
    evidence = [hit for record in records_of(tmp_path / "report") for hit in record["evidence"]]
    expected = {passage.id: passage.labels for passage in river}
    assert evidence
    assert all({key: hit[key] for key in ("corpus_id", "metadata")} == expected[hit["id"]] for hit in evidence)
