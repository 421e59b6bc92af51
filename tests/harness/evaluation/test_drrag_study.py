"""DR-RAG's study on a corpus whose every figure is worked out by hand, and the choice of CFS's options.

Every row is the system run alone; the grid of the tuning chooses what the system does.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from common.errors import UserError
from common.records import Answer, Passage, Question, Ranked
from harness.commands.evaluate import evaluate
from harness.commands.tune import tune
from harness.evaluation.drrag.study import Study
from harness.evaluation.drrag.tables import Row, equal_documents_table, recall_tables
from harness.evaluation.engine import ask_rows
from harness.evaluation.settings import Bootstrap
from harness.retrievers.bm25 import Bm25Retriever, build_bm25
from harness.retrievers.fusion import FusedRetriever
from harness.retrievers.rm3 import Rm3Retriever
from harness.runtime.memo import Memo
from harness.selection.options import SelectionOptions
from harness.selection.tuned import Tuned, read_selection
from harness.systems.drrag import DrRag
from harness.tuning.drrag import Grid, Tried, threshold_grid, told, try_grid
from tests.helpers.reports import Key, cells, questions, reasons, report
from tests.helpers.river_corpus import IDS, PASSAGES, QUESTIONS, Digest, gold_scorer, write_index, write_questions
from tests.helpers.studied import Titles, counted

THIRD = pytest.approx(100 / 3, abs=1e-3)
TITLES = {id_: title for title, id_ in IDS.items()}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_index(tmp_path_factory.mktemp("index"))


@pytest.fixture
def system(index: Path) -> DrRag:
    return DrRag(Bm25Retriever(index), scorer=gold_scorer())


@pytest.fixture(scope="module")
def asked() -> list[Question]:
    return [Question(each[0], each[1], ("x",), support=tuple(IDS[title] for title in each[3])) for each in QUESTIONS]


class Watched(Bm25Retriever):
    """BM25 that keeps its queries, and fails at a text."""

    fails_at = "-"

    def search(self, queries: Sequence[str], k: int) -> list[list[Ranked]]:
        self.searched = [*getattr(self, "searched", []), *queries]
        if any(self.fails_at in query for query in queries):
            raise UserError("too long")
        return super().search(queries, k)


def run(system: DrRag, folder: Path, given: Any = ("ocean",) * 3, paper: Any = None, **study: Any) -> dict[Key, float]:
    """The figures of an evaluation; the report is in the folder `report`."""
    file = write_questions(folder)
    rows = [row | {"answer": text} for row, text in zip(json.loads(file.read_text()), given, strict=True)]
    file.write_text(json.dumps(rows))
    options = {"ks": (2,), **study}
    evaluate(system, folder / "report", questions=str(file), study=options, resamples=200, paper=paper)
    return cells(folder / "report")


def rows_of(found: dict[Key, float], table: str = "recall, k = 2") -> set[str]:
    return {row for name, row, _ in found if name == table}


def test_figures_and_records_are_those_worked_out_by_hand(system: DrRag, index: Path, tmp_path: Path) -> None:
    own = SelectionOptions("cis", k=2, fill_budget=True)  # no row of the tables
    system = DrRag(system.retriever, scorer=system.scorer, selection=own, reader=Titles())
    # q1 is right where both hops are chosen in order, q2 never; q3 has nothing to compare with
    found = run(system, tmp_path, ("Alba, Brune", "nothing", ""), "hotpotqa", bm25=index, ks=(2, 3))
    of_recall = {(row, column): value for (table, row, column), value in found.items() if table == "recall, k = 2"}
    # similarity finds the first hop of q1 and q2 and both documents of q3: (1/2 + 1/2 + 1) / 3
    for row in "SM", "BM25":
        shown = [of_recall[row, column] for column in ("recall %", "all found %", "documents")]
        assert shown == [pytest.approx(200 / 3, abs=1e-3), THIRD, 2]
    for row in "CFS", "ranked":
        shown = [of_recall[row, column] for column in ("recall %", "difference to SM", "all found %")]
        assert shown == [100, THIRD, 100]
    without = [of_recall["CFS w/o QDC", column] for column in ("recall %", "documents")]
    assert without == pytest.approx([200 / 3, 4 / 3], abs=1e-3)
    assert of_recall["SM", "time"] == 1 < of_recall["CFS", "time"]
    assert of_recall["SM", "pairs"] == of_recall["BM25", "difference to SM"] == 0
    assert not {("SM", column) for column in ("difference to SM", "oracle %", "gap closed %")} & of_recall.keys()
    assert [of_recall["ranked", column] for column in ("oracle %", "gap closed %")] == [100, 100]
    # without a second search CFS looks at what SM finds: the best two of it are SM's, so there is no gap
    assert of_recall["CFS w/o QDC", "oracle %"] == pytest.approx(200 / 3, abs=1e-3)
    assert ("CFS w/o QDC", "gap closed %") not in of_recall
    of_answers = {(row, column): value for (table, row, column), value in found.items() if table == "answers, k = 2"}
    assert [of_answers[row, "EM %"] for row in ("SM", "CFS")] == [0, of_answers["CFS", "EM - SM, points"]] == [0, 50]
    assert ("SM", "EM - SM, points") not in of_answers
    # of q1, SM shows Alba and another: half of what it says is gold, and half of the gold is said
    assert of_answers["CFS", "F1 %"] > of_answers["SM", "F1 %"] > of_answers["SM", "EM %"]
    assert of_answers["SM", "time"] == 1 < of_answers["CFS", "time"]
    assert len(system.scorer.asked) == len(set(system.scorer.asked)) > 0  # each pair once for all rows
    paper = cells(tmp_path / "report", "paper")
    published = {row: value for (_, row, column), value in paper.items() if column == "recall %"}
    assert published == {"BM25": 64.67, "SM": 80.33, "QDC": 86.12, "CIS": 79.8, "CFS": 88.89}  # Table 5 has no k = 2
    assert [paper["answers, k = 2", "DR-RAG (Table 2)", column] for column in ("EM %", "time")] == [48.58, 1.4]
    assert paper["answers, k = 2", "gpt-4-turbo, CFS, 500 questions, k = 3 (Table 7)", "Acc %"] == 67.2
    assert (tmp_path / "report/recall.png").read_bytes().startswith(b"\x89PNG")
    made = report(tmp_path / "report")
    means = {name: each["recall of gold"] for name, each in made["means"].items()}
    assert list(means)[:5] == ["drrag", "BM25", "BM25 + SM, fused", "SM", "QDC"]
    assert (means["SM"], means["CFS"]) == (pytest.approx(2 / 3), 1)
    assert (made["questions"]["measured"], made["questions"]["gold passages not in the index"]) == (3, 0)
    assert made["indexes"][0]["kind"] == "bm25"

    records = questions(tmp_path / "report")
    first, third = records[0], records[2]
    assert (first["question"], first["answers"], first["EM"], third["EM"]) == ("alba river", ["Alba, Brune"], 0, None)
    assert [gold["title"] for gold in first["gold"]] == ["Alba", "Brune"]
    chosen = {row: [TITLES[id_] for id_ in first["rows"][row]["2"]["documents"]] for row in ("SM", "CFS")}
    assert chosen["CFS"] == ["Alba", "Brune"]
    assert "Brune" not in chosen["SM"]
    assert first["rows"]["CFS"]["2"]["answer"] == "Alba, Brune"
    assert "answer" not in third["rows"]["CFS"]["2"]
    scores = {(TITLES[pair["d1"]], TITLES[pair["d2"]]): pair["probability"] for pair in first["pairs"]}
    assert (scores["Alba", "Brune"], scores["Alba", "Alba (ship)"]) == (0.9, 0.1)
    # q3's documents are both in the first stage. QDC adds its first candidate whatever it is; CFS, right about gold
    # pairs, adds only the second hop, so with k = 3 it hands over fewer documents.
    sets = [[sorted(record["rows"][row]["3"]["documents"]) for row in ("CFS", "QDC")] for record in records]
    differ = sum(cfs != qdc for cfs, qdc in sets)
    assert differ > 0
    equal = {column: value for (_, row, column), value in cells(tmp_path / "report").items() if row == "k = 3"}
    assert equal["questions where CFS is not QDC"] == differ


def test_cfs_is_compared_with_as_many_documents_of_qdc() -> None:
    def row(name: str, *chosen: str) -> Row:
        passages = [tuple(Ranked(Passage(id_, "", ""), 1.0) for id_ in ids) for ids in chosen]
        return Row(name, 4, [Answer(f"q{n}", "", hits) for n, hits in enumerate(passages)])

    asked = [Question(f"q{n}", "?", support=("a", "b")) for n in range(2)]
    rows = [row("QDC", "axbz", "xyab"), row("CFS", "ab", "xy"), row("SM", "abxy", "xyza")]
    (table,) = equal_documents_table(rows, asked, [0, 1], Bootstrap(1000, 1))
    # of a and b, CFS has 1 and 0, the first two of QDC 1/2 and 0
    assert [cell and cell.value for cell in table.rows["k = 4"]] == [50, 25, 25, 2, 2]
    assert table.rows["k = 4"][2].interval == (0, 50)
    assert equal_documents_table(rows[1:], asked, [0, 1], Bootstrap(1000, 1)) == []


@pytest.mark.parametrize("deepest_first", [True, False])
def test_every_row_equals_the_system_run_alone(index: Path, asked: list[Question], deepest_first: bool) -> None:
    """What is shared between rows, by the memo, changes no choice, no score and no count."""
    searched, reader = Watched(index), Titles()
    system = DrRag(searched, scorer=Digest(), selection=SelectionOptions("ranked", k=2), reader=reader)
    rows = Study(ks=(1, 2, 3, 5), bm25=index).rows_of(system)
    found = ask_rows(rows if deepest_first else dict([*rows.items()][::-1]), asked, Memo())
    once = {*searched.searched}  # each search is made once; the one that is fused with BM25's is deeper
    assert len(searched.searched) == len(once) + len(asked) > 2 * len(asked) or not deepest_first
    chosen = {(each.question_id, each.evidence) for answers in found.values() for each in answers}
    assert len(reader.read_sets) == len(chosen)  # each choice is read once
    assert len(found) == 4 * 12
    for row, answers in found.items():
        assert rows[row].memo is None
        assert [*map(counted, answers)] == [*map(counted, rows[row].answer(asked))]


def test_the_parts_of_a_fused_retriever_are_rows(index: Path) -> None:
    lexical = Bm25Retriever(index)
    parts, study = [lexical, Rm3Retriever(lexical)], Study(ks=(2,), bm25=index)
    study.rows_of(DrRag(FusedRetriever(parts), scorer=Digest()))
    assert [*study.baselines] == ["BM25 1", "Rm3Retriever", "BM25 3"]
    assert [*study.baselines.values()][:2] == parts


def test_rows_can_be_chosen_and_spare_the_classifier(system: DrRag, tmp_path: Path) -> None:
    without = DrRag(system.retriever, scorer=system.scorer, selection=SelectionOptions("qdc"))
    assert rows_of(run(without, tmp_path, rows=["QDC"])) == {"SM", "QDC"}
    assert system.scorer.asked == []
    run(system, tmp_path, rows=["QDC"])  # the system's own selection is measured all the same
    assert system.scorer.asked
    assert not [table for table, *_ in cells(tmp_path / "report") if "equal" in table]
    bare = DrRag(system.retriever, selection=SelectionOptions("sm"))
    assert rows_of(run(bare, tmp_path)) == {"SM", "QDC", "walk"}  # which need no classifier


def test_recall_is_of_the_questions_with_all_their_gold(system: DrRag, tmp_path: Path) -> None:
    """The others have an answer, and no recall."""
    file, out = write_questions(tmp_path), tmp_path / "report"
    rows = json.loads(file.read_text())
    rows[0]["supporting_facts"] = []
    rows[2]["supporting_facts"].append(["Nowhere", 0])
    for given in rows, [row | {"supporting_facts": []} for row in rows]:
        file.write_text(json.dumps(given))
        evaluate(system, out, questions=str(file), study={"ks": (2,)}, resamples=50)
        if given is rows:
            assert cells(out)["recall, k = 2", "SM", "recall %"] == 50  # of q2 alone
            made = report(out)
            assert (made["questions"]["measured"], made["study"]["questions with gold passages"]) == (3, 1)
            assert [record["recall_of_gold"] for record in questions(out)] == [None, 1, None]
    assert reasons(out)["recall", "SM", "recall %"] == "no question ships its gold passages"


def test_a_gap_counts_as_missed_and_nothing_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The index lacks a gold passage, and no question has a gold answer."""
    build_bm25([passage for title, passage in PASSAGES.items() if title != "Elbe"], tmp_path / "gap")
    reader = Titles()
    system = DrRag(Bm25Retriever(tmp_path / "gap"), selection=SelectionOptions("sm"), reader=reader)
    found = run(system, tmp_path, ("", "", ""), ks=(3,))
    assert "1 of 6 gold passages are not in" in capsys.readouterr().err
    assert found["recall, k = 3", "SM", "recall %"] == pytest.approx(50)
    assert reader.read_sets == []
    assert {table for table, *_ in found if table.startswith(("answers", "EM"))} == {"answers"}
    assert reasons(tmp_path / "report")["answers", "ours", "EM %"] == "no question has a gold answer"


def test_interval_is_of_the_difference_to_sm_at_the_same_k(system: DrRag, asked: list[Question]) -> None:
    rows = Study(ks=(1, 2)).rows_of(system)
    answers = ask_rows(rows, asked, Memo())
    table = [Row(name, k, answers[name, k]) for name, k in rows if k < 3]
    found = recall_tables(table, asked, range(len(asked)), Bootstrap(4000, 2), None)
    for k, share in (1, 50), (2, 200 / 3):
        assert [cell and cell.value for cell in found[k].rows["SM"][:2]] == [pytest.approx(share), None]
    # differences are 1/2, 1/2, 0: the mean of three draws is 0 with probability 1/27 and 1/2 with 8/27
    np.testing.assert_allclose(found[2].rows["CFS"][1].interval, (0, 50))


def test_the_study_searches_each_stage_with_its_retriever_and_tells_what_fails(index: Path, tmp_path: Path) -> None:
    """Where the second stage finds nothing, CFS and QDC give the first stage's k1 documents."""
    second: Any = SimpleNamespace(search=lambda queries, k: [[] for _ in queries])
    system = DrRag(Bm25Retriever(index), scorer=gold_scorer(), second_retriever=second)
    found = run(system, tmp_path, rows=["QDC", "CFS"])
    for row, documents, recall in ("SM", 2, 200 / 3), ("QDC", 1, 50), ("CFS", 1, 50):
        shown = [found["recall, k = 2", row, column] for column in ("documents", "recall %")]
        assert shown == pytest.approx([documents, recall], abs=1e-3)
    searched = Watched(index)
    searched.fails_at = "calder river "  # q* of the second question
    run(DrRag(searched, scorer=gold_scorer(), selection=SelectionOptions("sm", k=2)), tmp_path, rows=["QDC"])
    facts = " ".join((tmp_path / "report/report.md").read_text().split())
    assert "QDC, 2: 1 questions failed, which have nothing there: q2: too long" in facts


# --- the choice of CFS's options


def tried_with(index: Path, asked: list[Question], scorer: Any, ks: Sequence[int] = (2, 4)) -> list[Tried]:
    grid = Grid(depths=(1, 3), question_weights=(2,))
    return try_grid(DrRag(Bm25Retriever(index), scorer=scorer), asked, dict.fromkeys(ks, 9.0), grid, Memo())


def test_every_setting_chooses_what_the_system_does(index: Path, asked: list[Question]) -> None:
    for tried in tried_with(index, asked, Digest()):
        assert {each.question_weight for each in tried.settings} == {1, 2}
        assert {each.depth for each in tried.settings} == {1, 3, 2 * tried.k}
        assert {each.k1 for each in tried.settings} == set(range(1, tried.k))
        for row in range(0, len(tried.settings), 7):
            system = DrRag(Bm25Retriever(index), scorer=Digest(), selection=tried.settings[row].cfs(tried.k))
            found = [{hit.passage.id for hit in answer.evidence} for answer in system.answer(asked)]
            assert tried.documents_VN[row].tolist() == [*map(len, found)]
            expected = [len(own & {*q.support}) / len(q.support) for q, own in zip(asked, found, strict=True)]
            assert tried.recall_VN[row].tolist() == pytest.approx(expected)


def test_a_pair_at_the_threshold_is_positive(index: Path, asked: list[Question]) -> None:
    scorer = gold_scorer()
    scorer.threshold = 0.9  # of gold pairs
    (tried,) = tried_with(index, asked, scorer, ks=(2,))
    rows = [row for row, each in enumerate(tried.settings) if (each.threshold, each.k1, each.depth) == (0.9, 1, 4)]
    assert tried.recall_VN[rows].min() == 1
    assert len(scorer.asked) == len(set(scorer.asked)) > 0  # each pair once


def tuned(system: DrRag, folder: Path, **tuning: Any) -> Path:
    tune(system, folder / "s.json", questions=str(write_questions(folder)), tuning={"ks": (2,), **tuning})
    return folder / "s.json"


def test_what_is_chosen_by_hand(system: DrRag, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    system.scorer.threshold = 0.95  # gold pairs have 0.9: nothing is positive, and one document is left of two
    file = tuned(system, tmp_path, grid={"depths": [4], "question_weights": [1]})
    (line,) = capsys.readouterr().out.splitlines()
    chosen = read_selection(file, None)[2]
    assert 0.1 < chosen.threshold <= 0.9
    assert line == (  # SM: (1/2 + 1/2 + 1) / 3
        f"{file}: k = 2: k1 1, depth 4, threshold {chosen.threshold:.4f}, question weight 1; 2.00 documents, "
        "recall 100.00 % (on other questions 100.00, defaults 50.00, similarity 66.67)."
    )
    assert not (tmp_path / "s.json.partial").exists()
    again = DrRag(system.retriever, scorer=gold_scorer(), selection=SelectionOptions("cfs", 2), selection_file=file)
    assert again.selection == chosen.cfs(2)
    with pytest.raises(UserError, match=r"has options for k = 2, none for k = 3"):
        run(again, tmp_path, ks=(2, 3), rows=["CFS"])
    assert again.scorer.asked == []
    assert run(again, tmp_path, rows=["CFS", "QDC"])["recall, k = 2", "CFS", "recall %"] == 100
    assert report(tmp_path / "report")["study"]["selection"]["threshold"] == again.selection.threshold
    run(again, tmp_path, ks=(2, 3), rows=["ranked"])  # which takes nothing from the file


def made(recall: Any, documents: Any, limit: float = 4.0) -> Tried:
    """A grid of two first sizes and two thresholds, without retrieval."""
    settings = [Tuned(k1, 8, threshold, 1, False) for k1 in (2, 3) for threshold in (0.2, 0.5)]
    recall_VN, documents_VN = np.array(recall, np.float32), np.array(documents, np.int16)
    return Tried(4, limit, settings, 1, recall_VN, documents_VN, np.full(recall_VN.shape[1], 0.25))


def test_the_best_setting_keeps_to_the_limit_and_ties_go_to_fewer_documents_then_to_the_first() -> None:
    tried = made([[1, 1], [0.5, 0.5], [1, 0.5], [1, 0.5]], [[4, 4], [2, 2], [3, 3], [3, 2]])
    assert [replace(tried, limit=limit).best() for limit in (4, 3.9, 2.5, 2, 1.9)] == [0, 3, 3, 1, None]
    assert tried.best([0]) == 2  # all but the second find the first question's gold; two of them with 3 documents
    assert made([[1], [0], [1], [0]], [[2], [2], [2], [2]]).best() == 0


def test_thresholds_part_the_best_scores_evenly() -> None:
    best = [1 / (1 + np.exp(-each / 7)) for each in range(-70, 71)]
    thresholds = threshold_grid(best)
    shares = np.diff([sum(score >= each for score in best) for each in thresholds])
    assert len(thresholds) == 40
    assert set(shares.tolist()) <= {-3, -4}  # 141 scores
    assert threshold_grid([0.7] * 9) == pytest.approx([0.7], abs=0.003)
    assert threshold_grid([0.7] * 9)[0] <= 0.7  # at which they are positive
    assert threshold_grid([]) == []
    assert all(0 < each < 1 for each in threshold_grid([0.0, 1.0]))


def test_options_chosen_on_other_questions_are_not_those_of_the_question_itself() -> None:
    """Each setting is right about one fold alone: chosen on the others, it fails there."""
    recall = np.zeros((4, 10))
    for fold in range(4):
        recall[fold, fold::5] = 1
    tried = made(recall, np.full((4, 10), 2))
    assert tried.on_other_questions() == 0
    assert "recall 20.00 % (on other questions 0.00, defaults 20.00, similarity 25.00)" in told(tried)


def test_impossible_requests_are_refused(system: DrRag, tmp_path: Path) -> None:
    without = DrRag(system.retriever, selection=SelectionOptions("qdc", k=2))
    for asked, message, most in (system, "max_documents", {"max_documents": [1.0]}), (without, "classifier", {}):
        with pytest.raises(UserError, match=message):  # no setting keeps to it
            tuned(asked, tmp_path, **most)
    assert not (tmp_path / "s.json").exists()
