"""Rewards of retrieval: hand-worked values, and independent formulas on random lists."""

import random

import numpy as np
import pytest

from common.answer_metrics import has_answer
from common.preferences import Reward
from common.records import Passage, Question, Ranked
from harness.preferences.rewards import GoldRank, GoldRecall, HasAnswer

PASSAGES = [Passage.of(f"t{n}", f"text {n} " + "amber jetty " * (n % 7 == 3)) for n in range(150)]
REWARDS: list[Reward] = [GoldRank(), GoldRecall(), GoldRecall(k=5), HasAnswer(), HasAnswer(4, share=True)]


def question(*gold: int, answers: tuple[str, ...] = ("amber jetty",)) -> Question:
    return Question("q", "where", answers, support=tuple(PASSAGES[each].id for each in gold))


def ranking(*places: int) -> list[Ranked]:
    """A list of these passages, best first."""
    return [Ranked(PASSAGES[place], 1.0) for place in places]


def of(reward: Reward, asked: Question, hits: list[Ranked]) -> float:
    (value,) = reward([asked], [["where"]], [hits])
    return value


@pytest.mark.parametrize(
    ("rank", "value"), [(1, 2.0), (5, 14 / 9), (10, 1.0), (11, 89 / 90), (55, 0.5), (100, 0.0), (101, 0.0)]
)
def test_the_rank_s_pieces(rank: int, value: float) -> None:
    others = [place for place in range(120) if place != 7]
    hits = ranking(*others[: rank - 1], 7, *others[rank - 1 :])
    assert of(GoldRank(), question(7), hits) == pytest.approx(value)
    assert of(GoldRank(), question(7, 149), hits) == pytest.approx(value)  # the best of two
    assert of(GoldRank(), question(148, 149), hits) == 0.0


def test_smooth_recall_and_recall_at_k() -> None:
    hits = ranking(0, 1, 2, 3, 4, 5)
    assert of(GoldRecall(), question(1, 140), hits) == pytest.approx((100 / 104 + 0) / 2)
    assert of(GoldRecall(half_rank=1), question(0, 2), hits) == pytest.approx((1 / 2 + 1 / 10) / 2)
    assert of(GoldRecall(half_rank=1, depth=2), question(0, 2), hits) == pytest.approx(1 / 4)
    assert of(GoldRecall(k=3), question(0, 2, 3), hits) == pytest.approx(2 / 3)


def test_an_answer_in_any_of_k_or_the_share_of_k() -> None:
    hits = ranking(0, 3, 10, 1)  # 3 and 10 hold the answer
    assert [of(HasAnswer(k), question(), hits) for k in (1, 2, 4)] == [0.0, 1.0, 1.0]
    assert [of(HasAnswer(k, share=True), question(), hits) for k in (1, 2, 4, 8)] == [0.0, 0.5, 0.5, 0.25]
    assert (
        of(HasAnswer(2), question(answers=("jetty amber",)), hits) == 0.0
    )  # DPR's rule: in this order, next to each other
    assert of(HasAnswer(2), question(answers=("delta", "text 3")), hits) == 1.0


def test_independent_formulas_on_random_lists() -> None:
    chance = random.Random(0)
    for _ in range(200):
        hits = ranking(*chance.sample(range(150), chance.randint(0, 130)))
        asked = question(*chance.sample(range(150), chance.randint(1, 3)))
        ranks = [rank for rank, hit in enumerate(hits[:100], 1) if hit.passage.id in asked.support]
        line = np.interp(min(ranks), [1, 10, 100], [2, 1, 0]) if ranks else 0.0
        smooth = sum(1 / (1 + (rank / 10) ** 2) for rank in ranks) / len(asked.support)
        held = [has_answer(hit.passage.text, asked.answers) for hit in hits]
        assert of(GoldRank(), asked, hits) == pytest.approx(line)
        assert of(GoldRecall(), asked, hits) == pytest.approx(smooth)
        assert of(GoldRecall(k=20), asked, hits) == pytest.approx(sum(r <= 20 for r in ranks) / len(asked.support))
        assert of(HasAnswer(5), asked, hits) == float(any(held[:5]))
        assert of(HasAnswer(5, share=True), asked, hits) == pytest.approx(sum(held[:5]) / 5)


@pytest.mark.parametrize("reward", REWARDS, ids=lambda each: type(each).__name__)
def test_the_interface(reward: Reward) -> None:
    assert isinstance(reward, Reward)
    assert reward.depth > 0
    assert reward.facts["reward"]
    assert reward([], [], []) == []
    bare = Question("q", "where")
    assert reward.missing(bare) == ("no gold answer" if isinstance(reward, HasAnswer) else "no gold passage")
    assert reward.missing(question(1)) is None
    asked = [question(1), question(2, answers=("text 9",)), question(1)]
    lists = [ranking(1, 2), ranking(5, 2, 9), []]
    assert reward(asked, [["x"]] * 3, lists) == [of(reward, *each) for each in zip(asked, lists, strict=True)]
    assert reward(asked, [["x"]] * 3, lists)[2] == 0.0
