"""Choosing CFS's options on validation questions.

The grid against the strategy itself, hand-worked gains, limits, refusals.
"""

import json
import zlib
from dataclasses import asdict, replace

import numpy as np
import pytest

from common.errors import ArtifactError, UserError
from common.records import Question
from harness.commands.evaluate import evaluate
from harness.evaluation.answer_scores import Bootstrap
from harness.evaluation.drrag.tuning import Tried, threshold_grid, try_grid
from harness.evaluation.drrag.tuning_grid import Grid, recall_of, search_grid
from harness.evaluation.drrag.tuning_tables import ALL, ELSEWHERE, ablation_table
from harness.retrievers.bm25 import Bm25Retriever
from harness.selection.options import SelectionOptions
from harness.selection.score_cache import ScoreCache
from harness.selection.tuned import Tuned, read_selection
from harness.strategies.drrag import DrRag
from tests.helpers.reports import cells
from tests.helpers.river_corpus import IDS, QUESTIONS, gold_scorer, write_index, write_questions

GRID = Grid(depths=(1, 3), question_weights=(2,), symmetric=True)


class Digest:
    """Scores that depend on the question and on the order of the pair."""

    threshold = 0.5

    def probabilities(self, triples):
        return [zlib.crc32(f"{question}|{d1.id}|{d2.id}".encode()) / 2**32 for question, d1, d2 in triples]


@pytest.fixture(scope="module")
def retriever(tmp_path_factory):
    return Bm25Retriever(write_index(tmp_path_factory.mktemp("index")))


@pytest.fixture(scope="module")
def asked():
    return [Question(id_, text, support=tuple(IDS[title] for title in gold)) for id_, text, _, gold in QUESTIONS]


def tried_with(retriever, asked, scorer, ks=(2, 4), grid=GRID):
    results = search_grid(retriever, asked, ks, grid)
    return try_grid(asked, results, ks, grid, ScoreCache(scorer), scorer.threshold)


def test_every_setting_chooses_what_the_strategy_does(retriever, asked):
    for tried in tried_with(retriever, asked, Digest()):
        assert {each.question_weight for each in tried.settings} == {1, 2}
        assert {each.depth for each in tried.settings} == {1, 3, 2 * tried.k}
        assert {each.k1 for each in tried.settings} == set(range(1, tried.k))
        for row in range(0, len(tried.settings), 7):
            strategy = DrRag(retriever, scorer=Digest(), selection=tried.settings[row].cfs(tried.k))
            answers = strategy.answer(asked)
            documents = [[hit.passage.id for hit in answer.evidence] for answer in answers]
            assert tried.documents_VN[row].tolist() == [len(each) for each in documents]
            expected = [recall_of(question, each) for question, each in zip(asked, documents, strict=True)]
            assert tried.recall_VN[row].tolist() == pytest.approx(expected)


def test_pairs_are_scored_once_and_only_one_order_where_one_is_tried(retriever, asked):
    for symmetric in (False, True):
        scorer = gold_scorer()
        tried_with(retriever, asked, scorer, grid=replace(GRID, symmetric=symmetric))
        assert len(scorer.asked) == len(set(scorer.asked)) > 0
        reversed_too = {(question, d2, d1) for question, d1, d2 in scorer.asked} <= set(scorer.asked)
        assert reversed_too == symmetric


def run(strategy, tmp_path, **study):
    out = tmp_path / "report"
    options = {"ks": (2,), "rows": [], **study}
    evaluate(strategy, str(write_questions(tmp_path)), out, study=options, resamples=200)
    return out


def test_each_option_alone_and_all_together_by_hand(retriever, tmp_path):
    scorer = gold_scorer()
    scorer.threshold = 0.95  # gold pairs have 0.9: nothing is positive, and one document is left of two
    file = tmp_path / "selection.json"
    grid = {"depths": [4], "question_weights": [1]}
    table = cells(run(DrRag(retriever, scorer=scorer), tmp_path, tune=file, grid=grid))
    rows = {row: {c: v for (name, r, c), v in table.items() if (name, r) == ("tuning, k = 2", row)} for row in
            {r for name, r, _ in table if name == "tuning, k = 2"}}  # fmt: skip
    assert set(rows) == {"defaults", "threshold alone", ALL, ELSEWHERE}
    assert rows["defaults"]["recall %"] == 50
    assert rows["defaults"]["difference to SM"] == pytest.approx(-100 / 6, abs=1e-3)  # SM: (1/2 + 1/2 + 1) / 3
    assert rows["threshold alone"]["recall %"] == rows[ALL]["recall %"] == rows[ELSEWHERE]["recall %"] == 100
    assert rows[ALL]["difference to the defaults"] == 50
    assert rows[ALL]["documents"] == 2
    assert rows["defaults"]["threshold"] == 0.95
    assert 0.1 < rows[ALL]["threshold"] <= 0.9
    assert table["ceilings, k = 2", "k1 1, question x 1", "depth 4"] == 100
    assert table["grid, k = 2", "k1 1, question x 1", "depth 4"] == 100
    assert table["thresholds, k = 2", "0.9500", "recall %"] == 50

    tuned = DrRag(retriever, scorer=scorer, selection=SelectionOptions("cfs", 2), selection_file=file)
    assert tuned.selection == read_selection(file, None)[2].cfs(2)
    again = cells(run(tuned, tmp_path, rows=["CFS", "QDC"]))
    assert again["recall, k = 2", "CFS", "recall %"] == 100
    report = json.loads((tmp_path / "report" / "report.json").read_text(encoding="utf-8"))
    assert report["study"]["selection"]["threshold"] == tuned.selection.threshold


def made(recall, documents, k=4):
    """A grid of two first sizes and two thresholds, without retrieval."""
    settings = [Tuned(k1, 8, threshold, 1, False) for k1 in (2, 3) for threshold in (0.2, 0.5)]
    recall_VN, documents_VN = np.array(recall, np.float32), np.array(documents, np.int16)
    return Tried(k, settings[1], settings, recall_VN, documents_VN, np.full(recall_VN.shape[1], 0.25))


def test_the_best_setting_keeps_to_the_limit_and_ties_go_to_fewer_documents_then_to_the_first():
    tried = made([[1, 1], [0.5, 0.5], [1, 0.5], [1, 0.5]], [[4, 4], [2, 2], [3, 3], [3, 2]])
    assert [tried.best(limit) for limit in (4, 3.9, 2.5, 2, 1.9)] == [0, 3, 3, 1, None]
    assert (
        tried.best(4, among=[0]) == 2
    )  # all but the second find the first question's gold; two of them with 3 documents
    assert made([[1], [0], [1], [0]], [[2], [2], [2], [2]]).best(4) == 0


def test_one_option_alone_may_hand_over_as_many_documents_as_the_defaults():
    tried = made([[1, 1], [0.5, 0.5], [1, 0.5], [1, 0.5]], [[3.5, 4], [4, 4], [4, 4], [2, 2]])
    rows = ablation_table(tried, 3.0, Bootstrap(50, 0)).rows
    chosen = {name: [cells[0].value, cells[2].value] for name, cells in rows.items() if name != ELSEWHERE}
    assert chosen == {"defaults": [2, 0.5], "k1 alone": [3, 0.5], "threshold alone": [2, 0.2], ALL: [3, 0.5]}


def test_thresholds_part_the_best_scores_evenly():
    best = [1 / (1 + np.exp(-each / 7)) for each in range(-70, 71)]
    thresholds = threshold_grid(best)
    shares = np.diff([sum(score >= each for score in best) for each in thresholds])
    assert len(thresholds) == 40
    assert set(shares.tolist()) <= {-3, -4}  # 141 scores
    assert threshold_grid([0.7] * 9) == pytest.approx([0.7], abs=0.003)
    assert threshold_grid([0.7] * 9)[0] <= 0.7  # at which they are positive
    assert threshold_grid([]) == []
    assert all(0 < each < 1 for each in threshold_grid([0.0, 1.0]))


def test_options_chosen_on_other_questions_are_not_those_of_the_question_itself():
    """Each setting is right about one fold alone: chosen on the others, it fails there."""
    recall = np.zeros((4, 10))
    for fold in range(4):
        recall[fold, fold::5] = 1
    tried = made(recall, np.full((4, 10), 2))
    rows = ablation_table(tried, 4.0, Bootstrap(50, 0)).rows
    assert rows[ALL][5].value == pytest.approx(20)
    assert rows[ELSEWHERE][5].value == pytest.approx(0)


def test_ceilings_need_no_classifier(retriever, tmp_path):
    strategy = DrRag(retriever, selection=SelectionOptions("qdc", k=2))
    table = cells(run(strategy, tmp_path, ceilings=True, grid={"depths": [1], "question_weights": [1]}))
    assert table["ceilings, k = 2", "k1 1, question x 1", "depth 4"] == 100
    # one candidate: the ship for q1, for q2 Alba, which shares "river joins" with it, Fulda for q3
    assert table["ceilings, k = 2", "k1 1, question x 1", "depth 1"] == pytest.approx(200 / 3, abs=1e-3)
    with pytest.raises(UserError, match=r"study\.tune needs the trained classifier"):
        run(strategy, tmp_path, tune=tmp_path / "x.json")


def test_impossible_requests_are_refused(retriever, tmp_path):
    strategy = DrRag(retriever, scorer=gold_scorer(), selection=SelectionOptions("cfs", 2))
    for study, line in (
        ({"most_documents": [2.0, 3.0], "tune": tmp_path / "s.json"},
            r"one number for each of study\.ks \[2\]"),
        ({"most_documents": [0.5], "tune": tmp_path / "s.json"}, "0.5 does not conform"),
        ({"grid": {"depths": [0]}}, r"study\.grid\.depths.* 0 does not conform"),
        ({"grid": {"deep": [1]}}, "grid"),
        ({"most_documents": [1.0], "tune": tmp_path / "s.json"},
            "no setting for k = 2 .* 1 documents; the fewest are 2.00"),
    ):  # fmt: skip
        with pytest.raises(UserError, match=line):
            run(strategy, tmp_path, **study)
    assert not (tmp_path / "s.json").exists()
    (tmp_path / "mine.json").write_text("{}")
    with pytest.raises(UserError, match="is no file of selection options: not replaced"):
        run(strategy, tmp_path, tune=tmp_path / "mine.json")
    assert (tmp_path / "mine.json").read_text() == "{}"


def test_a_row_with_a_budget_that_the_file_lacks_is_refused_before_anything_is_scored(retriever, tmp_path):
    file = tmp_path / "s.json"
    run(DrRag(retriever, scorer=gold_scorer()), tmp_path, tune=file)
    strategy = DrRag(retriever, scorer=gold_scorer(), selection=SelectionOptions("cfs", 2), selection_file=file)
    with pytest.raises(UserError, match=r"has options for k = 2, none for k = 3"):
        run(strategy, tmp_path, ks=(2, 3), rows=["CFS"])
    assert strategy.scorer.asked == []
    run(strategy, tmp_path, ks=(2, 3), rows=["ranked"])  # which takes nothing from the file


def test_the_settings_say_what_was_tried_and_chosen(retriever, tmp_path):
    file = tmp_path / "s.json"
    out = run(DrRag(retriever, scorer=gold_scorer()), tmp_path, tune=file, grid={"depths": [4]})
    tuning = json.loads((out / "report.json").read_text(encoding="utf-8"))["study"]["tuning"]
    assert tuning["grid"] == {"k1": None, "depths": [4], "question_weights": [1, 3], "symmetric": False}
    assert tuning["chosen"] == {"2": asdict(read_selection(file, None)[2])}
    assert tuning["questions"] == 3
    assert "k = 2: k1 1, depth 4" in (out / "report.md").read_text(encoding="utf-8")


def test_a_corrupt_file_is_refused_by_the_strategy(retriever, tmp_path):
    (tmp_path / "s.json").write_text("{}")
    with pytest.raises(ArtifactError, match=r"study\.tune"):
        DrRag(retriever, scorer=gold_scorer(), selection_file=tmp_path / "s.json").load()
