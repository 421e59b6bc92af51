"""Word feedback for training and validation: groups and their order, what is skipped, and what is refused."""

from dataclasses import replace
from pathlib import Path

import pytest

from common.errors import DataError, UserError
from common.feedback import WordFeedback
from datamodules.dmqr_words_feedback import WordFeedbackData
from datamodules.examples.splits import Source
from datamodules.formats.feedback import read_word_feedback
from harness.feedback.rewards import GoldRecall
from harness.retrievers.bm25 import Bm25Retriever
from tests.helpers.tiny_runs import set_up
from tests.helpers.word_feedback import POLICY, write_feedback
from tests.helpers.word_feedback_runs import data_of
from trainers.dmqr_words_feedback import WordFeedbackTrainer


@pytest.fixture
def module(word_toy: Path) -> WordFeedbackTrainer:
    return WordFeedbackTrainer(str(word_toy / "start")).eval()


def test_a_pair_is_computed_once_whatever_the_number_of_candidates(module: WordFeedbackTrainer, word_toy: Path) -> None:
    data = data_of(module, word_toy / "feedback", questions_per_step=4)
    sizes = []
    for epoch in range(2):
        drawn = sorted(row for step in data._plan(epoch) for row in step)
        assert drawn == list(range(len(data.groups)))
    for batch in data.train_dataloader():
        assert batch.examples == 2 * len(batch.rows_G)
        sizes.append(len(batch.rows_G))
    assert sum(sizes) == len(data.groups)
    sides = [{each.feedback.question for each in side} for side in (data.groups, data.held_out)]
    assert not sides[0] & sides[1]
    assert sum(map(len, sides)) == 60


def test_questions_without_a_lesson_and_long_ones_are_counted(
    module: WordFeedbackTrainer, word_toy: Path, tmp_path: Path
) -> None:
    rows = read_word_feedback(str(word_toy / "feedback"))
    equal = replace(rows[0], candidates=tuple(replace(each, reward=0.5) for each in rows[0].candidates))
    rows = [
        *rows, *(replace(equal, question_id=f"same{n}", question=f"{equal.question} {n}") for n in range(30)),
        *(replace(rows[1], question_id=f"long{n}", question=f"name{n} " * 40) for n in range(5)),
    ]  # fmt: skip
    data = data_of(module, write_feedback(tmp_path / "more", [cut(each) for each in rows]))
    assert data.audit["skipped_long_questions"] == 5
    held = sum(each.feedback.question_id.startswith("same") for each in data.held_out)
    assert data.audit["questions_whose_candidates_have_equal_rewards"] == 30 - held
    assert 0 < held < 30
    write_feedback(tmp_path / "nothing", [replace(equal, question_id=str(n)) for n in range(3)])
    with pytest.raises(DataError, match="0 training questions and 0 validation questions"):
        data_of(module, tmp_path / "nothing")


def cut(row: WordFeedback) -> WordFeedback:
    """Candidates that leave out no word, so that the question may be another one."""
    return replace(row, candidates=tuple(replace(each, left_out=()) for each in row.candidates))


def test_the_best_candidate_does_not_depend_on_the_order_in_the_file(
    module: WordFeedbackTrainer, word_toy: Path, tmp_path: Path
) -> None:
    rows = [
        replace(each, candidates=tuple(replace(one, reward=round(one.reward)) for one in each.candidates))
        for each in read_word_feedback(str(word_toy / "feedback"))
    ]
    turned = [replace(each, candidates=each.candidates[::-1]) for each in rows]
    here, there = (
        data_of(module, write_feedback(tmp_path / name, each)).groups for name, each in (("a", rows), ("b", turned))
    )
    assert [each.feedback for each in here] == [each.feedback for each in there]


def test_feedback_of_another_model_layout_or_policy_is_refused(
    module: WordFeedbackTrainer, word_toy: Path, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match="layout is 'word_labels', but this data module reads word_feedback"):
        WordFeedbackData([Source("word_labels", "labels.jsonl")])
    rows = read_word_feedback(str(word_toy / "feedback"))
    strange = replace(rows[0], candidates=(replace(rows[0].candidates[0], joins=("spielberg",)), *rows[0].candidates))
    with pytest.raises(DataError, match=r"question 0: 'spielberg' is not among the words .* name as model.pretrained"):
        data_of(module, write_feedback(tmp_path / "strange", [strange, *rows[1:]]))
    write_feedback(tmp_path / "hotter", rows, policy=replace(POLICY, temperature=2.0))
    both = [Source("word_feedback", str(word_toy / "feedback")), Source("word_feedback", str(tmp_path / "hotter"))]
    with pytest.raises(DataError, match=r"hotter was sampled with the policy .*'temperature': 2.0"):
        set_up(WordFeedbackData(both), module)
    for options in ({"reward": GoldRecall()}, {"retriever": Bm25Retriever}, {"gold_questions": both}):
        with pytest.raises(UserError, match="give them together"):
            WordFeedbackData(both, **options)
    with pytest.raises(UserError, match=r"data.reward looks at passages: give data.retriever"):
        WordFeedbackData(both, reward=GoldRecall(), gold_questions=both)
