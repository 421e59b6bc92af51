"""Our own formats, as a person or a spreadsheet writes them; gold passages by a corpus's own ids."""

from itertools import product
from pathlib import Path

import pytest

from common.errors import DataError, UserError
from common.records import Passage, Question, Source, clean
from common.validation_split import validation_shares
from datamodules.cache.splits import split_questions
from datamodules.drrag import DrRagData
from datamodules.examples.context_sets import relevant, shares_of_grades
from datamodules.examples.data_files import QuestionDataFile
from datamodules.formats.gold_in_corpus import read_questions_with_gold
from datamodules.formats.mined_negatives import Mined
from datamodules.formats.reading import read_joined_questions, read_passages
from datamodules.formats.recognition import AUTO, recognized
from datamodules.formats.rewrites import read_rewrites
from datamodules.formats.row_counts import RowCounts
from tests.helpers.data_page import examples
from tests.helpers.layout_rows import ROWS, as_lines, source
from tests.helpers.mined_files import write_mined
from tests.helpers.tiny_runs import set_up
from trainers.drrag import DrRagTrainer

CORPUS = "id;title;text\r\ndoc 1;Tarn;Ada Wells built it.\r\n 7 ;;It opened in 1902.\r\ndoc 1;Tarn;More of doc 1.\r\n"


def read(file: str, counts: RowCounts | None = None) -> list[Question]:
    return list(read_joined_questions(AUTO, file, counts=counts))


@pytest.mark.parametrize("layout", sorted({*ROWS} - {"masqa"}))
def test_a_file_is_recognized_by_its_first_row(layout) -> None:
    assert recognized(ROWS[layout], "file") == layout
    further = {} if layout in ("questions", "judgements", "jsonl") else {"text": "with a column of another layout"}
    assert recognized(ROWS[layout] | further, "file") == layout


def test_a_spreadsheet_s_exports(tmp_path) -> None:
    for delimiter, encoding, end in product(",;\t", ("utf-8", "utf-8-sig", "utf-16"), ("\n", "\r\n")):
        rows = [
            ("Question", "Answer", "Gold IDs", "Customer"),
            ('"Who built ""it""' + delimiter + ' then?"', "Ada Wells|A. Wells", "doc 1 | 7", "x"),
            ("And when?", '"[""1902"", 1903]"', "['7']", ""),
            ("", "nothing", "7", ""),
        ]
        counts, content = RowCounts(), end.join(map(delimiter.join, rows)) + end
        found = read(source(tmp_path, content.encode(encoding), "own.csv"), counts)
        assert [each.text for each in found] == [clean(f'Who built "it"{delimiter} then?'), "And when?"]
        assert [each.answers for each in found] == [("Ada Wells", "A. Wells"), ("1902", "1903")]
        assert [each.gold.corpus_ids for each in found] == [("doc 1", "7"), ("7",)]
        unusual = " ".join(counts.lines())
        assert "'customer'" in unusual
        assert "field 'question' or 'query' is" in unusual
    (passage,) = read_passages(AUTO, [source(tmp_path, "ID,Title,Text,Page No\n007,Tarn,A lake.,4\n", "corpus.csv")])
    assert (passage.corpus_id, passage.title, passage.text) == ("007", "Tarn", "A lake.")
    assert passage.metadata == {"Page No": "4"}
    rewrites = "Question;Rewrite;History\nand when?;When was Tarn built?;Who? | Ada\n"
    (one,) = read_rewrites(AUTO, source(tmp_path, rewrites, "own.csv"))
    assert (one.question, one.rewrite) == ("and when?", "When was Tarn built?")
    assert (one.strategy, one.history) == ("gqr", ("Who?", "Ada"))
    with pytest.raises(DataError, match="not recognized as rewrites: the first row has the fields 'question'"):
        list(read_rewrites(AUTO, source(tmp_path, '{"question": "a"}', "other.jsonl")))


def test_the_fields_of_a_question(tmp_path) -> None:
    named, dialogue = read(source(tmp_path, examples("questions")["json"]))
    assert (named.id, named.answers, named.gold.corpus_ids) == ("q1", ("Ada Wells",), ("doc-17", "doc-4"))
    assert dialogue.history == ("Who built the bridge at Tarn?", "Ada Wells.")
    assert (dialogue.source.group, dialogue.scores) == ("customer-9", (7.5, 6.1))
    assert [(each.title, each.corpus_id) for each in dialogue.passages] == [("Tarn", "doc-4"), ("", "")]
    assert dialogue.support == (dialogue.passages[0].id,)
    assert dialogue.gold.grades == ((dialogue.passages[0].id, 2.0),)
    shipped = {"question": "Q?", "gold": "b", "passages": [{"id": "a", "text": "one"}, {"id": "b", "text": "two"}]}
    (one,) = read(source(tmp_path, as_lines([shipped])))
    assert (one.support, one.gold.corpus_ids, one.gold.grades) == ((one.passages[1].id,), (), ())


def test_clicks_and_grades_are_one_question_with_the_passages_of_the_corpus(tmp_path) -> None:
    corpus = source(tmp_path, CORPUS, "corpus.csv")
    rows = ["reset pump\tdoc 1\t0", "Reset\t7\tno", "reset pump\t7\t3", "reset pump\tdoc 1\t0", "reset pump\t7\t2"]
    file = source(tmp_path, "\n".join(["Query\tPassage ID\tClicked", *rows]), "clicks.tsv")
    counts = RowCounts()
    (pump, reset) = read_questions_with_gold(AUTO, file, corpus=corpus, counts=counts)
    texts = {passage.id: passage.text for passage in pump.passages}
    assert sorted(texts.values()) == ["Ada Wells built it.", "It opened in 1902.", "More of doc 1."]
    assert [texts[id_] for id_ in pump.support] == ["It opened in 1902."]
    assert [(texts[id_], grade) for id_, grade in pump.gold.grades] == [("It opened in 1902.", 3.0)]
    assert (reset.support, [passage.text for passage in reset.passages]) == ((), ["It opened in 1902."])
    assert any("joined" in line and ": 3," in line for line in counts.lines())

    file, counts = (
        source(tmp_path, "query,passage,clicked\nwho,p2,0\nwho,p1,1\nwhere,p1,0\n", "clicks.csv"),
        RowCounts(),
    )
    who, where = read_joined_questions("judgements", file, counts=counts)
    assert (who.gold.corpus_ids, where.gold.corpus_ids) == (("p1",), ())
    assert counts.lines() == [
        f"a row of an earlier question: 1, joined with it; the first: {file}, line 3",
        f"a question without a gold answer and a gold passage: 1, not used; the first: {file}, line 4",
    ]
    (pump,) = read(source(tmp_path, examples("judgements")["json"]))
    assert (pump.gold.corpus_ids, pump.support) == (("manual-3",), ())
    assert [passage.text for passage in pump.passages] == ["Hold the red button for five seconds."]
    log = source(tmp_path, "query,doc_id\nreset,a\nreset,b\n", "log.csv")  # without labels
    assert [each.gold.corpus_ids for each in read(log)] == [("a", "b")]


@pytest.mark.parametrize(
    ("passage", "is_text"),
    [
        ("manual-3", False), ("a title of five words", False), ("Hold it for some five seconds", True),
        ("\u6587\u6863-17", False), ("\u4e2d\u534e\u4eba\u6c11\u5171\u548c\u56fd", False),
        ("\u4e1c\u4eac\u662f\u65e5\u672c\u7684\u9996\u90fd\uff0c\u4e5f\u662f\u6700\u5927\u7684\u57ce\u5e02", True),
        ("\u4e1c\u4eac\u662f\u9996\u90fd\u3002", True), ("\u30c9\u30ad\u30e5\u30e1\u30f3\u30c8-17", False),
        ("\u8d64\u3044\u30dc\u30bf\u30f3\u3092\u4e94\u79d2\u9593\u62bc\u3057\u307e\u3059", True),
        ("\u0e40\u0e2d\u0e01\u0e2a\u0e32\u0e23-17", False),
        ("\u0e01\u0e23\u0e38\u0e07\u0e40\u0e17\u0e1e\u0e40\u0e1b\u0e47\u0e19\u0e40\u0e21\u0e37\u0e2d\u0e07", True),
    ],
)  # fmt: skip
def test_an_id_and_a_text_are_told_apart_in_every_script(passage: str, is_text: bool, tmp_path: Path) -> None:
    (found,) = read(source(tmp_path, as_lines([{"query": "Q?", "passage": passage, "label": 1}])))
    assert (bool(found.support), found.gold.corpus_ids) == (is_text, () if is_text else (passage,))


@pytest.mark.parametrize("given", ["corpus ids", "texts", "passages"])
def test_a_judgement_below_one_is_relevant_and_a_share_of_the_highest(given, tmp_path) -> None:
    labels = {
        "Which?": {"a": True, "b": 0.5, "c": 0.25, "d": 0},
        "Alone?": {"b": 0.5},
        "Another?": {"d": 0, "b": "0.5"},
    }
    texts = {id_: f"the text of the passage {id_}" for id_ in "abcd"}
    corpus = source(tmp_path, as_lines([{"id": i, "text": t} for i, t in texts.items()]), "corpus.jsonl")
    rows: list[dict[str, object]] = []
    for query, own in labels.items():
        judged = [{"text": texts[id_], "label": label} for id_, label in own.items()]
        if given == "passages":
            rows.append({"question": query, "passages": judged})
        elif given == "texts":
            rows += [{"query": query, **each} for each in judged]
        else:
            rows += [{"query": query, "passage_id": id_, "label": label} for id_, label in own.items()]
    found = {}
    for question in read_questions_with_gold(AUTO, source(tmp_path, as_lines(rows)), corpus=corpus):
        relevance = relevant(question, question.passages, "gold")
        shares = shares_of_grades(question, question.passages, relevance)
        each = zip(question.passages, relevance, shares, strict=True)
        found[question.text] = {passage.text[-1]: both for passage, *both in each}
    assert found == {
        "Which?": {"a": [True, 1], "b": [True, 0.5], "c": [True, 0.25], "d": [False, 0]},
        "Alone?": {"b": [True, 1]},
        "Another?": {"b": [True, 1], "d": [False, 0]},
    }


def test_what_belongs_together_is_on_one_side(tmp_path) -> None:
    def asked(text: str, *history: str, group: str = "") -> Question:
        return Question("", text, history=history, source=Source(group=group))

    apart = [asked(f"Question {number}?") for number in range(200)]
    together = [
        asked("Who built Tarn?"),
        asked("And when?", "who built  TARN?"),
        asked("And when?", "Who else?", group="x"),
        asked("Another?", group="x"),
        asked("ANOTHER?"),
    ]
    shares = validation_shares([*apart, *together])
    assert shares[:200] == validation_shares(apart)
    assert len(set(shares[:200])) == 200
    assert shares[200] == shares[201] == validation_shares([asked("Who built Tarn?")])[0]
    assert shares[202] == shares[203] == shares[204] == validation_shares([asked("Who?", group="x")])[0]
    assert shares[201] != shares[202]  # two dialogues that ask "And when?"

    same = "Who built  Tarn?,7,,\nAnd when?,7,,\nHow?,7,WHO built tarn?|Ada,\nWhy?,7,,x\nWhere?,7,,y\n"
    train = source(tmp_path, f"question,gold,history,group\n{same}", "train.csv")
    held_out = source(tmp_path, "question,gold,group\nwho built tarn?,7,\nWhat?,7,x\n", "held.csv")
    corpus = source(tmp_path, CORPUS, "corpus.csv")
    files = [[QuestionDataFile(file, corpus=corpus)] for file in (train, held_out)]
    assert [each.text for each in split_questions(*files, 0.5).training] == ["And when?", "Where?"]


LAYOUT = "corpus_questions"
ROWS_OF_CORPUS = [{"_id": f"d{number}", "title": f"Title {number}", "text": f"text of {number}"} for number in range(6)]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to run in, with corpus.jsonl and questions.jsonl.

    The gold passages of question i are d0 and those after it.
    """
    monkeypatch.chdir(tmp_path)
    source(tmp_path, as_lines(ROWS_OF_CORPUS), "corpus.jsonl")
    asked(*(("d0", f"d{1 + number % 3}") for number in range(12)))
    return tmp_path


def asked(*gold: tuple[object, ...]) -> None:
    """Write questions by their gold ids."""
    rows = [{"id": f"q{n}", "question": f"Which one is {n}?", "gold_doc_ids": list(ids)} for n, ids in enumerate(gold)]
    source(Path(), as_lines(rows), "questions.jsonl")


def with_gold(corpus: str | None = "corpus.jsonl", **options: object) -> list[Question]:
    return list(read_questions_with_gold(LAYOUT, "questions.jsonl", corpus=corpus, **options))


def titles(question: Question) -> list[str]:
    return [passage.title for passage in question.gold_passages]


def test_gold_ids_become_passages_of_the_corpus(place, capsys) -> None:
    first, second = with_gold(limit=2)
    found = [(p.title, p.text, p.corpus_id) for p in first.gold_passages]
    assert found == [("Title 0", "text of 0", "d0"), ("Title 1", "text of 1", "d1")]
    assert titles(second) == ["Title 0", "Title 2"]
    assert first.gold.corpus_ids == ()
    # a question without all its gold passages is left out and counted once
    asked(("d0", "d9"), ("d1",), ("d8",))
    for _ in range(2):
        assert [question.id for question in with_gold()] == ["q1"]
    assert capsys.readouterr().err == (
        "questions.jsonl: 2 of 3 questions are left out, for want of gold passages in corpus.jsonl, such as 'd9' of "
        "question 'q0'.\n"
    )
    # a cell of several ids is parted where the corpus has all parts and not the whole
    source(place, as_lines([*ROWS_OF_CORPUS, {"_id": "d1, d2", "title": "Both", "text": "one id"}]), "corpus.jsonl")
    asked(("d1,d3",), (" d3 ; d4;",), ("d1, d2",), ("d1,d9",), ("d1|d3",))
    assert {each.id: titles(each) for each in with_gold()} == {
        "q0": ["Title 1", "Title 3"],
        "q1": ["Title 3", "Title 4"],
        "q2": ["Both"],
    }
    # all passages of an id are gold, and a text that the corpus has twice is one
    zero, one, two, three = ROWS_OF_CORPUS[:4]
    source(
        place,
        as_lines([zero, one, two | {"_id": "d0"}, zero, three | {"_id": 7}, zero | {"_id": "d7"}]),
        "corpus.jsonl",
    )
    asked(("d1", "d0", 7), ("d7", "d0", "d1"))
    question, again = with_gold()
    assert titles(question) == ["Title 1", "Title 0", "Title 2", "Title 3"]
    line = "corpus.jsonl: 1 of the ids that questions.jsonl names are of several passages with different texts, which "
    assert f"{line}all count, such as 'd0'." in capsys.readouterr().err.splitlines()
    ids = [p.id for p in question.gold_passages]
    assert question.gold_groups == ({ids[0]}, {ids[1], ids[2]}, {ids[3]})
    assert titles(again) == ["Title 0", "Title 2", "Title 1"]


def test_gold_ids_without_their_corpus_are_refused(place) -> None:
    with pytest.raises(UserError, match=r"questions\.jsonl names its gold passages by the ids of a corpus, .* 'd0'"):
        with_gold(corpus=None)
    asked(("d0", "d9"))
    with pytest.raises(DataError, match=r"gold passage 'd9' of question 'q0' is not in corpus\.jsonl"):
        with_gold()


def test_training_draws_the_same_triples_as_from_a_file_that_ships_its_passages(place, checkpoints) -> None:
    rows = [
        ROWS["hotpotqa"]
        | {
            "_id": question.id,
            "question": question.text,
            "supporting_facts": [[p.title, 0] for p in question.gold_passages],
            "context": [[p.title, [p.text]] for p in question.gold_passages],
        }
        for question in with_gold()
    ]
    noise = Mined([Passage.of(row["title"], row["text"]) for row in ROWS_OF_CORPUS[4:]])
    write_mined(place / "mined.jsonl", [(f"q{number}", noise) for number in range(12)])

    def triples(file: QuestionDataFile) -> list[tuple[str, str, str, bool]]:
        data = DrRagData([file], validation_fraction=0.4, hard_negatives=["mined.jsonl"], cache=None)
        set_up(data, DrRagTrainer(str(checkpoints["bert"]), max_tokens=96).load())
        drawn = [*data._epoch(0).examples, *data.validation_triples]
        return [(each.question.text, each.first.text, each.second.text, each.positive) for each in drawn]

    asked_of = QuestionDataFile("questions.jsonl", LAYOUT, corpus="corpus.jsonl")
    expected = triples(QuestionDataFile(source(place, as_lines(rows), "shipped.json"), "hotpotqa"))
    assert triples(asked_of) == expected
    assert len(expected) > 24
    assert DrRagData([asked_of]).files == ["questions.jsonl", "corpus.jsonl"]


@pytest.mark.parametrize("own", [False, True])
def test_another_share_is_advised_only_where_one_is_held_out(place, checkpoints, own) -> None:
    """Questions of one gold passage give no triples."""
    row = {"supporting_facts": [["Globe", 0]], "context": [["Globe", ["A theatre."]], ["London", ["A city."]]]}
    rows = [ROWS["hotpotqa"] | row | {"_id": f"q{n}", "question": f"Which one is {n}?"} for n in range(8)]
    files = [QuestionDataFile(source(place, as_lines(rows), name), "hotpotqa") for name in ("a.json", "b.json")]
    data = DrRagData(files[:1], files[1:] if own else None, validation_fraction=0.4, cache=None)
    with pytest.raises(DataError, match=r"validation needs both classes\. Give more questions") as refused:
        set_up(data, DrRagTrainer(str(checkpoints["bert"]), max_tokens=96).load())
    assert ("validation_fraction" in str(refused.value)) != own
