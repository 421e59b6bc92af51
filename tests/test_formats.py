"""Official layouts: rows of every shape to records, and one clear line for every file that is not what it should be."""

import gzip
import io
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datamodules import json_rows
from datamodules.errors import DataError, MissingInputError, UserError
from datamodules.formats.reading import layouts, question_layouts, read_passages, read_questions
from datamodules.records import Passage, Question, clean

DATA = os.environ.get("LIGHTNING_RAG_DATA")
real_data = pytest.mark.skipif(DATA is None, reason="needs the real data: set LIGHTNING_RAG_DATA to its folder")

HOTPOT = {
    "_id": "h1",
    "question": "Who wrote  Hamlet?",
    "answer": "Shakespeare",
    "supporting_facts": [["Hamlet", 0], ["Hamlet", 1], ["Globe", 0]],
    "context": [
        ["Globe", ["A theatre.", " It burnt."]],
        ["London", ["A city."]],
        ["Hamlet", ["A play.", " By Shakespeare."]],
    ],
    "type": "bridge",
    "level": "hard",
}
HUB_HOTPOT = {
    **{key: HOTPOT[key] for key in ("question", "answer", "type", "level")},
    "id": "h1",
    "supporting_facts": {"title": ["Hamlet", "Hamlet", "Globe"], "sent_id": [0, 1, 0]},
    "context": {
        "title": ["Globe", "London", "Hamlet"],
        "sentences": [["A theatre.", " It burnt."], ["A city."], ["A play.", " By Shakespeare."]],
    },
}
TWOWIKI = HOTPOT | {
    "context": [["Globe", ["A theatre.", "It burnt."]], ["Hamlet", ["A play.", "By Shakespeare."]]],
    "evidences": [["Hamlet", "author", "Shakespeare"]],
    "evidences_id": [],
    "answer_id": None,
    "type": "compositional",
}
MUSIQUE = {
    "id": "3hop1__1_2_3",
    "paragraphs": [
        {"idx": 0, "title": "Globe", "paragraph_text": "A theatre.", "is_supporting": False},
        {"idx": 1, "title": "Hamlet", "paragraph_text": "A play.", "is_supporting": True},
    ],
    "question": "Who wrote Hamlet?",
    "question_decomposition": [{"id": 1, "question": "q", "answer": "a", "paragraph_support_idx": 1}],
    "answer": "Shakespeare",
    "answer_aliases": ["William Shakespeare", "Shakespeare"],
    "answerable": True,
}
IRCOT = {
    "question_id": "i1",
    "question_text": "Who wrote Hamlet?",
    "answers_objects": [
        {"number": "", "date": {"day": "", "month": "", "year": ""}, "spans": ["Shakespeare", "the Bard"]},
        {"number": "1", "date": {"day": "2", "month": "May", "year": "1600"}, "spans": []},
    ],
    "contexts": [
        {"id": "0", "title": "Globe", "paragraph_text": "A theatre.", "is_supporting": False},
        {"id": "1", "title": "Hamlet", "paragraph_text": "A play.", "is_supporting": True},
    ],
}
FID = {
    "id": "f1",
    "question": "Who wrote Hamlet?",
    "answers": ["Shakespeare"],
    "ctxs": [
        {"id": "9", "title": "Shakespeare", "text": "A writer.", "score": "1.5"},
        {"id": "8", "title": "Hamlet", "text": "A play by Shakespeare, of 1600.", "score": "1.2"},
    ],
}
FLASHRAG = {"id": "test_0", "question": "Who?", "golden_answers": ["Shakespeare"], "metadata": {"type": "bridge"}}
CORPUS = {"id": "0", "title": "Hamlet", "text": "A play."}
ROWS = {
    "hotpotqa": HOTPOT,
    "twowiki": TWOWIKI,
    "musique": MUSIQUE,
    "ircot": IRCOT,
    "fid": FID,
    "flashrag": FLASHRAG,
    "jsonl": CORPUS,
}

GLOBE, LONDON = Passage.of("Globe", "A theatre. It burnt."), Passage.of("London", "A city.")
HAMLET = Passage.of("Hamlet", "A play. By Shakespeare.")


def as_list(rows: list) -> str:
    return "[" + ",\n".join(map(json.dumps, rows)) + "]\n"


def as_lines(rows: list) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def source(folder: Path, content: str | bytes, name: str = "file.json") -> str:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def without(row: dict, *fields: str) -> dict:
    return {key: value for key, value in row.items() if key not in fields}


def one(folder: Path, layout: str, row: dict) -> Question:
    (question,) = read_questions(layout, source(folder, as_lines([row])))
    return question


# --- each layout


@pytest.mark.parametrize("row", [HOTPOT, HUB_HOTPOT])
def test_hotpotqa_in_both_shapes(row: dict, tmp_path: Path) -> None:
    assert one(tmp_path, "hotpotqa", row) == Question(
        id="h1",
        text="Who wrote Hamlet?",
        answers=("Shakespeare",),
        passages=(GLOBE, LONDON, HAMLET),
        support=(HAMLET.id, GLOBE.id),
        kind="bridge",
    )


def test_hotpotqa_fullwiki_names_what_it_does_not_ship(tmp_path: Path) -> None:
    question = one(
        tmp_path, "hotpotqa", HOTPOT | {"supporting_facts": [["Hamlet", 0], ["Ur-Hamlet", 3], ["Ur-Hamlet", 4]]}
    )
    assert question.support == (HAMLET.id,)
    assert question.unshipped_support == ("Ur-Hamlet",)


@pytest.mark.parametrize("row", [HOTPOT, HUB_HOTPOT])
def test_hotpotqa_questions_only(row: dict, tmp_path: Path) -> None:
    rows = [without(row, "context"), without(row, "context")]
    questions = list(read_questions("hotpotqa", source(tmp_path, as_list(rows))))
    assert len(questions) == 2
    assert questions[0].passages == questions[0].support == ()
    assert questions[0].unshipped_support == ("Hamlet", "Globe")
    with pytest.raises(DataError, match="questions without passages"):
        list(read_passages("hotpotqa", [source(tmp_path, as_list(rows))]))


def test_hotpotqa_test_set_hides_answers(tmp_path: Path) -> None:
    question = one(tmp_path, "hotpotqa", without(HOTPOT, "answer", "supporting_facts", "type", "level"))
    assert (question.answers, question.support, question.kind) == ((), (), "")
    assert len(question.passages) == 3


def test_gold_among_paragraphs_of_one_title(tmp_path: Path) -> None:
    """The supporting sentence must lie inside; where it lies in both or in none, both are gold."""
    short, long = ["Hamlet", ["A village."]], ["Hamlet", ["A play.", " By Shakespeare."]]
    ids = [Passage.of("Hamlet", "A village.").id, HAMLET.id]
    for sentences, expected in (([0], ids), ([1], ids[1:]), ([1, 0], ids[1:]), ([2], ids)):
        row = HOTPOT | {"context": [short, long], "supporting_facts": [["Hamlet", index] for index in sentences]}
        assert list(one(tmp_path, "hotpotqa", row).support) == expected


def test_titles_meet_after_cleaning(tmp_path: Path) -> None:
    row = HOTPOT | {"supporting_facts": [["Ham\u200blet ", 0], ["Lon\u00addon", 0]]}
    assert one(tmp_path, "hotpotqa", row).support == (HAMLET.id, LONDON.id)


def test_twowiki_joins_with_blanks_and_bears_an_index_outside(tmp_path: Path) -> None:
    row = TWOWIKI | {"supporting_facts": [["Hamlet", 7], ["Globe", 0]]}
    question = one(tmp_path, "twowiki", row | {"context": [*row["context"], row["context"][0]]})
    assert question.passages == (GLOBE, HAMLET)  # a paragraph shipped twice is one candidate
    assert question.support == (HAMLET.id, GLOBE.id)
    assert question.kind == "compositional"


def test_musique(tmp_path: Path) -> None:
    question = one(tmp_path, "musique", MUSIQUE)
    assert question.answers == ("Shakespeare", "William Shakespeare")
    assert question.gold == (Passage.of("Hamlet", "A play."),)
    assert (question.kind, len(question.passages)) == ("3hop1", 2)


def test_musique_unanswerable_and_questions_only(tmp_path: Path) -> None:
    step = MUSIQUE["question_decomposition"][0] | {"paragraph_support_idx": None}
    paragraphs = [paragraph | {"is_supporting": False} for paragraph in MUSIQUE["paragraphs"]]
    unanswerable = MUSIQUE | {"answerable": False, "question_decomposition": [step], "paragraphs": paragraphs}
    assert one(tmp_path, "musique", unanswerable).support == ()
    assert one(tmp_path, "musique", without(MUSIQUE, "paragraphs")).passages == ()


def test_ircot_takes_every_answer_form(tmp_path: Path) -> None:
    question = one(tmp_path, "ircot", IRCOT)
    assert question.answers == ("Shakespeare", "the Bard", "1", "2 May 1600")
    assert question.gold == (Passage.of("Hamlet", "A play."),)
    assert (question.id, question.kind) == ("i1", "")


def test_fid_gold(tmp_path: Path) -> None:
    """`isgold` decides, else what is stored, else DPR's rule on the text alone (a title does not count)."""
    writer, play = (Passage.of(item["title"], item["text"]).id for item in FID["ctxs"])

    def support(first: dict, second: dict) -> tuple[str, ...]:
        items = [FID["ctxs"][0] | first, FID["ctxs"][1] | second]
        return one(tmp_path, "fid", FID | {"ctxs": items}).support

    assert support({}, {}) == (play,)
    assert support({"has_answer": True}, {"has_answer": False}) == (writer,)
    assert support({"hasanswer": False}, {"hasanswer": False}) == ()
    assert support({"hasanswer": True, "isgold": False}, {"hasanswer": True, "isgold": True}) == (play,)
    assert support({"hasanswer": True, "isgold": False}, {"hasanswer": True, "isgold": False}) == (writer, play)


def test_a_question_without_id_has_the_same_in_every_file(tmp_path: Path) -> None:
    one_file = one(tmp_path, "fid", without(FID, "id"))
    other_file = one(tmp_path, "fid", without(FID, "id") | {"question": " Who wrote Hamlet?", "ctxs": []})
    assert one_file.id == other_file.id
    assert one_file.id != one(tmp_path, "fid", without(FID, "id") | {"question": "Who?"}).id


def test_flashrag(tmp_path: Path) -> None:
    assert one(tmp_path, "flashrag", FLASHRAG) == Question("test_0", "Who?", ("Shakespeare",), kind="bridge")


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (CORPUS, Passage.of("Hamlet", "A play.")),
        ({"_id": "0", "title": "Hamlet", "text": "A play.", "metadata": {}}, Passage.of("Hamlet", "A play.")),
        ({"doc_id": "0", "title": "Hamlet", "text": "A play."}, Passage.of("Hamlet", "A play.")),
        ({"id": 0, "contents": '"Hamlet"\nA play.\nIn verse.'}, Passage.of("Hamlet", "A play. In verse.")),
        ({"id": 0, "contents": '"Heroes" (song)\nA song.'}, Passage.of('Heroes" (song)', "A song.")),
        ({"id": 0, "contents": "A play."}, Passage.of("", "A play.")),
        ({"text": "A play.", "title": None}, Passage.of("", "A play.")),
    ],
)
def test_corpora(row: dict, expected: Passage, tmp_path: Path) -> None:
    for write in (as_list, as_lines):
        assert list(read_passages("jsonl", [source(tmp_path, write([row, row]))])) == [expected]


def test_passages_are_pooled_in_first_seen_order(tmp_path: Path) -> None:
    one_file = source(tmp_path, as_list([HOTPOT]), "1.json")
    again = source(
        tmp_path, as_list([HUB_HOTPOT, HOTPOT | {"context": [["New", ["x"]], ["London", [" A  city."]]]}]), "2.json"
    )
    assert list(read_passages("hotpotqa", [one_file, again])) == [GLOBE, LONDON, HAMLET, Passage.of("New", "x")]


@given(st.text(), st.text())
def test_text_survives_but_for_cleaning(title: str, text: str) -> None:
    from datamodules.formats.jsonl import passage

    assert passage({"title": title, "text": text}) == Passage.of(title, text)
    assert passage({"title": title, "text": text}).text == clean(text)


# --- containers


CONTAINERS: list[Callable[[list], str]] = [as_list, as_lines, lambda rows: json.dumps(rows, indent=2)]


@pytest.mark.parametrize("write", CONTAINERS)
@pytest.mark.parametrize("name", ["file.json", "file.jsonl", "file.json.gz", "noname"])
def test_containers_are_told_by_their_bytes(write: Callable, name: str, tmp_path: Path) -> None:
    rows = [HOTPOT | {"_id": f"h{i}"} for i in range(3)]
    content = write(rows).encode()
    for data in (content, gzip.compress(content), b"\xef\xbb\xbf\n " + content, content.replace(b"\n", b"\r\n")):
        questions = list(read_questions("hotpotqa", source(tmp_path, data, name)))
        assert [question.id for question in questions] == ["h0", "h1", "h2"]


def test_line_separators_inside_strings_do_not_part_rows(tmp_path: Path) -> None:
    text = json.dumps(CORPUS | {"text": "a\u2028b\u0085c"}, ensure_ascii=False)
    assert list(read_passages("jsonl", [source(tmp_path, f"\n{text}\n\n")])) == [Passage.of("Hamlet", "a b c")]


def test_limit_reads_no_further(tmp_path: Path) -> None:
    file = source(tmp_path, as_lines([HOTPOT, HOTPOT]) + "broken")
    assert len(list(read_questions("hotpotqa", file, limit=2))) == 2
    for limit in (0, -1):
        with pytest.raises(UserError, match=f"limit is {limit}: give at least 1"):
            read_questions("hotpotqa", file, limit=limit)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


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


# --- one clear line for every bad input


BAD = "Correct that row or fetch the file again."
FETCH = "Correct it or fetch the file again."


@pytest.mark.parametrize(
    ("layout", "content", "expected"),
    [
        ("hotpotqa", "", "{} is empty: it holds no rows. Fetch it again."),
        ("hotpotqa", " \n ", "{} is empty: it holds no rows. Fetch it again."),
        ("hotpotqa", "[ ]", "{} is empty: it holds no rows. Fetch it again."),
        ("hotpotqa", gzip.compress(b"", mtime=0), "{} is empty: it holds no rows. Fetch it again."),
        ("hotpotqa", "\nversion 1", f"{{}}, line 2: neither a JSON list nor JSON Lines: it starts with b'v'. {FETCH}"),
        ("hotpotqa", as_lines([HOTPOT])[:-5], "{} is truncated: 0 rows read. Fetch it again."),
        ("hotpotqa", as_lines([HOTPOT, HOTPOT])[:-25], "{} is truncated: 1 rows read. Fetch it again."),
        ("hotpotqa", as_list([HOTPOT, HOTPOT])[:-3], "{} is truncated: 1 rows read. Fetch it again."),
        ("hotpotqa", as_list([HOTPOT])[:-2], "{} is truncated: 1 rows read. Fetch it again."),
        (
            "hotpotqa",
            as_lines([HOTPOT]) + '{"_id": oops}\n',
            f"{{}}, line 2, column 9: invalid JSON: Expecting value. {FETCH}",
        ),
        (
            "hotpotqa",
            "[" + json.dumps(HOTPOT) + ',\n  {"_id": oops, "question": "a question"}]',
            f"{{}}, line 2, column 11: invalid JSON: Expecting value. {FETCH}",
        ),
        (
            "hotpotqa",
            "[" + json.dumps(HOTPOT) + "\n" + json.dumps(HOTPOT) + "]",
            f"{{}}, line 2, column 1: invalid JSON: expecting ',' or ']' after a row. {FETCH}",
        ),
        (
            "hotpotqa",
            as_list([HOTPOT]) + " x",
            f"{{}}, line 2, column 2: invalid JSON: something follows the end of the list. {FETCH}",
        ),
        ("hotpotqa", as_lines([HOTPOT]).encode() + b'{"a": "\xff"}\n', f"{{}}, line 2: not UTF-8: byte 0xff. {FETCH}"),
        ("hotpotqa", b'[{"a":\n"\xe9 \xff"}]', f"{{}}, line 2: not UTF-8: byte 0xe9. {FETCH}"),
        ("hotpotqa", as_list([HOTPOT, [1]]), f"{{}}, row 2 (line 2): the row is a list, not an object. {FETCH}"),
        (
            "hotpotqa",
            as_lines([HOTPOT, without(HOTPOT, "context")]),
            f"{{}}, line 2: field 'context' is missing, which line 1 has. {BAD}",
        ),
        (
            "hotpotqa",
            as_list([HOTPOT, HOTPOT, HOTPOT | {"context": None}]),
            f"{{}}, row 3 (line 3): field 'context' is missing, which row 1 (line 1) has. {BAD}",
        ),
        (
            "hotpotqa",
            as_lines([without(HOTPOT, "context"), HOTPOT]),
            f"{{}}, line 2: field 'context' is here, but line 1 lacks it. {BAD}",
        ),
        (
            "hotpotqa",
            as_lines([without(HOTPOT, "_id")]),
            "{}, line 1: field '_id' or 'id' is missing, which every hotpotqa row has. Is this a hotpotqa file? "
            "Known layouts: fid, flashrag, hotpotqa, ircot, jsonl, musique, twowiki.",
        ),
        (
            "hotpotqa",
            as_lines([HOTPOT, HOTPOT | {"question": 3}]),
            f"{{}}, line 2: field 'question' is a number, not a string. {BAD}",
        ),
        (
            "hotpotqa",
            as_lines([HOTPOT, HOTPOT | {"question": "\u200b"}]),
            f"{{}}, line 2: field 'question' is empty. {BAD}",
        ),
        (
            "hotpotqa",
            as_lines([HOTPOT, HOTPOT | {"context": [["Globe"]]}]),
            f"{{}}, line 2: item 1 of field 'context' is not a list of two, [title, sentences]. {BAD}",
        ),
        (
            "hotpotqa",
            as_lines([HOTPOT, HOTPOT | {"context": [["Globe", ["x", None]]]}]),
            f"{{}}, line 2: a sentence of field 'context' is null, not a string. {BAD}",
        ),
        (
            "hotpotqa",
            as_lines([HOTPOT, HOTPOT | {"supporting_facts": [["Globe", "0"]]}]),
            f"{{}}, line 2: a sentence index of field 'supporting_facts' is a string, not a number. {BAD}",
        ),
        (
            "hotpotqa",
            as_lines([HOTPOT, HOTPOT | {"context": {"title": ["Globe"], "sentences": []}}]),
            f"{{}}, line 2: field 'context' has 1 'title' but 0 'sentences'. {BAD}",
        ),
        (
            "hotpotqa",
            as_lines([HOTPOT, HOTPOT | {"answer": "\ud800"}]),
            f"{{}}, line 2: field 'answer' holds half a surrogate pair ('\\ud800'). {BAD}",
        ),
        (
            "musique",
            as_lines(
                [MUSIQUE, MUSIQUE | {"paragraphs": [{"title": "x", "paragraph_text": "y", "is_supporting": "no"}]}]
            ),
            f"{{}}, line 2: field 'is_supporting' is a string, not true or false. {BAD}",
        ),
        (
            "musique",
            as_lines([MUSIQUE, MUSIQUE | {"paragraphs": [{"title": "x"}]}]),
            f"{{}}, line 2: field 'paragraph_text' is missing. {BAD}",
        ),
        (
            "fid",
            as_lines([FID, FID | {"answers": "x"}]),
            f"{{}}, line 2: field 'answers' is a string, not a list. {BAD}",
        ),
        (
            "fid",
            as_lines([FID, FID | {"ctxs": ["x"]}]),
            f"{{}}, line 2: item 1 of field 'ctxs' is a string, not an object. {BAD}",
        ),
        ("hotpotqa", as_lines([MUSIQUE]), "{} looks like musique: use layout musique instead of hotpotqa."),
        ("hotpotqa", as_lines([TWOWIKI]), "{} looks like twowiki: use layout twowiki instead of hotpotqa."),
        ("hotpotqa", as_lines([CORPUS]), "{} looks like jsonl: use layout jsonl instead of hotpotqa."),
    ],
)
def test_bad_files(layout: str, content: str | bytes, expected: str, tmp_path: Path) -> None:
    file = source(tmp_path, content)
    with pytest.raises(DataError) as caught:
        list(read_questions(layout, file))
    assert str(caught.value) == expected.replace("{}", file)


@pytest.mark.parametrize("layout", sorted(ROWS))
def test_every_layout_knows_its_own_rows_and_no_other(layout: str, tmp_path: Path) -> None:
    for other, row in ROWS.items():
        file = source(tmp_path, as_lines([row]))
        if other == layout:
            assert layout == "flashrag" or list(read_passages(layout, [file]))
        else:
            with pytest.raises(DataError, match=f"looks like {other}: use layout {other} instead of {layout}"):
                list(read_passages(layout, [file]))


@pytest.mark.parametrize("layout", sorted(ROWS))
@given(data=st.data())
def test_a_row_with_any_junk_in_it_is_read_or_named(
    layout: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """No fault of a row escapes as anything but a DataError with the file and the line."""
    row = ROWS[layout] | data.draw(st.dictionaries(st.sampled_from(sorted(ROWS[layout])), JSON, min_size=1))
    file = source(tmp_path_factory.getbasetemp(), as_lines([ROWS[layout], row]), f"{layout}.jsonl")
    try:
        list(read_passages(layout, [file]) if layout == "jsonl" else read_questions(layout, file))
    except DataError as error:
        assert str(error).startswith(f"{file}, line 2: ")  # noqa: PT017 - most rows are read without one


def test_a_corrupt_gzip(tmp_path: Path) -> None:
    whole = bytearray(gzip.compress(as_lines([HOTPOT]).encode()))
    whole[-6] ^= 1  # in the checksum
    with pytest.raises(DataError, match=r"corrupt gzip archive after \d rows \(CRC check failed.*Fetch it again\."):
        list(read_questions("hotpotqa", source(tmp_path, bytes(whole))))


def test_a_nest_too_deep(tmp_path: Path) -> None:
    for content in ('{"a": ' + "[" * 200_000, "[" * 200_000):
        with pytest.raises(DataError, match=r"line 1, column .*: invalid JSON: maximum recursion depth"):
            list(read_questions("hotpotqa", source(tmp_path, content)))


def test_what_is_refused_before_any_reading(tmp_path: Path) -> None:
    file = source(tmp_path, as_lines([HOTPOT]))
    missing = str(tmp_path / "none.json")
    with pytest.raises(
        UserError, match=r"unknown layout 'hotpot': use one of fid, .*, twowiki\. Did you mean hotpotqa\?"
    ):
        read_questions("hotpot", file)
    with pytest.raises(UserError, match=r"unknown layout 'reading': use one of"):
        read_questions("reading", file)
    with pytest.raises(UserError, match=r"layout 'jsonl' is a corpus and has no questions: use one of fid, flashrag"):
        read_questions("jsonl", file)
    with pytest.raises(UserError, match="no source of passages"):
        read_passages("hotpotqa", [])
    with pytest.raises(MissingInputError, match=r"none\.json does not exist: name a JSON or JSON Lines file"):
        read_questions("hotpotqa", missing)
    with pytest.raises(MissingInputError, match=r"none\.json does not exist"):
        read_passages("hotpotqa", [file, missing])
    with pytest.raises(DataError, match="is a folder: name one file of it, or a data set as hf:"):
        read_questions("hotpotqa", str(tmp_path))
    for bad in ("hf:", "hf:name", "hf:name:", "hf:a:b:c:d"):
        with pytest.raises(
            UserError, match=r"names no data set and split: write hf:<id or folder>\[:<config>\]:<split>"
        ):
            read_questions("hotpotqa", bad)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission(tmp_path: Path) -> None:
    file = source(tmp_path, as_lines([HOTPOT]))
    os.chmod(file, 0)
    with pytest.raises(MissingInputError, match="cannot be read: Permission denied"):
        list(read_questions("hotpotqa", file))


def test_layouts_are_the_modules() -> None:
    assert layouts() == sorted(ROWS)
    assert question_layouts() == sorted(set(ROWS) - {"jsonl"})


# --- Hugging Face data sets, offline


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
    assert questions[0].gold == (GLOBE, HAMLET)
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


# --- the real files


@real_data
def test_the_pool_of_hotpotqa_distractor() -> None:
    """21,734 distinct raw pairs of title and text, of which 8 differ from another in nothing but a no-break space."""
    sources = [f"{DATA}/hotpotqa/hotpot_distractor_{part}.json.gz" for part in ("train", "dev")]
    raw = {
        (title, "".join(sentences))
        for file in sources
        for row in json.loads(gzip.decompress(Path(file).read_bytes()))
        for title, sentences in row["context"]
    }
    assert len(raw) == 21_734
    assert len({(title, text.replace("\u00a0", " ")) for title, text in raw}) == 21_726
    pool = list(read_passages("hotpotqa", sources))
    assert len(pool) == len({passage.id for passage in pool}) == 21_726


@real_data
@pytest.mark.parametrize(
    ("layout", "file", "questions", "with_all_gold", "kinds"),
    [
        ("hotpotqa", "hotpotqa/hotpot_distractor_dev.json.gz", 600, 600, {"bridge", "comparison"}),
        ("hotpotqa", "hotpotqa/hotpot_fullwiki_dev.json.gz", 294, 88, {"bridge", "comparison"}),
        ("hotpotqa", "hotpotqa/hotpot_questions_dev.json.gz", 1832, 0, {"bridge", "comparison"}),
        (
            "twowiki",
            "2wikimultihopqa/2wiki_train.json.gz",
            798,
            798,
            {"bridge_comparison", "compositional", "comparison", "inference"},
        ),
        (
            "musique",
            "musique/musique_ans_dev.jsonl.gz",
            100,
            100,
            {"2hop", "3hop1", "3hop2", "4hop1", "4hop2", "4hop3"},
        ),
        (
            "musique",
            "musique/musique_full_sample.jsonl.gz",
            74,
            35 + 11,
            {"2hop", "3hop1", "3hop2", "4hop1", "4hop2", "4hop3"},
        ),
        ("musique", "musique/musique_questions_dev.jsonl.gz", 562, 0, None),
        ("ircot", "hotpotqa/hotpot_ircot_dev.jsonl.gz", 116, 116, {""}),
        ("fid", "nq/nq-open-20_total_documents_dev.jsonl.gz", 92, 0, {""}),
        ("fid", "triviaqa/triviaqa_retrieved.json.gz", 638, None, {""}),
    ],
)
def test_real_files(layout: str, file: str, questions: int, with_all_gold: int | None, kinds: set[str] | None) -> None:
    found = list(read_questions(layout, f"{DATA}/{file}"))
    assert len(found) == len({question.id for question in found}) == questions
    assert all(question.answers for question in found)
    assert kinds is None or {question.kind for question in found} == kinds
    if with_all_gold is not None:
        whole = [q for q in found if len(q.support) >= 2 and not q.unshipped_support]
        assert len(whole) == with_all_gold
    for question in found:
        assert set(question.support) <= {passage.id for passage in question.passages}
        assert len(question.passages) == len({passage.id for passage in question.passages})


@real_data
def test_the_share_of_retrieved_questions_with_an_answer() -> None:
    """The data's own description: a passage holds the answer in about two thirds (NQ) or less than three quarters."""
    for file, share in (("nq/nq_retrieved_train.json.gz", 2 / 3), ("triviaqa/triviaqa_retrieved.json.gz", 0.72)):
        found = list(read_questions("fid", f"{DATA}/{file}"))
        assert sum(bool(question.support) for question in found) / len(found) == pytest.approx(share, abs=0.05)


@real_data
def test_a_lost_in_the_middle_gold_is_the_first_of_twenty() -> None:
    for question in read_questions("fid", f"{DATA}/nq/nq-open-20_total_documents_dev.jsonl.gz"):
        assert len(question.passages) == 20
        assert question.support == (question.passages[0].id,)


@real_data
@pytest.mark.parametrize(
    ("file", "passages"), [("2wikimultihopqa/2wiki_corpus.json.gz", 6_119), ("musique/musique_corpus.jsonl.gz", 5_966)]
)
def test_real_corpora(file: str, passages: int) -> None:
    assert len(list(read_passages("jsonl", [f"{DATA}/{file}"]))) == passages
