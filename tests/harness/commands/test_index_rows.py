"""Unusual rows of a corpus on indexing: counted in one line each, or an error that leaves nothing."""

import json
from contextlib import nullcontext
from pathlib import Path

import pytest

from common.errors import ArtifactError, DataError, UserError
from common.sealed_json import unsealed, write_sealed
from datamodules.formats.open_data import VERSIONS
from documents.reading.file_types import READING_VERSIONS
from harness.commands.index import index
from harness.commands.index_options import DenseOptions
from harness.indexing.index_folder import open_index
from harness.indexing.sentence_encoder import SentenceEncoder
from tests.helpers.layout_rows import HOTPOT

ROWS = [
    {"_id": "e", "title": "", "text": ""}, {"_id": "b", "title": "", "text": " \u200b "},
    {"_id": "t", "title": "Only title", "text": ""}, {"_id": "p", "title": "Town", "text": "A river market."},
    {"_id": "q", "title": "Town", "text": "A river  market."},
    {"_id": "l", "title": "", "text": "a stone market " * 40}, {"_id": "p", "title": "Town", "text": "A bridge."},
    {"_id": "t", "title": "Town", "text": "A tower."}, {"_id": "t", "title": "Town", "text": "A tower."},
]  # fmt: skip
COUNTED = [
    "a passage without title and text: 2, left out; the first: c.jsonl, line 1.",
    "a passage with a title and no text: 1, kept; the first: c.jsonl, line 3.",
    "a passage with the title and text of an earlier one: 2, left out; the first: c.jsonl, line 5.",
    "a passage with the id of another one, and another text: 2, kept, both are found by that id; the first: c.jsonl, "
    "line 7, id 'p'.",
]
CUT = "a passage longer than the encoder reads: 1, cut; the first: 'a stone market "


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("c.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return tmp_path


@pytest.fixture
def dense(checkpoints: dict[str, Path]) -> DenseOptions:
    return DenseOptions(str(checkpoints["bert"]), max_tokens=32)


def test_several_kinds_are_built_side_by_side_and_rows_are_counted_once(
    dense: DenseOptions, capsys: pytest.CaptureFixture
) -> None:
    index(Path("out"), "c.jsonl", ["bm25", "links", "dense"], dense=dense, device="cpu")
    *said, cut = [line for line in capsys.readouterr().err.splitlines() if "a passage" in line]
    assert said == COUNTED
    assert cut.startswith(CUT)
    for kind in ("bm25", "links", "dense"):  # each as if it were built alone
        built = open_index(Path("out") / kind, kind)
        assert [passage.corpus_id for passage in built.stored] == ["t", "p", "l", "p", "t"]
        index(Path("alone"), "c.jsonl", kind, dense=dense, device="cpu", overwrite=True)
        assert built.recipe == open_index(Path("alone"), kind).recipe
    with pytest.raises(UserError, match=r"--kind names no kind"):
        index(Path("out"), "c.jsonl", [])


def test_a_passage_of_just_the_encoder_s_length_is_not_cut(checkpoints: dict[str, Path]) -> None:
    encoder = SentenceEncoder(str(checkpoints["bert"]), "cpu")
    texts = ["a stone market", "a stone", "a stone market place"]
    lengths = [len(ids) for ids in encoder.tokenizer(texts)["input_ids"]]
    assert lengths[1] < lengths[0] < lengths[2]
    short = SentenceEncoder(str(checkpoints["bert"]), "cpu", lengths[0])
    assert short.longer(texts) == [2]
    short.encode_passages(texts)
    assert short.cut_rows == [2]


def test_a_paragraph_of_several_questions_is_usual(place: Path) -> None:
    Path("c.jsonl").write_text("".join(json.dumps(HOTPOT | {"_id": name}) + "\n" for name in "ab"))
    index(Path("out"), "c.jsonl", "bm25", "hotpotqa", workers=1, strict=True)
    assert len(open_index(Path("out"), "bm25").stored) == len(HOTPOT["context"])


def test_chunks_of_one_id_are_no_error(place: Path) -> None:
    Path("c.jsonl").write_text(json.dumps(ROWS[3]) + "\n" + json.dumps(ROWS[6]) + "\n")
    index(Path("out"), "c.jsonl", "bm25", workers=1, strict=True)
    assert len(open_index(Path("out"), "bm25").stored) == 2


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (ROWS, "c.jsonl, line 1: a passage without title and text."),
        (ROWS[2:], "c.jsonl, line 1: a passage with a title and no text."),
        (ROWS[3:], "c.jsonl, line 2: a passage with the title and text of an earlier one."),
        ([ROWS[3], ROWS[5]], "'a stone market .* ...': a passage longer than the encoder reads."),
    ],
)
def test_they_are_errors(rows: list[dict], message: str, dense: DenseOptions, place: Path) -> None:
    Path("c.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(DataError, match=message + " Correct it, or omit strict: it is then "):
        index(Path("out"), "c.jsonl", dense=dense, device="cpu", strict=True)
    assert {each.name for each in place.iterdir()} <= {"c.jsonl", "out.lock", ".out.lock"}


def test_an_index_of_a_kind_that_is_read_otherwise_is_refused_alone(capsys: pytest.CaptureFixture, monkeypatch) -> None:
    Path("c.csv").write_text("id,text\n1,A river market.\n")
    index(Path("rows"), "c.jsonl", "bm25")
    index(Path("table"), "c.csv", "bm25")
    assert open_index(Path("table")).origin["read"] == {"table": VERSIONS["table"]}
    index(Path("table"), "c.csv", "bm25")
    assert "up to date" in capsys.readouterr().err
    monkeypatch.setitem(VERSIONS, "table", VERSIONS["table"] + 1)
    assert open_index(Path("rows")).recipe["kind"] == "bm25"
    with pytest.raises(ArtifactError, match=r"table has version \d+ of how .* --overwrite true"):
        open_index(Path("table"))
    older = unsealed(Path("table/index.json"), json.loads(Path("table/index.json").read_text()), "")
    del older["origin"]["read"]  # as release 0.3 wrote it
    for name, is_refused in (("c.csv", True), ("gone.jsonl", False), ("x.TSV.gz", True)):
        older["origin"]["corpus"]["files"] = [name]
        write_sealed(Path("table/index.json"), older)
        with pytest.raises(ArtifactError, match="version 0") if is_refused else nullcontext():
            open_index(Path("table"))
    index(Path("table"), "c.csv", "bm25", overwrite=True)
    assert open_index(Path("table")).origin["read"] == {"table": VERSIONS["table"]}


def test_of_documents_only_those_of_a_raised_type_are_refused(monkeypatch) -> None:
    for folder, name in (("pages", "a.md"), ("notes", "b.txt")):
        Path(folder).mkdir()
        Path(folder, name).write_text("# Town\n\nA river market.\n")
        index(Path(f"of-{folder}"), documents=Path(folder), kind="bm25")
    assert open_index(Path("of-notes")).origin["read"] == {"text": READING_VERSIONS["text"]}
    monkeypatch.setitem(READING_VERSIONS, "text", READING_VERSIONS["text"] + 1)
    assert open_index(Path("of-pages")).recipe["kind"] == "bm25"
    with pytest.raises(ArtifactError, match="of how a text file is read"):
        open_index(Path("of-notes"))
    older = unsealed(Path("of-pages/index.json"), json.loads(Path("of-pages/index.json").read_text()), "")
    del older["origin"]["read"]
    write_sealed(Path("of-pages/index.json"), older)
    with pytest.raises(ArtifactError, match="version 0 of how a markdown file is read"):
        open_index(Path("of-pages"))
