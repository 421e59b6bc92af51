"""Official layouts: rows of every shape become records."""

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import DataError
from common.records import GoldSegment, Passage, Question, clean
from datamodules.formats.reading import read_passages, read_questions
from datamodules.formats.recognition import layouts, question_layouts
from tests.helpers.layout_rows import (
    AMBIGNQ,
    CORPUS,
    FID,
    FLASHRAG,
    FRESHQA,
    GLOBE,
    HAMLET,
    HOTPOT,
    HUB_HOTPOT,
    IRCOT,
    JSON,
    LONDON,
    MASQA,
    MUSIQUE,
    OWN,
    ROWS,
    STRATEGYQA,
    TWOWIKI,
    as_csv,
    as_lines,
    as_list,
    source,
    without,
)


def one(folder: Path, layout: str, row: dict) -> Question:
    (question,) = read_questions(layout, source(folder, as_lines([row])))
    return question


@pytest.mark.parametrize("row", [HOTPOT, HUB_HOTPOT])
def test_hotpotqa_in_both_shapes(row: dict, tmp_path: Path) -> None:
    assert one(tmp_path, "hotpotqa", row) == Question(
        id="h1", text="Who wrote Hamlet?", answers=("Shakespeare",), passages=(GLOBE, LONDON, HAMLET),
        support=(HAMLET.id, GLOBE.id), kind="bridge"
    )  # fmt: skip


def test_hotpotqa_fullwiki_names_what_it_does_not_ship(tmp_path: Path) -> None:
    question = one(
        tmp_path, "hotpotqa", HOTPOT | {"supporting_facts": [["Hamlet", 0], ["Ur-Hamlet", 3], ["Ur-Hamlet", 4]]}
    )
    assert question.support == (HAMLET.id,)
    assert question.gold.titles == ("Ur-Hamlet",)


@pytest.mark.parametrize("row", [HOTPOT, HUB_HOTPOT])
def test_hotpotqa_questions_only(row: dict, tmp_path: Path) -> None:
    rows = [without(row, "context"), without(row, "context")]
    questions = list(read_questions("hotpotqa", source(tmp_path, as_list(rows))))
    assert len(questions) == 2
    assert questions[0].passages == questions[0].support == ()
    assert questions[0].gold.titles == ("Hamlet", "Globe")
    with pytest.raises(DataError, match="questions without passages"):
        list(read_passages("hotpotqa", [source(tmp_path, as_list(rows))]))


def test_gold_among_paragraphs_of_one_title(tmp_path: Path) -> None:
    """The supporting sentence must lie inside; where it lies in both or in none, both are gold."""
    short, long = ["Hamlet", ["A village."]], ["Hamlet", ["A play.", " By Shakespeare."]]
    ids = [Passage.of("Hamlet", "A village.").id, HAMLET.id]
    for sentences, expected in (([0], ids), ([1], ids[1:]), ([1, 0], ids[1:]), ([2], ids)):
        row = HOTPOT | {"context": [short, long], "supporting_facts": [["Hamlet", index] for index in sentences]}
        assert list(one(tmp_path, "hotpotqa", row).support) == expected


def test_twowiki_joins_with_blanks_and_bears_an_index_outside(tmp_path: Path) -> None:
    row = TWOWIKI | {"supporting_facts": [["Hamlet", 7], ["Globe", 0]]}
    question = one(tmp_path, "twowiki", row | {"context": [*row["context"], row["context"][0]]})
    assert question.passages == (GLOBE, HAMLET)  # a paragraph shipped twice is one candidate
    assert question.support == (HAMLET.id, GLOBE.id)
    assert question.kind == "compositional"


def test_musique(tmp_path: Path) -> None:
    question = one(tmp_path, "musique", MUSIQUE)
    assert question.answers == ("Shakespeare", "William Shakespeare")
    assert question.gold_passages == (Passage.of("Hamlet", "A play."),)
    assert (question.kind, len(question.passages)) == ("3hop1", 2)


def test_musique_unanswerable_and_questions_only(tmp_path: Path) -> None:
    step = MUSIQUE["question_decomposition"][0] | {"paragraph_support_idx": None}
    paragraphs = [paragraph | {"is_supporting": False} for paragraph in MUSIQUE["paragraphs"]]
    unanswerable = MUSIQUE | {"answerable": False, "question_decomposition": [step], "paragraphs": paragraphs}
    found = one(tmp_path, "musique", unanswerable)
    assert (found.support, found.answers, found.source.withheld) == ((), (), ("Shakespeare", "William Shakespeare"))
    unsaid = one(tmp_path, "musique", unanswerable | {"answer": "", "answer_aliases": []})
    assert (unsaid.answers, unsaid.source.withheld) == ((), ("",))
    assert one(tmp_path, "musique", without(MUSIQUE, "answerable")).source.withheld == ()
    assert one(tmp_path, "musique", without(MUSIQUE, "paragraphs")).passages == ()


def test_ircot_takes_every_answer_form(tmp_path: Path) -> None:
    question = one(tmp_path, "ircot", IRCOT)
    assert question.answers == ("Shakespeare", "the Bard", "1", "2 May 1600")
    assert question.gold_passages == (Passage.of("Hamlet", "A play."),)
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


def test_fid_scores(tmp_path: Path) -> None:
    """Numbers and DPR's numeric strings are kept; a repeated passage has its best one; a missing one stays unknown."""
    writer, play = FID["ctxs"]

    def scores(*items: dict) -> Question:
        return one(tmp_path, "fid", FID | {"ctxs": list(items)})

    assert scores(writer, play).scores == scores(writer, play).given_scores == (1.5, 1.2)
    assert scores(writer, play | {"score": -3}).given_scores == (1.5, -3.0)
    repeated = scores(writer | {"score": "1e-1"}, play, writer | {"score": None}, writer)
    assert [passage.title for passage in repeated.passages] == ["Shakespeare", "Hamlet"]
    assert repeated.scores == (1.5, 1.2)
    some = scores(without(writer, "score"), play)
    assert (some.scores, some.given_scores) == ((None, 1.2), ())
    none = scores(without(writer, "score"), play | {"score": None})
    assert none.scores == none.given_scores == ()
    assert scores().given_scores == ()

    upwards = scores(play, writer)
    assert upwards.passages == scores(writer, play).passages[::-1]  # file order
    assert upwards.ranking == scores(writer, play).passages  # best first
    assert some.ranking == some.passages


def test_a_question_without_id_has_the_same_in_every_file(tmp_path: Path) -> None:
    one_file = one(tmp_path, "fid", without(FID, "id"))
    other_file = one(tmp_path, "fid", without(FID, "id") | {"question": " Who wrote Hamlet?", "ctxs": []})
    assert one_file.id == other_file.id
    assert one_file.id != one(tmp_path, "fid", without(FID, "id") | {"question": "Who?"}).id


HUB_AMBIGNQ = AMBIGNQ | {
    "annotations": {
        "type": ["singleAnswer", "multipleQAs"],
        "answer": [["Olivier", "Laurence Olivier"], []],
        "qaPairs": [
            {"question": [], "answer": []},
            {
                "question": ["Who plays Hamlet in 1948?", "Who plays Hamlet in 1996?"],
                "answer": [["Laurence Olivier"], ["Kenneth Branagh", "Branagh"]],
            },
        ],
    }
}


@pytest.mark.parametrize("row", [AMBIGNQ, HUB_AMBIGNQ])
def test_ambignq_accepts_the_answers_to_all_meanings(row: dict, tmp_path: Path) -> None:
    accepted = ("Olivier", "Laurence Olivier", "Kenneth Branagh", "Branagh")
    assert one(tmp_path, "ambignq", row) == Question("-80", "Who plays Hamlet ?", accepted, kind="multipleQAs")
    plain = AMBIGNQ | {"annotations": AMBIGNQ["annotations"][:1]}
    assert one(tmp_path, "ambignq", plain) == Question("-80", "Who plays Hamlet ?", accepted[:2], kind="singleAnswer")


def test_freshqa(tmp_path: Path) -> None:
    false = FRESHQA | {"id": "4", "split": "DEV", "false_premise": "TRUE", "answer_9": "x"}
    text = as_csv([FRESHQA, false])
    expected = [
        Question("3", "Who wrote Hamlet?", ("Shakespeare, a writer", 'the "Bard"'), kind="never-changing"),
        Question("4", "Who wrote Hamlet?", ("Shakespeare, a writer", 'the "Bard"', "x"), kind="false-premise"),
    ]
    warning = f"Please do not click,{',' * 18}\n{',' * 19}\n\n"
    for name, content in {
        "plain.csv": text,
        "windows.csv": b"\xef\xbb\xbf" + text.encode(),
        "packed.csv.gz": gzip.compress(text.encode()),
        "warned.CSV": warning + text,
    }.items():
        assert list(read_questions("freshqa", source(tmp_path, content, name))) == expected
    file = source(tmp_path, text, "one.csv")
    assert list(read_questions("freshqa", f"{file}:DEV")) == expected[1:]
    assert list(read_questions("freshqa", f"{file}:TEST", limit=5)) == expected[:1]
    assert list(read_questions("freshqa", f"{source(tmp_path, as_lines([FRESHQA, false]))}:DEV")) == expected[1:]


def test_strategyqa_has_no_passages_so_that_its_facts_are_never_indexed(tmp_path: Path) -> None:
    no = {**STRATEGYQA, "qid": "s2", "answer": False}
    file = source(tmp_path, as_lines([STRATEGYQA, no]), "s.json")
    text = "Could Hamlet be read in a day?"
    assert list(read_questions("strategyqa", file)) == [Question("s1", text, ("yes",)), Question("s2", text, ("no",))]
    with pytest.raises(DataError, match="questions without passages"):
        list(read_passages("strategyqa", [file]))
    test_file = source(tmp_path, as_lines([{n: v for n, v in no.items() if n != "answer"}]), "t.json")
    assert list(read_questions("strategyqa", test_file)) == [Question("s2", text)]


def test_masqa_in_small(tmp_path: Path) -> None:
    found = one(tmp_path, "masqa", MASQA)
    assert (found.kind, found.text) == ("choice", "Hamlet 的作者是谁？ A: Kyd B: Shakespeare")
    assert found.answers == ("B", "Shakespeare", "B: Shakespeare")
    segment = GoldSegment("hamlet.pdf", ("Hamlet 的作者是 Shakespeare。",), "text", ("1 About", "作者"))
    assert found.gold.segments == (segment,)
    again = one(tmp_path, "masqa", MASQA | {"Context": MASQA["Context"].replace("hamlet ", "docs/hamlet.md ")})
    assert again.gold.segments[0].document == "docs/hamlet.md"
    as_file = list(read_questions("masqa", source(tmp_path, as_csv([MASQA, MASQA | {"Answer": ""}]), "m.csv")))
    assert [each.answers for each in as_file] == [found.answers, ()]


@pytest.mark.parametrize(
    ("question", "answer", "kind", "accepted"),
    [
        ("判断题：It rains.", "\u00d7", "true or false", "false"),
        ("True or false questions: It rains.", "True.", "true or false", "true"),
        ("判断题: It rains.", "部分", "true or false", "部分"),
        ("多选题：Which? A. a B. b C. c", "A、C", "choice", "AC"),
        ("Multiple choice: Which? A) a B) b", "A and B", "choice", "AB"),
        ("Single choice: Which? A. a B. b", "Because of b", "choice", "Because of b"),
        ("Single choice: Which? A. a pump B. b", "A pump", "choice", "A pump"),
        ("单选题：Which? A. a B. b", "B选项", "choice", "B"),
        ("多选题：Which? \uff21\uff0ea \uff22\uff09b", "\uff21\uff0c\uff22", "choice", "AB"),
        ("填空题：It is ____.", "6", "cloze", "6"),
        ("What is it?", "A pump.", "", "A pump."), ("证明题：why?", "so", "", "so"),
        ("Calculation: 1 + 1?", "2", "calculation", "2"),
    ],
)  # fmt: skip
def test_kinds_and_answers_of_masqa(question: str, answer: str, kind: str, accepted: str, tmp_path: Path) -> None:
    found = one(tmp_path, "masqa", {"Question": question, "Answer": answer})
    assert (found.kind, found.answers[0]) == (kind, accepted)
    assert found.text == (question.split("：")[-1].split(": ")[-1] if kind else clean(question))


def test_flashrag_with_gold_segments(tmp_path: Path) -> None:
    rows = [
        {"document": "a.pdf", "evidence": "It weighs 3 kg.", "headings": ["2 Data", "2.1 Weight"], "page": 4},
        {"document": "b.pdf", "evidence": ["Weight", " 4  kg"], "kind": "table"},
    ]
    row = FLASHRAG | {"metadata": {"type": "comparison", "gold_segments": rows}}
    assert one(tmp_path, "flashrag", row).gold.segments == (
        GoldSegment("a.pdf", ("It weighs 3 kg.",), "text", ("2 Data", "2.1 Weight"), 4),
        GoldSegment("b.pdf", ("Weight", "4 kg"), "table"),
    )


def test_flashrag_with_gold_passages(tmp_path: Path) -> None:
    tarn, fell = Passage.of("Tarn", "A tarn is a mountain lake."), Passage.of("", "A fell is a hill.")
    rows = [{"title": "Tarn", "text": "A  tarn is a mountain lake."}, {"text": "A fell is a hill."}]
    read = one(tmp_path, "flashrag", FLASHRAG | {"metadata": {"gold_passages": [*rows, rows[0]]}})
    assert (read.passages, read.support, read.gold_passages) == ((tarn, fell), (tarn.id, fell.id), (tarn, fell))


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
    from datamodules.formats.layouts.jsonl import passage

    assert passage({"title": title, "text": text}) == Passage.of(title, text)
    assert passage({"title": title, "text": text}).text == clean(text)


@pytest.mark.parametrize("layout", sorted(ROWS))
def test_every_layout_knows_its_own_rows_and_no_other(layout: str, tmp_path: Path) -> None:
    assert set(ROWS) == set(layouts())
    for other, row in ROWS.items():
        file = source(tmp_path, as_lines([row]))
        if other == layout:
            ships = layout not in question_layouts() or next(read_questions(layout, file)).passages
            assert not ships or list(read_passages(layout, [file]))
        elif (layout, other) != ("questions", "masqa"):  # a question and its answer are questions
            told = f"looks like {other}: use layout {other} instead of {layout}"  # our few fields fit many files
            with pytest.raises(DataError, match=told if other not in OWN else None):
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
