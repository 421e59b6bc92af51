"""What rows lie in: JSON lists and lines, plain or gzipped, read in any pieces; Hugging Face data sets, offline."""

import gzip
import hashlib
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import ArtifactError, DataError, MissingInputError, UserError
from common.files import seal, seal_of
from common.records import Passage
from datamodules.formats import json_stream as json_rows
from datamodules.formats.reading import read_passages, read_questions
from tests.helpers.layout_rows import (
    CORPUS,
    GLOBE,
    HAMLET,
    HOTPOT,
    HUB_HOTPOT,
    JSON,
    LONDON,
    MUSIQUE,
    as_lines,
    as_list,
    source,
)

CONTAINERS: list[Callable[[list], str]] = [as_list, as_lines, lambda rows: json.dumps(rows, indent=2)]


@pytest.mark.parametrize("write", CONTAINERS)
@pytest.mark.parametrize("name", ["file.json", "file.jsonl", "file.json.gz", "noname"])
def test_containers_are_told_by_their_bytes(write: Callable, name: str, tmp_path: Path) -> None:
    rows = [HOTPOT | {"_id": f"h{i}"} for i in range(3)]
    content = write(rows).encode()
    for data in (content, gzip.compress(content), b"\xef\xbb\xbf\n " + content, content.replace(b"\n", b"\r\n")):
        questions = list(read_questions("hotpotqa", source(tmp_path, data, name)))
        assert [question.id for question in questions] == ["h0", "h1", "h2"]


@pytest.mark.parametrize("seals", ["ours", "GNU", "BSD"])
def test_a_file_whose_sha256_stands_beside_it_is_compared_with_it(seals: str, tmp_path: Path) -> None:
    file = tmp_path / "corpus.jsonl"
    file.write_text(as_lines([CORPUS]))
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    if seals == "ours":
        seal(file)
    else:
        seal_of(file).write_text(f"{digest} *x\n" if seals == "GNU" else f"SHA256 (x) = {digest}\n")
    assert list(read_passages("jsonl", [str(file)]))
    whole = file.read_bytes()
    for place in range(0, len(whole), 7):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(ArtifactError, match=r"corpus\.jsonl is corrupt or was edited: .*type rm .*jsonl\.sha256\."):
            list(read_passages("jsonl", [str(file)]))
    file.write_text(as_lines([CORPUS | {"text": "edited"}]))
    seal_of(file).unlink()
    assert [passage.text for passage in read_passages("jsonl", [str(file)])] == ["edited"]


def test_line_separators_inside_strings_do_not_part_rows(tmp_path: Path) -> None:
    text = json.dumps(CORPUS | {"text": "a\u2028b\u0085c"}, ensure_ascii=False)
    assert list(read_passages("jsonl", [source(tmp_path, f"\n{text}\n\n")])) == [Passage.of("Hamlet", "a b c")]


def test_limit_reads_no_further(tmp_path: Path) -> None:
    file = source(tmp_path, as_lines([HOTPOT, HOTPOT]) + "broken")
    assert len(list(read_questions("hotpotqa", file, limit=2))) == 2


@given(
    rows=st.lists(JSON, max_size=5),
    ascii_only=st.booleans(),
    indent=st.sampled_from([None, 1]),
    chunk=st.integers(1, 9),
)
def test_a_list_read_in_any_pieces_equals_json(rows: list, ascii_only: bool, indent: int | None, chunk: int) -> None:
    text = json.dumps(rows, ensure_ascii=ascii_only, indent=indent)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_rows, "CHUNK_BYTES", chunk)
        found = list(json_rows.json_values(io.BufferedReader(io.BytesIO(text.encode()))))
    assert [value for _, value in found] == rows
    lines = text.split("\n")
    for number, (place, value) in enumerate(found, 1):  # each place names the line on which the row starts
        row, _, line = place.partition(" (line ")
        assert row == f"row {number}"
        assert json.dumps(value, ensure_ascii=ascii_only)[:1] in lines[int(line.rstrip(")")) - 1]


@given(
    rows=st.lists(st.dictionaries(st.text(max_size=3), JSON), min_size=1, max_size=4),
    at=st.floats(0, 1),
    chunk=st.integers(1, 9),
)
def test_a_list_cut_anywhere_is_truncated(rows: list, at: float, chunk: int) -> None:
    """Never an error about JSON, never fewer rows in silence."""
    text = json.dumps(rows, ensure_ascii=False, indent=1).encode()
    cut = text[: 1 + int(at * (len(text) - 2))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_rows, "CHUNK_BYTES", chunk)
        with pytest.raises(json_rows.TruncatedError):
            list(json_rows.json_values(io.BufferedReader(io.BytesIO(cut))))


@pytest.mark.parametrize("chunk", [*range(1, 30), 1 << 20])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            '[{"a": 1},\n {"b": "x",\n  "c": oops, "d": "something longer"}]',
            "line 3, column 8: invalid JSON: Expecting value",
        ),
        ('[{"a": 1},\n {"b": 2} {"c": 3}]', "line 2, column 11: invalid JSON: expecting ',' or ']' after a row"),
        ('[{"a": 1, }]', "line 1, column 11: invalid JSON: Expecting property name enclosed in double quotes"),
        ('[{"a": 1}, oops "something longer"]', "line 1, column 12: invalid JSON: Expecting value"),
        ('[{"a": 1},\n]', "line 2, column 1: invalid JSON: Expecting value"),
    ],
)
def test_a_fault_is_placed_alike_in_any_pieces(
    text: str, expected: str, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_rows, "CHUNK_BYTES", chunk)
    with pytest.raises(DataError) as caught:
        list(json_rows.json_values(io.BufferedReader(io.BytesIO(text.encode()))))
    assert str(caught.value) == expected


@pytest.mark.parametrize("write", CONTAINERS)
def test_a_gzip_cut_anywhere_is_truncated(write: Callable, tmp_path: Path) -> None:
    whole = gzip.compress(write([HOTPOT | {"_id": f"{i}", "question": str(i * 7919)} for i in range(9)]).encode())
    for size in (*range(3, 30), len(whole) // 2, len(whole) - 1):
        with pytest.raises(DataError, match=r"file\.json is truncated: \d rows read\. Fetch it again\."):
            list(read_questions("hotpotqa", source(tmp_path, whole[:size])))


def test_a_hugging_face_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    folder = tmp_path / "set"
    folder.mkdir()
    rows = [HUB_HOTPOT | {"id": f"h{i}"} for i in range(3)]
    datasets.Dataset.from_list(rows).to_parquet(folder / "validation.parquet")
    (folder / "README.md").write_text(
        "---\nconfigs:\n- config_name: distractor\n  data_files: [{split: validation, path: validation.parquet}]\n"
        "- config_name: other\n  data_files: [{split: validation, path: validation.parquet}]\n---\n"
    )
    name = f"hf:{folder}:distractor:validation"
    questions = list(read_questions("hotpotqa", name, limit=2))
    assert [question.id for question in questions] == ["h0", "h1"]
    assert questions[0].gold_passages == (GLOBE, HAMLET)
    assert list(read_passages("hotpotqa", [name])) == [GLOBE, LONDON, HAMLET]
    lines = tmp_path / "lines"
    lines.mkdir()
    source(lines, as_lines([MUSIQUE, MUSIQUE]), "train.jsonl")
    assert [question.kind for question in read_questions("musique", f"hf:{lines}:train")] == ["3hop1", "3hop1"]
    with pytest.raises(UserError, match=r"distractor:nosplit cannot be opened as .*nosplit"):
        list(read_questions("hotpotqa", f"hf:{folder}:distractor:nosplit"))
    with pytest.raises(UserError, match=r"noconfig:train cannot be opened as .*noconfig"):
        list(read_questions("hotpotqa", f"hf:{folder}:noconfig:train"))
    with pytest.raises(MissingInputError, match="was not found"):
        list(read_questions("hotpotqa", f"hf:{folder}/none:train"))
