"""Layouts: rows of every shape become records and rewrites; unusual rows are counted, or an error if strict."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import DataError
from common.records import OTHER_TEXTS, TEXT_VERSION, GoldSegment, Passage, Question, clean
from common.rewrites import RewriteExample
from common.words import WORDS
from datamodules.examples.data_files import QuestionDataFile, distinct_questions
from datamodules.formats.layouts.jsonl import passage
from datamodules.formats.reading import read_distinct_questions, read_joined_questions, read_passages, read_questions
from datamodules.formats.recognition import layouts, question_layouts
from datamodules.formats.rewrites import read_rewrites
from datamodules.formats.row_counts import JOINED, RowCounts
from datamodules.formats.word_labels import WordLabels, averaged, is_word_labels, to_row, word_label_rows
from harness.evaluation.serialization import digest
from tests.helpers import layout_rows as sample
from tests.helpers.layout_rows import FID, GLOBE, HAMLET, HOTPOT, MUSIQUE, ROWS, as_csv, as_lines, source, without


def one(folder: Path, layout: str, row: dict) -> Question:
    (question,) = read_questions(layout, source(folder, as_lines([row])))
    return question


@pytest.mark.parametrize("row", [HOTPOT, sample.HUB_HOTPOT])
def test_hotpotqa_in_both_shapes_and_without_passages(row, tmp_path) -> None:
    passages, gold = (GLOBE, sample.LONDON, HAMLET), (HAMLET.id, GLOBE.id)
    whole = Question("h1", "Who wrote Hamlet?", ("Shakespeare",), passages, support=gold, kind="bridge")
    assert one(tmp_path, "hotpotqa", row) == whole
    bare = one(tmp_path, "hotpotqa", without(row, "context"))
    assert (bare.passages, bare.support, bare.gold.titles) == ((), (), ("Hamlet", "Globe"))
    for layout, other in (("hotpotqa", without(row, "context")), ("strategyqa", sample.STRATEGYQA)):
        with pytest.raises(DataError, match="questions without passages"):  # nor are facts indexed
            list(read_passages(layout, [source(tmp_path, as_lines([other]))]))


def test_gold_of_hotpotqa_and_2wiki(tmp_path) -> None:
    """Of paragraphs with one title the supporting sentence must lie inside; if in both or in none, both are gold."""
    short, long = ["Hamlet", ["A village."]], ["Hamlet", ["A play.", " By Shakespeare."]]
    ids = [Passage.of("Hamlet", "A village.").id, HAMLET.id]
    for sentences, expected in (([0], ids), ([1], ids[1:]), ([1, 0], ids[1:]), ([2], ids)):
        row = HOTPOT | {"context": [short, long], "supporting_facts": [["Hamlet", index] for index in sentences]}
        assert list(one(tmp_path, "hotpotqa", row).support) == expected
    named = HOTPOT | {"supporting_facts": [["Hamlet", 0], ["Ur-Hamlet", 3], ["Ur-Hamlet", 4]]}  # fullwiki
    question = one(tmp_path, "hotpotqa", named)
    assert (question.support, question.gold.titles) == ((HAMLET.id,), ("Ur-Hamlet",))

    row = sample.TWOWIKI | {"supporting_facts": [["Hamlet", 7], ["Globe", 0]]}  # joined with blanks; one index outside
    question = one(tmp_path, "twowiki", row | {"context": [*row["context"], row["context"][0]]})
    assert question.passages == (GLOBE, HAMLET)  # a paragraph shipped twice is one candidate
    assert (question.support, question.kind) == ((HAMLET.id, GLOBE.id), "compositional")


def test_musique_and_ircot(tmp_path) -> None:
    answers = ("Shakespeare", "William Shakespeare")
    question = one(tmp_path, "musique", MUSIQUE)
    assert (question.answers, question.gold_passages) == (answers, (Passage.of("Hamlet", "A play."),))
    assert (question.kind, len(question.passages)) == ("3hop1", 2)
    step = MUSIQUE["question_decomposition"][0] | {"paragraph_support_idx": None}
    paragraphs = [paragraph | {"is_supporting": False} for paragraph in MUSIQUE["paragraphs"]]
    unanswerable = MUSIQUE | {"answerable": False, "question_decomposition": [step], "paragraphs": paragraphs}
    found = one(tmp_path, "musique", unanswerable)
    assert (found.support, found.answers, found.source.withheld) == ((), (), answers)
    unsaid = one(tmp_path, "musique", unanswerable | {"answer": "", "answer_aliases": []})
    assert (unsaid.answers, unsaid.source.withheld) == ((), ("",))
    assert one(tmp_path, "musique", without(MUSIQUE, "answerable")).source.withheld == ()
    assert one(tmp_path, "musique", without(MUSIQUE, "paragraphs")).passages == ()

    question = one(tmp_path, "ircot", sample.IRCOT)  # every form of an answer
    assert question.answers == ("Shakespeare", "the Bard", "1", "2 May 1600")
    assert (question.id, question.kind, question.gold_passages) == ("i1", "", (Passage.of("Hamlet", "A play."),))


def test_gold_of_fid(tmp_path) -> None:
    """`isgold` decides, else what is stored, else DPR's rule on the text alone (a title does not count)."""
    writer, play = (Passage.of(item["title"], item["text"]).id for item in FID["ctxs"])
    for first, second, support in (
        ({}, {}, (play,)),
        ({"has_answer": True}, {"has_answer": False}, (writer,)),
        ({"hasanswer": False}, {"hasanswer": False}, ()),
        ({"hasanswer": True, "isgold": False}, {"hasanswer": True, "isgold": True}, (play,)),
        ({"hasanswer": True, "isgold": False}, {"hasanswer": True, "isgold": False}, (writer, play)),
    ):
        items = [FID["ctxs"][0] | first, FID["ctxs"][1] | second]
        assert one(tmp_path, "fid", FID | {"ctxs": items}).support == support


def test_scores_of_fid(tmp_path) -> None:
    """Numbers and DPR's numeric strings are kept; a repeated passage has its best one; a missing one stays unknown."""
    writer, play = FID["ctxs"]

    def scores(*items: dict) -> Question:
        return one(tmp_path, "fid", FID | {"ctxs": list(items)})

    both = scores(writer, play)
    assert both.scores == both.given_scores == (1.5, 1.2)
    assert scores(writer, play | {"score": -3}).given_scores == (1.5, -3.0)
    repeated = scores(writer | {"score": "1e-1"}, play, writer | {"score": None}, writer)
    assert (repeated.passages, repeated.scores) == (both.passages, (1.5, 1.2))
    some = scores(without(writer, "score"), play)
    assert (some.scores, some.given_scores, some.ranking) == ((None, 1.2), (), some.passages)
    for none in (scores(without(writer, "score"), play | {"score": None}), scores()):
        assert none.scores == none.given_scores == ()
    upwards = scores(play, writer)
    assert (upwards.passages, upwards.ranking) == (both.passages[::-1], both.passages)  # file order; best first

    bare = without(FID, "id")
    same, other = ({"question": text, "ctxs": []} for text in (" Who wrote Hamlet?", "Who?"))
    ids = [one(tmp_path, "fid", row).id for row in (bare, bare | same, bare | other)]
    assert ids[0] == ids[1] != ids[2]  # of the question's text, in every file


HUB = {
    "type": ["singleAnswer", "multipleQAs"],
    "answer": [["Olivier", "Laurence Olivier"], []],
    "qaPairs": [
        {"question": [], "answer": []},
        {"question": ["In 1948?", "In 1996?"], "answer": [["Laurence Olivier"], ["Kenneth Branagh", "Branagh"]]},
    ],
}


def test_ambignq_accepts_the_answers_to_all_meanings(tmp_path) -> None:
    accepted = ("Olivier", "Laurence Olivier", "Kenneth Branagh", "Branagh")
    row = sample.AMBIGNQ
    for annotations, answers, kind in (
        (row["annotations"], accepted, "multipleQAs"),
        (HUB, accepted, "multipleQAs"),
        (row["annotations"][:1], accepted[:2], "singleAnswer"),
    ):
        found = one(tmp_path, "ambignq", row | {"annotations": annotations})
        assert found == Question("-80", "Who plays Hamlet ?", answers, kind=kind)


def test_freshqa_and_strategyqa(tmp_path) -> None:
    false = sample.FRESHQA | {"id": "4", "split": "DEV", "false_premise": "TRUE", "answer_9": "x"}
    text, answers = as_csv([sample.FRESHQA, false]), ("Shakespeare, a writer", 'the "Bard"')
    expected = [
        Question("3", "Who wrote Hamlet?", answers, kind="never-changing"),
        Question("4", "Who wrote Hamlet?", (*answers, "x"), kind="false-premise"),
    ]
    warning = f"Please do not click,{',' * 18}\n{',' * 19}\n\n"
    packed, windows = gzip.compress(text.encode()), b"\xef\xbb\xbf" + text.encode()
    files = {"one.csv": text, "windows.csv": windows, "packed.csv.gz": packed, "warned.CSV": warning + text}
    for name, content in files.items():
        assert list(read_questions("freshqa", source(tmp_path, content, name))) == expected
    assert list(read_questions("freshqa", f"{tmp_path}/one.csv:DEV")) == expected[1:]
    assert list(read_questions("freshqa", f"{tmp_path}/one.csv:TEST", limit=5)) == expected[:1]
    lines = source(tmp_path, as_lines([sample.FRESHQA, false]))
    assert list(read_questions("freshqa", f"{lines}:DEV")) == expected[1:]

    for answer, answers in ((True, ("yes",)), (False, ("no",)), (None, ())):
        row = without(sample.STRATEGYQA, "answer") | ({} if answer is None else {"answer": answer})
        assert one(tmp_path, "strategyqa", row) == Question("s1", "Could Hamlet be read in a day?", answers)


def test_masqa_in_small(tmp_path) -> None:
    row = sample.MASQA
    found = one(tmp_path, "masqa", row)
    assert (found.kind, found.text) == ("choice", "Hamlet 的作者是谁？ A: Kyd B: Shakespeare")
    assert found.answers == ("B", "Shakespeare", "B: Shakespeare")
    segment = GoldSegment("hamlet.pdf", ("Hamlet 的作者是 Shakespeare。",), "text", ("1 About", "作者"))
    assert found.gold.segments == (segment,)
    again = one(tmp_path, "masqa", row | {"Context": row["Context"].replace("hamlet ", "docs/hamlet.md ")})
    assert again.gold.segments[0].document == "docs/hamlet.md"
    as_file = read_questions("masqa", source(tmp_path, as_csv([row, row | {"Answer": ""}]), "m.csv"))
    assert [each.answers for each in as_file] == [found.answers, ()]


MASQA = {  # a question: its answer in the file, its kind, the answer as it is accepted
    "判断题：It rains.": ("\u00d7", "true or false", "false"),
    "True or false questions: It rains.": ("True.", "true or false", "true"),
    "判断题: It rains.": ("部分", "true or false", "部分"),
    "多选题：Which? A. a B. b C. c": ("A、C", "choice", "AC"),
    "Multiple choice: Which? A) a B) b": ("A and B", "choice", "AB"),
    "Single choice: Which? A. a B. b": ("Because of b", "choice", "Because of b"),
    "Single choice: Which? A. a pump B. b": ("A pump", "choice", "A pump"),
    "单选题：Which? A. a B. b": ("B选项", "choice", "B"),
    "多选题：Which? \uff21\uff0ea \uff22\uff09b": ("\uff21\uff0c\uff22", "choice", "AB"),
    "填空题：It is ____.": ("6", "cloze", "6"),
    "What is it?": ("A pump.", "", "A pump."),
    "证明题：why?": ("so", "", "so"),
    "Calculation: 1 + 1?": ("2", "calculation", "2"),
}


@pytest.mark.parametrize("question", MASQA)
def test_kinds_and_answers_of_masqa(question, tmp_path) -> None:
    answer, kind, accepted = MASQA[question]
    found = one(tmp_path, "masqa", {"Question": question, "Answer": answer})
    assert (found.kind, found.answers[0]) == (kind, accepted)
    assert found.text == (question.split("：")[-1].split(": ")[-1] if kind else clean(question))


def test_flashrag_with_gold_segments_and_passages(tmp_path) -> None:
    rows = [
        {"document": "a.pdf", "evidence": "It weighs 3 kg.", "headings": ["2 Data", "2.1 Weight"], "page": 4},
        {"document": "b.pdf", "evidence": ["Weight", " 4  kg"], "kind": "table"},
    ]
    row = ROWS["flashrag"] | {"metadata": {"type": "comparison", "gold_segments": rows}}
    assert one(tmp_path, "flashrag", row).gold.segments == (
        GoldSegment("a.pdf", ("It weighs 3 kg.",), "text", ("2 Data", "2.1 Weight"), 4),
        GoldSegment("b.pdf", ("Weight", "4 kg"), "table"),
    )
    tarn, fell = Passage.of("Tarn", "A tarn is a mountain lake."), Passage.of("", "A fell is a hill.")
    rows = [{"title": "Tarn", "text": "A  tarn is a mountain lake."}, {"text": "A fell is a hill."}]
    read = one(tmp_path, "flashrag", row | {"metadata": {"gold_passages": [*rows, rows[0]]}})
    assert (read.passages, read.support, read.gold_passages) == ((tarn, fell), (tarn.id, fell.id), (tarn, fell))


PLAY = {"title": "Hamlet", "text": "A play."}


def test_corpora_and_pools_of_passages(tmp_path) -> None:
    for row, title, text in (
        (ROWS["jsonl"], "Hamlet", "A play."),
        (PLAY | {"_id": "0", "metadata": {}}, "Hamlet", "A play."),
        (PLAY | {"doc_id": "0"}, "Hamlet", "A play."),
        ({"id": 0, "contents": '"Hamlet"\nA play.\nIn verse.'}, "Hamlet", "A play. In verse."),
        ({"id": 0, "contents": '"Heroes" (song)\nA song.'}, 'Heroes" (song)', "A song."),
        ({"id": 0, "contents": "A play."}, "", "A play."),
        ({"text": "A play.", "title": None}, "", "A play."),
    ):
        for write in (sample.as_list, as_lines):
            assert list(read_passages("jsonl", [source(tmp_path, write([row, row]))])) == [Passage.of(title, text)]
    new = HOTPOT | {"context": [["New", ["x"]], ["London", [" A  city."]]]}
    files = [source(tmp_path, as_lines(rows), str(n)) for n, rows in enumerate([[HOTPOT], [sample.HUB_HOTPOT, new]])]
    expected = [GLOBE, sample.LONDON, HAMLET, Passage.of("New", "x")]  # in the order in which they are first seen
    assert list(read_passages("hotpotqa", files)) == expected


@given(st.text(), st.text())
def test_text_survives_but_for_cleaning(title, text) -> None:
    assert passage({"title": title, "text": text}) == Passage.of(title, text)
    assert passage({"title": title, "text": text}).text == clean(text)


@pytest.mark.parametrize("layout", sorted(ROWS))
def test_every_layout_knows_its_own_rows_and_no_other(layout, tmp_path) -> None:
    assert set(ROWS) == set(layouts())
    for other, row in ROWS.items():
        file = source(tmp_path, as_lines([row]))
        if other == layout:
            ships = layout not in question_layouts() or next(read_questions(layout, file)).passages
            assert not ships or list(read_passages(layout, [file]))
        elif (layout, other) != ("questions", "masqa"):  # a question and its answer are questions
            told = f"looks like {other}: use layout {other} instead of {layout}"  # our few fields fit many files
            with pytest.raises(DataError, match=told if other not in sample.OWN else None):
                list(read_passages(layout, [file]))


@pytest.mark.parametrize("layout", sorted(ROWS))
@given(data=st.data())
def test_a_row_with_any_junk_in_it_is_read_or_named(layout, data, tmp_path_factory) -> None:
    """No fault of a row escapes as anything but a DataError with the file and the line."""
    row = ROWS[layout] | data.draw(st.dictionaries(st.sampled_from(sorted(ROWS[layout])), sample.JSON, min_size=1))
    file = source(tmp_path_factory.getbasetemp(), as_lines([ROWS[layout], row]), f"{layout}.jsonl")
    try:
        list(read_passages(layout, [file]) if layout == "jsonl" else read_questions(layout, file))
    except DataError as error:
        assert str(error).startswith(f"{file}, line 2: ")  # noqa: PT017 - most rows are read without one


def test_passages_of_a_corpus_that_lack_text(tmp_path) -> None:
    empty = [
        {"id": "2", "title": "", "text": " \u200b\u00ad\n"},
        {"id": "3", "text": None},
        {"id": "5", "contents": ""},
    ]
    titled = [{"id": "4", "title": "Ode", "text": ""}, {"id": "6", "title": "Elegy", "text": None}]
    rows = [{"id": "1", "title": "Ode", "text": "a"}, *empty, *titled]
    file, counts = source(tmp_path, as_lines(rows)), RowCounts()
    assert [found.corpus_id for found in read_passages("jsonl", [file], counts=counts)] == ["1", "4", "6"]
    assert counts.lines() == [
        f"a passage without title and text: 3, left out; the first: {file}, line 2",
        f"a passage with a title and no text: 2, kept; the first: {file}, line 5",
    ]
    rows = [{"title": "", "text": "", "id": "1"}, {"title": "A", "text": "", "id": "2"}]
    assert [found.title for found in read_passages("jsonl", [source(tmp_path, as_csv(rows), "a.csv")])] == ["A"]


def click(question: str, *gold: str, **more: object) -> dict:
    return {"question": question, "gold_doc_ids": list(gold), **more}


FILLED = {"title": "T", "text": "x"}
LEFT_OUT = [  # layout, what is other in a row, what is left out: the row, or a part of it
    ("hotpotqa", {"question": "\u200b"}, "a row whose field 'question' is empty"),
    ("hotpotqa", {"question": None}, "a row whose field 'question' is null"),
    ("hotpotqa", {"_id": None}, "a row whose field '_id' or 'id' is null"),
    ("hotpotqa", {"_id": " "}, "a row whose field '_id' or 'id' is empty"),
    ("hotpotqa", {"context": [["T", ["a", None]]]}, "a sentence of field 'context' that is null"),
    ("hotpotqa", {"context": [[None, ["a"]]]}, "a title of field 'context' that is null"),
    ("hotpotqa", {"context": [None, *HOTPOT["context"]]}, "an item of field 'context' that is null"),
    ("hotpotqa", {"supporting_facts": [[None, 0], ["Globe", 0]]}, "a title of field 'supporting_facts' that is null"),
    ("musique", {"answer_aliases": [None]}, "an item of field 'answer_aliases' that is null"),
    ("corpus_questions", {"gold_doc_ids": ["", "a"]}, "an item of field 'gold_doc_ids' that is empty"),
    ("flashrag", {"id": ""}, "a field 'id' that is empty"),
    ("flashrag", {"golden_answers": [None, "x"]}, "an item of field 'golden_answers' that is null"),
    ("fid", {"ctxs": [None, FILLED]}, "an item of field 'ctxs' that is null"),
    ("masqa", {"Question": ""}, "a row whose field 'Question' is empty"),
    ("freshqa", {"answer_0": None}, "a row whose field 'answer_0' is null"),
    ("ambignq", {"annotations": []}, "a row whose field 'annotations' is empty"),
    *(("flashrag", {"metadata": {"gold_segments": [segment]}}, f"a row whose field {what}") for segment, what in (
        ({"document": None, "evidence": "x"}, "'document' is null"),
        ({"document": "a", "evidence": [" "]}, "'evidence' of a gold segment is empty"))),
    ("fid", {"ctxs": [FILLED, {"text": None}]}, "a passage without title and text"),
]  # fmt: skip
OTHERS = [
    ("hotpotqa", {"context": None}, "a row whose field 'context' is null", "read without it"),
    ("hotpotqa", {"answer": None}, "a row whose field 'answer' is null", "read without it"),
    ("fid", {"answers": [], "ctxs": [FILLED]}, "a question without a gold answer and a gold passage", "not used"),
    ("musique", {"paragraphs": [{"title": "T", "paragraph_text": None}]}, "a passage with a title and no text", "kept"),
]


@pytest.mark.parametrize(("layout", "change", "what", "then"), [*((*row, "left out") for row in LEFT_OUT), *OTHERS])
def test_rows_of_questions(layout, change, what, then, tmp_path) -> None:
    row = click("q", "a") if layout == "corpus_questions" else ROWS[layout]
    rows = [row, row | change, row, row | change]
    for before, place in ((0, 2), (1, 1)):  # or of a file that begins with such a row
        file, counts = source(tmp_path, as_lines(rows[before:])), RowCounts()
        questions = list(read_questions(layout, file, counts=counts))
        assert counts.lines() == [f"{what}: 2, {then}; the first: {file}, line {place}"]
        assert len(questions) == (2 if "row whose" in what and then == "left out" else 4) - before
        with pytest.raises(DataError, match=f"line {place}: {what}. Correct it, or omit strict: it is then"):
            list(read_questions(layout, file, counts=RowCounts(strict=True)))


def test_what_is_said_depends_on_the_command_and_on_the_other_rows(tmp_path) -> None:
    bare = FID | {"answers": [], "ctxs": [FILLED]}
    file = source(tmp_path, as_lines([FID, bare, bare]))
    for said in ("mined all the same", None):
        counts = RowCounts(without_gold=said)
        assert len(list(read_questions("fid", file, counts=counts))) == 3
        line = f"a question without a gold answer and a gold passage: 2, {said}; the first: {file}, line 2"
        assert counts.lines() == [line] * (said is not None)
    assert len(list(read_questions("fid", file, counts=RowCounts(True, None)))) == 3
    for answered in ([], [HOTPOT]):
        counts, file = RowCounts(), source(tmp_path, as_lines([HOTPOT | {"answer": None}] * 2 + answered))
        assert len(list(read_questions("hotpotqa", file, counts=counts))) == 2 + len(answered)
        line = f"a row whose field 'answer' is null: 2, read without it; the first: {file}, line 1"
        assert counts.lines() == [line] * len(answered)  # none of a test file


def ctx(name: str, gold: bool = False, score: float | None = None) -> dict:
    return {"title": name, "text": name, "isgold": gold, "score": score}


def test_empty_passages_of_a_question_take_their_scores_and_gold_with_them(tmp_path) -> None:
    ctxs = [ctx("", True, 3), ctx("T", True, 2), ctx("U", False, 1) | {"text": ""}]
    question = one(tmp_path, "fid", FID | {"ctxs": ctxs})
    assert [found.title for found in question.passages] == ["T", "U"]
    assert (question.scores, question.support) == ((2.0, 1.0), (Passage.of("T", "T").id,))


def test_clicks_become_one_question_with_the_gold_of_all(tmp_path) -> None:
    def read(rows: list[dict], limit: int | None = None) -> tuple[list[tuple[str, tuple[str, ...]]], RowCounts]:
        counts = RowCounts()
        found = read_joined_questions("corpus_questions", source(tmp_path, as_lines(rows)), limit, counts=counts)
        return [(each.text, each.gold.corpus_ids) for each in found], counts

    rows = [click("q one", "a"), click("Q two", "b"), click("q  one", "c"), click("q one", "a", "d")]
    found, counts = read([*rows, click("Q two", "b")])
    assert found == [("q one", ("a", "c", "d")), ("Q two", ("b",))]
    said = "a row of an earlier question: 3, joined with it; the first: "
    assert counts.lines() == [f"{said}{tmp_path}/file.json, line 3"]
    RowCounts(strict=True).add(JOINED)  # no error
    assert [gold for _, gold in read(rows, 3)[0]] == [("a", "c"), ("b",)]  # a limit counts rows
    assert read([click("Who?"), click("Who?", "d1"), click("Who?", "d2")])[0] == [("Who?", ("d1", "d2"))]
    # rows that are left out do not shift those that are joined
    nameless, blank = click("q", id=None, gold_doc_ids=None), click(" ", "c")
    found, counts = read([nameless, click("q", "a"), click("q", "b"), click("r", "c"), blank, blank])
    assert found == [("q", ("a", "b")), ("r", ("c",))]
    assert [count for *_, count, _ in counts.as_json()] == [1, 1, 2]
    limited = [click("q", "a"), click(" ", "b"), click("q", "c"), click("r", "d")]
    assert [len(read(limited, most)[0]) for most in (1, 2, 3, 4)] == [1, 1, 1, 2]
    file = source(tmp_path, as_lines(limited))
    assert [len(list(read_questions("corpus_questions", file, most))) for most in (1, 2, 3, 4)] == [1, 1, 2, 3]

    corpus = source(tmp_path, as_lines([{"id": name, "text": name} for name in "abcd"]), "corpus.jsonl")
    training = distinct_questions([QuestionDataFile(file, "corpus_questions", corpus=corpus)])  # and mining
    assert [[found.text for found in question.gold_passages] for question in training] == [["a", "c"], ["d"]]


def test_which_rows_are_one_question(tmp_path) -> None:
    def titles(*rows: dict, layout: str = "fid") -> list[tuple[str, str]]:
        """Gold and other passages of the questions that are read."""
        parts = []
        for each in read_joined_questions(layout, source(tmp_path, as_lines(list(rows)))):
            gold = [found.title for found in each.gold_passages]
            parts.append(("".join(gold), "".join(p.title for p in each.passages if p.title not in gold)))
        return parts

    def row(answers: str, *ctxs: dict) -> dict:
        return {"question": "q", "answers": list(answers), "ctxs": list(ctxs)}

    shown = ctx("A", True), ctx("B")
    assert titles(row("", *shown), row("", ctx("B", True), ctx("C"))) == [("AB", "C")]
    assert titles(row("x", *shown), row("x", *shown), row("", ctx("D", True))) == [("AD", "B")]
    assert titles(row("x", *shown), row("y", ctx("A"), ctx("B", True))) == [("A", "B"), ("B", "A")]  # two of PopQA
    assert titles(row("x", *shown), row("x", ctx("B"))) == [("A", "B"), ("", "B")]
    several = [row(answer, ctx(name, True)) for answer, name in ("xA", "yB", "yC", "xD", "zE")]
    assert titles(row("", ctx("F", True)), *several) == [("FAD", ""), ("BC", ""), ("E", "")]
    assert titles(*several, row("", ctx("F", True))) == [("ADF", ""), ("BC", ""), ("E", "")]
    both = row("xy", ctx("A", True)), row("yx", ctx("B", True))
    assert titles(*both, row("x", ctx("C", True))) == [("AB", ""), ("C", "")]
    assert titles(row("x", ctx("A", True)), row("x", ctx("B", True), ctx("", True))) == [("AB", "")]
    full = [MUSIQUE, MUSIQUE | {"paragraphs": MUSIQUE["paragraphs"][:1]}]
    assert titles(*full, layout="musique") == [("Hamlet", "Globe"), ("", "Globe")]


def test_scores_and_segments_of_joined_rows(tmp_path) -> None:
    ctxs = [[ctx("A", True, 1.0), ctx("B", score=2.0)], [ctx("B", True, 5.0), ctx("C", score=0.5)]]
    rows = [{"question": "q", "answers": [], "ctxs": each} for each in ctxs]
    (question,) = read_joined_questions("fid", source(tmp_path, as_lines(rows)))
    assert question.given_scores == (1.0, 5.0, 0.5)
    segments = [{"document": name, "evidence": "x"} for name in "ab"]
    rows = [{"question": "q", "golden_answers": ["y"], "metadata": {"gold_segments": [each]}} for each in segments]
    (question,) = read_joined_questions("flashrag", source(tmp_path, as_lines(rows)))
    assert question.gold.segments == (GoldSegment("a", ("x",)), GoldSegment("b", ("x",)))


def test_questions_of_several_files_that_share_a_text_or_an_id(tmp_path) -> None:
    asked = (("1", ["Q one?"]), ("2", ["Q  one?", "Q two?", "Q two?"]), ("3", ["Q two?", "Q three?"]))
    files = [source(tmp_path, as_lines([HOTPOT | {"question": text} for text in texts]), name) for name, texts in asked]
    counts = RowCounts()
    found = [each.text for each in read_distinct_questions("hotpotqa", files, counts)]
    assert found == ["Q one?", "Q two?", "Q two?", "Q three?"]
    said = "a question of an earlier file", "a question with the id of another one"
    assert [(what, count) for what, _, count, _ in counts.as_json()] == [(said[0], 2), (said[1], 3)]

    same = HOTPOT | {"_id": "h2", "context": HOTPOT["context"][:1]}  # training leaves out what it has read
    rows = [[HOTPOT, same, HOTPOT | {"question": "Who wrote Lear?"}], [HOTPOT]]
    files = [source(tmp_path, as_lines(each), f"train{number}") for number, each in enumerate(rows)]
    counts = RowCounts()
    training = distinct_questions([QuestionDataFile(file, "hotpotqa") for file in files], counts)
    assert [question.id for question in training] == ["h1", "h1"]
    assert counts.lines() == [
        f"a row with the question of an earlier one: 1, left out; the first: {files[0]}, line 2",
        f"{said[1]}: 1, kept; the first: {files[0]}, line 3",
        f"{said[0]}: 1, left out; the first: {files[1]}, line 1",
    ]
    again = RowCounts()
    again.add_all(json.loads(json.dumps(counts.as_json())))
    assert again.lines() == counts.lines()


TURNS = ["Frank Zappa", "Disbandment", "What group disbanded?", "Zappa and the Mothers"]
CANARD = {"History": TURNS, "Question": "When did  they disband?", "Rewrite": "When did Zappa and the Mothers disband?"}
QRECC = {
    "conversation": "Q: where did they live? A: In Q: Baltimore.\nQ: what for? A: Art.",
    "question": "were they married?",
    "label": "were the cone sisters married?",
}
OURS = {"question": "who was it lol", "strategy": "cce", "rewrite": "who"}


def test_every_layout_becomes_examples(tmp_path) -> None:
    """Of CANARD, QReCC, whose dialogue is parted into turns, and our own rows, which name their strategy."""
    (example,) = read_rewrites("canard", source(tmp_path, sample.as_list([CANARD | {"Question_no": 2}])))
    assert example == RewriteExample("When did they disband?", "gqr", str(CANARD["Rewrite"]), tuple(TURNS))
    opening, later = read_rewrites("qrecc", source(tmp_path, sample.as_list([QRECC | {"conversation": ""}, QRECC])))
    assert opening.history == ()
    assert later.history == ("where did they live?", "In Q: Baltimore.", "what for?", "Art.")
    assert (later.question, later.rewrite, later.strategy) == (QRECC["question"], QRECC["label"], "gqr")
    rows = [OURS, OURS | {"strategy": "kwr", "history": ["a turn", " ", "b"]}]
    found = read_rewrites("rewrites", source(tmp_path, as_lines(rows)))
    assert [(each.strategy, each.history) for each in found] == [("cce", ()), ("kwr", ("a turn", "b"))]


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_rewrite_retrieve_read_pairs_two_files_line_by_line(tmp_path, suffix) -> None:
    for name, text in (("source", "Which\u2028one?\r\nWho?\n"), ("target", "a year; b year\nwho")):
        source(tmp_path, gzip.compress(text.encode()) if suffix else text, f"train.{name}{suffix}")
    found = list(read_rewrites("rrr", f"{tmp_path}/train.source{suffix}"))
    assert [(e.question, e.rewrite, e.strategy) for e in found] == [
        ("Which one?", "a year; b year", "decomposition"),  # U+2028 is no line break
        ("Who?", "who", "decomposition"),
    ]
    (as_gqr,) = read_rewrites("rrr", f"{tmp_path}/train.source{suffix}", "gqr", limit=1)
    assert (as_gqr.strategy, as_gqr.rewrite) == ("gqr", "a year; b year")


def pair(folder: Path, questions: str, rewrites: str) -> str:
    source(folder, rewrites, "train.target")
    return source(folder, questions, "train.source")


def test_a_wrong_pair_of_files_names_file_and_line(tmp_path) -> None:
    for questions, rewrites, message in (
        ("a\nb\n", "x\n", r"train.source, line 2: .*train.source has this line, .*train.target ends before it"),
        ("a\n", "x\ny\n", r"train.source, line 2: .*train.target has this line, .*train.source ends before it"),
        (" \n", "x\n", r"train.source: every row is left out, as line 1: field 'source' is empty\."),
        ("", "", r"train.source is empty"),
    ):
        with pytest.raises(DataError, match=message):
            list(read_rewrites("rrr", pair(tmp_path, questions, rewrites)))


def test_rows_with_an_empty_field_are_left_out_and_counted(tmp_path) -> None:
    rows = [CANARD, *(CANARD | {"Rewrite": nothing} for nothing in ("", None, " "))]
    file, counts = source(tmp_path, sample.as_list(rows)), RowCounts()
    assert len(list(read_rewrites("canard", file, counts=counts))) == 1
    assert counts.lines() == [
        f"a row whose field 'rewrite' is empty: 2, left out; the first: {file}, row 2 (line 2)",
        f"a row whose field 'rewrite' is null: 1, left out; the first: {file}, row 3 (line 3)",
    ]
    lines = pair(tmp_path, "a\nb\n \n", "x\n\ny\n")
    assert [each.question for each in read_rewrites("rrr", lines)] == ["a"]


def test_a_history_belongs_to_a_question_and_to_its_digest() -> None:
    alone, followed = Question("1", "And then?"), Question("1", "And then?", history=("Who came?", "Ann."))
    assert alone != followed
    assert digest([alone]) != digest([followed])
    assert digest([alone]) != digest([alone.excluding_self()])


TEXTS = (Passage.of("north", "the café in amber"), Passage.of("", "jetty"))
ROW = {
    "question_id": "q1",
    "question": "Who built the Kiln?",
    "recall": 0.4545,
    "without": {"kiln": -0.4545},
    "with": {"amber": 0.25, "jetty": -0.0001},
    "passages": [{"title": each.title, "text": each.text} for each in TEXTS],
    "text_version": TEXT_VERSION,
    "words": WORDS,
}


def test_word_labels_are_rounded_to_four_decimals_and_zero_is_left_out(tmp_path) -> None:
    without_word, with_word = {"kiln": -0.45454545, "who": 0.00004}, {"amber": 0.25, "jetty": -0.00012}
    given = WordLabels("q1", "Who built the Kiln?", 0.45454545, without_word, with_word, TEXTS)
    assert to_row(given) == ROW
    file = Path(source(tmp_path, as_lines([ROW])))
    (read,) = word_label_rows(str(file))
    assert read == WordLabels("q1", given.question, 0.4545, {"kiln": -0.4545}, {"amber": 0.25, "jetty": -0.0001}, TEXTS)
    assert is_word_labels(file)
    source(tmp_path, as_lines([without(ROW, "words")]))
    assert is_word_labels(file)  # of release 0.1: may be replaced, is not read
    with pytest.raises(DataError, match="labels of another version"):
        list(word_label_rows(str(file)))


def test_a_corrupt_row_of_word_labels_is_named(tmp_path) -> None:
    for change, message in (
        ({"recall": 1.5}, "field 'recall' is 1.5, not a number from 0 to 1"),
        ({"with": {"amber": "0.25"}}, "'amber' in field 'with' is \"0.25\", not a number from -1 to 1"),
        ({"with": {"amber": -2}}, "'amber' in field 'with' is -2, not a number from -1 to 1"),
        ({"without": ["kiln"]}, "field 'without' is a list, not an object"),
        ({"passages": ["amber"]}, "item 1 of field 'passages' is a string, not an object"),
        ({"passages": [{"title": "north"}]}, "field 'text' is missing"),
        ({"text_version": None}, OTHER_TEXTS.rstrip(".")),
        ({"words": 1}, "these are labels of another version, which told words apart otherwise"),
    ):
        file = source(tmp_path, as_lines([ROW, ROW | change]))
        with pytest.raises(DataError) as caught:
            list(word_label_rows(file))
        assert str(caught.value) == f"{file}, line 2: {message}. Run `python infer.py label --out {file} ...` again."


def test_rows_of_word_labels_that_are_left_out_are_counted(tmp_path) -> None:
    file = source(tmp_path, as_lines([ROW, ROW | {"recall": None}, ROW | {"question": " "}, ROW | {"recall": 0.1}]))
    counts = RowCounts()
    assert [each.recall for each in word_label_rows(file, counts=counts)] == [0.4545, 0.1]
    left_out = {"a row whose field 'recall' is null": 1, "a row whose field 'question' is empty": 1}
    assert {what: count for what, _, count, _ in counts.as_json()} == left_out
    assert len(list(word_label_rows(file, 3))) == 1
    with pytest.raises(DataError, match=r"line 2: a row whose field 'recall' is null\. Correct it, or omit strict"):
        list(word_label_rows(file, counts=RowCounts(strict=True)))


def test_the_mean_of_several_retrievers_by_hand() -> None:
    kiln, jetty, mill = Passage.of("Kiln", "amber ash"), Passage.of("", "jetty ash"), Passage.of("Mill", "amber")
    one = WordLabels("q1", "who built it", 0.5, {"who": 0.2}, {"amber": 0.4, "ash": -0.1}, (kiln, jetty))
    other = WordLabels("q1", "who built it", 0.3, {"who": -0.1, "built": -0.4}, {"amber": 0.1}, (mill,))
    both = averaged([one, other])
    assert both.recall == pytest.approx(0.4)
    assert both.without_word == pytest.approx({"who": 0.05, "built": -0.2})
    # amber is in passages of both; the others are in the first one's alone
    assert both.with_word == pytest.approx({"kiln": 0.0, "amber": 0.25, "ash": -0.1, "jetty": 0.0, "mill": 0.0})
    assert both.passages == (kiln, mill, jetty)
    assert averaged([one]) == one
