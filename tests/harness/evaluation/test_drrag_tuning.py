"""Choosing CFS's options on validation questions.

The grid against the system itself, a choice worked out by hand, limits, refusals.
"""

import json
from dataclasses import replace

import numpy as np
import pytest

from common.errors import UserError
from common.records import Question
from harness.commands.evaluate import evaluate
from harness.commands.tune import tune
from harness.retrievers.bm25 import Bm25Retriever
from harness.runtime.memo import Memo
from harness.selection.options import SelectionOptions
from harness.selection.tuned import Tuned, read_selection
from harness.systems.drrag import DrRag
from harness.tuning.drrag import Grid, Tried, threshold_grid, told, try_grid
from tests.helpers.reports import cells
from tests.helpers.river_corpus import IDS, QUESTIONS, Digest, gold_scorer, write_index, write_questions

GRID = Grid(depths=(1, 3), question_weights=(2,))


@pytest.fixture(scope="module")
def retriever(tmp_path_factory):
    return Bm25Retriever(write_index(tmp_path_factory.mktemp("index")))


@pytest.fixture(scope="module")
def asked():
    return [Question(id_, text, support=tuple(IDS[title] for title in gold)) for id_, text, _, gold in QUESTIONS]


def tried_with(retriever, asked, scorer, ks=(2, 4)):
    return try_grid(DrRag(retriever, scorer=scorer), asked, dict.fromkeys(ks, 9.0), GRID, Memo())


def test_every_setting_chooses_what_the_system_does(retriever, asked):
    for tried in tried_with(retriever, asked, Digest()):
        assert {each.question_weight for each in tried.settings} == {1, 2}
        assert {each.depth for each in tried.settings} == {1, 3, 2 * tried.k}
        assert {each.k1 for each in tried.settings} == set(range(1, tried.k))
        for row in range(0, len(tried.settings), 7):
            system = DrRag(retriever, scorer=Digest(), selection=tried.settings[row].cfs(tried.k))
            answers = system.answer(asked)
            assert tried.documents_VN[row].tolist() == [len(answer.evidence) for answer in answers]
            found = [{hit.passage.id for hit in answer.evidence} for answer in answers]
            expected = [len(own & {*q.support}) / len(q.support) for q, own in zip(asked, found, strict=True)]
            assert tried.recall_VN[row].tolist() == pytest.approx(expected)


def test_a_pair_at_the_threshold_is_positive(retriever, asked):
    scorer = gold_scorer()
    scorer.threshold = 0.9  # of gold pairs
    (tried,) = tried_with(retriever, asked, scorer, ks=(2,))
    rows = [row for row, each in enumerate(tried.settings) if (each.threshold, each.k1, each.depth) == (0.9, 1, 4)]
    assert tried.recall_VN[rows].min() == 1
    assert len(scorer.asked) == len(set(scorer.asked)) > 0  # each pair once


def run(system, tmp_path, **study):
    out = tmp_path / "report"
    options = {"ks": (2,), "rows": [], **study}
    evaluate(system, out, questions=str(write_questions(tmp_path)), study=options, resamples=200)
    return out


def tuned(system, tmp_path, file, **tuning):
    tune(system, file, questions=str(write_questions(tmp_path)), tuning={"ks": (2,), **tuning})


def test_what_is_chosen_by_hand(retriever, tmp_path, capsys):
    scorer = gold_scorer()
    scorer.threshold = 0.95  # gold pairs have 0.9: nothing is positive, and one document is left of two
    file = tmp_path / "selection.json"
    tuned(DrRag(retriever, scorer=scorer), tmp_path, file, grid={"depths": [4], "question_weights": [1]})
    (line,) = capsys.readouterr().out.splitlines()
    chosen = read_selection(file, None)[2]
    assert 0.1 < chosen.threshold <= 0.9
    assert line == (  # SM: (1/2 + 1/2 + 1) / 3
        f"{file}: k = 2: k1 1, depth 4, threshold {chosen.threshold:.4f}, question weight 1; 2.00 documents, "
        "recall 100.00 % (on other questions 100.00, defaults 50.00, similarity 66.67)."
    )
    assert not (tmp_path / "selection.json.partial").exists()

    system = DrRag(retriever, scorer=scorer, selection=SelectionOptions("cfs", 2), selection_file=file)
    assert system.selection == chosen.cfs(2)
    again = cells(run(system, tmp_path, rows=["CFS", "QDC"]))
    assert again["recall, k = 2", "CFS", "recall %"] == 100
    report = json.loads((tmp_path / "report" / "report.json").read_text(encoding="utf-8"))
    assert report["study"]["selection"]["threshold"] == system.selection.threshold


def made(recall, documents, limit=4.0):
    """A grid of two first sizes and two thresholds, without retrieval."""
    settings = [Tuned(k1, 8, threshold, 1, False) for k1 in (2, 3) for threshold in (0.2, 0.5)]
    recall_VN, documents_VN = np.array(recall, np.float32), np.array(documents, np.int16)
    return Tried(4, limit, settings, 1, recall_VN, documents_VN, np.full(recall_VN.shape[1], 0.25))


def test_the_best_setting_keeps_to_the_limit_and_ties_go_to_fewer_documents_then_to_the_first():
    tried = made([[1, 1], [0.5, 0.5], [1, 0.5], [1, 0.5]], [[4, 4], [2, 2], [3, 3], [3, 2]])
    assert [replace(tried, limit=limit).best() for limit in (4, 3.9, 2.5, 2, 1.9)] == [0, 3, 3, 1, None]
    assert tried.best([0]) == 2  # all but the second find the first question's gold; two of them with 3 documents
    assert made([[1], [0], [1], [0]], [[2], [2], [2], [2]]).best() == 0


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
    assert tried.on_other_questions() == 0
    assert "recall 20.00 % (on other questions 0.00, defaults 20.00, similarity 25.00)" in told(tried)


def test_impossible_requests_are_refused(retriever, tmp_path):
    system = DrRag(retriever, scorer=gold_scorer(), selection=SelectionOptions("cfs", 2))
    file = tmp_path / "s.json"
    with pytest.raises(UserError, match="max_documents"):
        tuned(system, tmp_path, file, max_documents=[1.0])  # no setting keeps to it
    with pytest.raises(UserError, match="classifier"):
        tuned(DrRag(retriever, selection=SelectionOptions("qdc", k=2)), tmp_path, file)
    assert not file.exists()


def test_a_row_with_a_budget_that_the_file_lacks_is_refused_before_anything_is_scored(retriever, tmp_path):
    file = tmp_path / "s.json"
    tuned(DrRag(retriever, scorer=gold_scorer()), tmp_path, file)
    system = DrRag(retriever, scorer=gold_scorer(), selection=SelectionOptions("cfs", 2), selection_file=file)
    with pytest.raises(UserError, match=r"has options for k = 2, none for k = 3"):
        run(system, tmp_path, ks=(2, 3), rows=["CFS"])
    assert system.scorer.asked == []
    run(system, tmp_path, ks=(2, 3), rows=["ranked"])  # which takes nothing from the file
