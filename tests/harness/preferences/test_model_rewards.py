"""Rewards by models: the cosine to gold, a reader's answers, the probability of the answer.

Each against its definition.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from common.preferences import Reward
from common.records import Answer, Passage, Question, Ranked
from harness.indexing.sentence_encoder import SentenceEncoder
from harness.preferences.model_rewards import NO_TEXT, AnswerProbability, AnswerQuality, CosineGain
from harness.preferences.rewards import NO_ANSWER
from tests.helpers.rerag_world import corpus, write_serving

PASSAGES = corpus(12)


def hits(*places: int) -> list[Ranked]:
    return [Ranked(PASSAGES[place], 0.0) for place in places]


class FirstWord:
    """A reader that answers the first word of the best passage, and counts what it reads."""

    def __init__(self) -> None:
        self.read_rows = 0

    def read(self, questions: Sequence[Question], evidence: Sequence[Sequence[Ranked]]) -> list[Answer]:
        self.read_rows += len(questions)
        return [
            Answer(question.id, own[0].passage.text.split()[0] if own else "", tuple(own))
            for question, own in zip(questions, evidence, strict=True)
        ]


def test_the_gain_in_cosine_needs_no_search(encoder_folder: str, encoder: SentenceEncoder) -> None:
    reward = CosineGain(encoder_folder, "cpu", "fp32")
    assert isinstance(reward, Reward)
    assert reward.depth == 0
    gold = [Passage.of("", "amber kiln"), Passage.of("", "delta")]
    asked = Question("q", "kiln", passages=tuple(gold), support=tuple(each.id for each in gold))
    plain, rewritten, several = reward([asked] * 3, [["kiln"], ["delta kiln"], ["delta", "amber"]], [[]] * 3)
    assert plain == 0.0

    def cosine(one: str, other: str) -> float:
        a, b = encoder.encode_queries([one])[0], encoder.encode_passages([other])[0]
        return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))

    before = [cosine("kiln", each.text) for each in gold]
    after = [cosine("delta kiln", each.text) for each in gold]
    best = [max(cosine(query, each.text) for query in ("delta", "amber")) for each in gold]
    assert rewritten == pytest.approx(np.mean(after) - np.mean(before), abs=1e-5)
    assert several == pytest.approx(np.mean(best) - np.mean(before), abs=1e-5)
    assert reward.missing(Question("q", "kiln", support=("elsewhere",))) == NO_TEXT
    assert reward.missing(asked) is None


def test_answer_hit_and_words_in_common() -> None:
    reader = FirstWord()
    reward = AnswerQuality(reader, k=2)
    assert isinstance(reward, Reward)
    passages = [Passage.of("", "amber jetty"), Passage.of("", "kiln"), Passage.of("", "orchard amber")]
    best = [Ranked(each, 0.0) for each in passages]
    exact, partial = Question("1", "a", ("amber",)), Question("2", "b", ("amber jetty",))
    rows = [
        (exact, best, 1 + 1 + 1),
        (partial, best, 0 + 2 / 3 + 1),  # one of one predicted, one of two gold words
        (exact, [best[1], best[2]], 0 + 0 + 1),  # read, and not answered
        (exact, [best[1], best[1], best[0]], -1),  # the third passage is not read
        (exact, [], -1),
        (exact, [*best[:2], best[0]], 3),  # the two that are read are those of the first row: not read again
    ]
    found = reward([row[0] for row in rows], [["x"]] * len(rows), [row[1] for row in rows])
    assert found == pytest.approx([row[2] for row in rows])
    assert reader.read_rows == 5
    assert reward.missing(Question("q", "where")) == NO_ANSWER


def test_the_probability_of_the_answer_is_the_mixture_over_the_passages(
    checkpoints: dict[str, Path], tmp_path: Path
) -> None:
    reward = AnswerProbability(
        write_serving(checkpoints["t5"], tmp_path / "serving", temperature=2.0), 3, "cpu", "fp32"
    )
    assert isinstance(reward, Reward)
    asked = Question("q", "where was name3 born", ("name4", "name5"))
    other = Question("r", "where was name7 born", ("name9 film",))
    rows = [(asked, hits(0, 1, 2, 3)), (asked, hits(1)), (other, hits(2, 0)), (asked, []), (asked, hits(2, 1, 0))]
    found = reward([row[0] for row in rows], [["x"]] * len(rows), [row[1] for row in rows])
    estimator, generator = reward.reader.model.estimator, reward.reader.model.generator
    assert estimator is not None
    assert generator is not None
    for (question, own), value in zip(rows, found, strict=True):
        passages = [hit.passage for hit in own[:3]]
        logits = [estimator.scores([(question.text, passage)])[0] for passage in passages]
        weights = torch.tensor(logits, dtype=torch.float64).div(2.0).softmax(0).tolist() if logits else []
        each = [
            np.exp(generator.logprobs(generator.encode([(question.text, [p])]), [question.answers[0]])[0])
            for p in passages
        ]
        assert value == pytest.approx(sum(w * p for w, p in zip(weights, each, strict=True)), rel=1e-4, abs=1e-12)
    assert 0 < found[0] < 1
    assert found[0] == pytest.approx(found[4])  # the order does not matter
    assert reward.missing(asked) is None
    assert reward.missing(Question("q", "where")) == NO_ANSWER
