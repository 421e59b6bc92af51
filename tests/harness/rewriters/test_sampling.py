"""Samples of trained rewriters.

Their distribution, their log-probabilities, and that they depend on the question alone.
"""

import math
from pathlib import Path

import pytest
import torch

from common.errors import UserError
from common.records import Question, Ranked
from common.words import words_of
from harness.retrievers.bm25 import Bm25Retriever, build_bm25
from harness.rewriters.extractive import NOTHING_FOUND, ExtractiveRewriter
from harness.rewriters.sample_seeds import seed_of
from harness.rewriters.trained import TrainedRewriter
from models.dmqr.rewriter import Rewriter
from models.dmqr.strategies import POOL
from models.dmqr.word_choices import sample_choices
from models.dmqr.word_policy import WordPolicy, choice_logp, decisions_of, pooled
from models.dmqr.word_selector import KIND, ScoredWord, WordScores, WordSelector
from models.dmqr.word_tokenizer import TEXT_FORMAT
from models.serving_manifest import write_manifest
from tests.helpers.rerag_world import corpus, questions

PASSAGES = corpus(60)
ASKED = questions(PASSAGES)[:4]
BOTH = ("par", "hop")
TEXT = "Who directed Lulu?"
READ = [  # means of the question's words: 1, -1, 0.5; maxima of the passages' words: pabst 2, wien -1, berlin 0
    WordScores(
        [ScoredWord(w, v) for w, v in zip(words_of(TEXT), (2, -1, 0.5), strict=True)],
        [ScoredWord(w, v) for w, v in zip(words_of("Pabst Wien"), (1, -1), strict=True)],
    ),
    WordScores(
        [ScoredWord(w, v) for w, v in zip(words_of(TEXT), (0, -1, 0.5), strict=True)],
        [ScoredWord(w, v) for w, v in zip(words_of("Berlin pabst"), (0, 2), strict=True)],
    ),
]


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def test_words_are_drawn_with_the_policy_s_probabilities() -> None:
    policy = WordPolicy(2, 0.4, 0.2, 0.5, BOTH)
    draws = 20_000
    choices = sample_choices(READ, policy, 8, draws, 3, lambda stays, joins: ())
    assert sum(each.times for each in choices) == draws
    z_stay, z_join = math.log(0.4 / 0.6), math.log(0.2 / 0.8)
    stay = [sigmoid((z - z_stay) / 0.5) for z in (1, -1, 0.5)]
    join = {word: sigmoid((z - z_join) / 0.5) for word, z in (("pabst", 2), ("wien", -1), ("berlin", 0))}
    for place, probability in enumerate(stay):
        left = sum(each.times for each in choices if place in each.left_out) / draws
        assert 1 - left == pytest.approx(probability, abs=4 * math.sqrt(0.25 / draws))
    for word, probability in join.items():
        share = sum(each.times for each in choices if word in each.joins) / draws
        assert share == pytest.approx(probability, abs=4 * math.sqrt(0.25 / draws))
    for each in choices:
        logp = sum(math.log(1 - p if place in each.left_out else p) for place, p in enumerate(stay))
        logp += sum(math.log(p if word in each.joins else 1 - p) for word, p in join.items())
        assert each.log_probability == pytest.approx(logp, abs=1e-9)
    assert len({(each.left_out, each.joins) for each in choices}) == len(choices) <= 2**6
    (greedy,) = [each for each in choices if each.greedy]
    assert greedy == choices[0]
    # the mean of "directed" is below the limit; words are written in the order of the passages and their best places
    assert (greedy.left_out, greedy.joins) == ((1,), ("wien", "berlin", "pabst"))


def test_a_query_has_the_most_probable_words_and_the_choice_all_of_them() -> None:
    policy = WordPolicy(2, 0.4, 0.2, 0.01, BOTH)
    written: list[tuple[list[str], list[str]]] = []

    def queries(stays: list[ScoredWord], joins: list[str]) -> tuple[str, ...]:
        written.append(([each.word.text for each in stays], joins))
        return ("x",)

    (choice,) = sample_choices(READ, policy, 2, 5, 0, queries)  # at this temperature every sample is the greedy choice
    assert written == [(["who", "lulu"], ["berlin", "pabst"])]
    assert choice.joins == ("wien", "berlin", "pabst")
    assert (choice.times, choice.greedy, choice.queries) == (5, True, ("x",))


@pytest.fixture(scope="module")
def extractive(checkpoints: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> ExtractiveRewriter:
    """An untrained selector, exported."""
    folder = tmp_path_factory.mktemp("words") / "serving"
    torch.manual_seed(1)
    WordSelector.build(str(checkpoints["bert"]), 64).save(folder)
    write_manifest(folder, KIND, TEXT_FORMAT, 64)
    return ExtractiveRewriter(folder, 2, 0.5, join_probability=0.05, join_words=3, device="cpu", precision="fp32")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[list[Ranked]]:
    index = tmp_path_factory.mktemp("index") / "bm25"
    build_bm25(PASSAGES, index)
    return Bm25Retriever(index).search([question.text for question in ASKED], 4)


@pytest.mark.parametrize("strategies", [("par", "hop"), ("kwr", "cce"), ("par",)])
def test_the_greedy_choice_makes_the_queries_that_are_used(
    extractive: ExtractiveRewriter, found: list[list[Ranked]], strategies: tuple[str, ...]
) -> None:
    used = extractive.rewrite(ASKED, strategies, found)
    for question, each, made in zip(ASKED, extractive.sample(ASKED, strategies, found, 3, 1.0, 0), used, strict=True):
        expected = [query for name, texts in made.queries.items() if name not in made.fallbacks for query in texts]
        assert each.choices[0].greedy
        assert each.choices[0].queries == tuple(dict.fromkeys(expected))
        assert each.question == question.text
        assert sum(choice.times for choice in each.choices) == 3


def test_log_probabilities_are_those_of_training(extractive: ExtractiveRewriter, found: list[list[Ranked]]) -> None:
    policy = extractive.policy(BOTH, 0.7)
    sampled = extractive.sample(ASKED, BOTH, found, 6, 0.7, 2)
    pairs = [
        [pair for pair in extractive.model.encode([(each.question, p) for p in each.passages]) if pair]
        for each in sampled
    ]
    decisions = [decisions_of(each, policy) for each in pairs]
    with torch.inference_mode():
        tensors = extractive.model.encode.pad([pair for each in pairs for pair in each])
        log_odds_GD, joins_GD, padding_GD = pooled(extractive.model(*tensors), decisions, [len(each) for each in pairs])
    logits_GD = policy.logits(log_odds_GD, joins_GD)
    for g, each in enumerate(sampled):
        assert len(each.choices) > 2
        for choice in each.choices:
            chosen = decisions[g].chosen(choice.left_out, choice.joins)
            chosen_D = torch.tensor(chosen + [False] * (logits_GD.shape[1] - len(chosen)))
            assert float(choice_logp(logits_GD[g], chosen_D, padding_GD[g])) == pytest.approx(
                choice.log_probability, abs=1e-3
            )


def test_choices_do_not_depend_on_the_batch_but_on_the_seed(
    extractive: ExtractiveRewriter, found: list[list[Ranked]]
) -> None:
    together = extractive.sample(ASKED, BOTH, found, 5, 1.0, 7)
    for question, hits, each in zip(ASKED, found, together, strict=True):
        (alone,) = extractive.sample([question], BOTH, [hits], 5, 1.0, 7)
        assert [(c.left_out, c.joins, c.times) for c in alone.choices] == [
            (c.left_out, c.joins, c.times) for c in each.choices
        ]
    other = extractive.sample(ASKED, BOTH, found, 5, 1.0, 8)
    assert [each.choices for each in other] != [each.choices for each in together]
    (nothing,) = extractive.sample(ASKED[:1], BOTH, [[]], 5, 1.0, 7)
    assert (nothing.choices, nothing.reason) == ((), NOTHING_FOUND)
    with pytest.raises(UserError, match="temperature must be above 0"):
        extractive.sample(ASKED, BOTH, found, 5, 0.0, 7)
    with pytest.raises(UserError, match="does not make 'gqr'"):
        extractive.sample(ASKED, ("gqr",), found, 5, 1.0, 7)


def test_seeds_differ_by_seed_and_by_every_part() -> None:
    seeds = [seed_of(*parts) for parts in ((0, "a", "b"), (1, "a", "b"), (0, "ab"), (0, "a"), (0, "a", "b", 1))]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**63 for seed in seeds)


TURNS = [Question("1", "who is name3 in the city"), Question("2", "is name4", history=("who is name5",))]


@pytest.fixture(scope="module", params=["t5", "chat", "adapters"])
def generative(
    request: pytest.FixtureRequest,
    checkpoints: dict[str, Path],
    chat_lm: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> TrainedRewriter:
    """A rewriter without training, exported; `adapters`: one for each strategy, with weights."""
    folder = tmp_path_factory.mktemp("serving") / "serving"
    folder.mkdir()
    name, most = (chat_lm, 110) if request.param == "chat" else (checkpoints["t5"], 40)
    rewriter = Rewriter.build(str(name), most, 6, POOL)
    if request.param == "adapters":
        rewriter.add_adapters(["gqr", "decomposition"], str(name), 4, 8, 0.0, None)
        torch.manual_seed(0)
        for key, parameter in rewriter.network.named_parameters():
            if "lora_B" in key:
                torch.nn.init.normal_(parameter, std=0.5)
    rewriter.save(folder, ["gqr", "decomposition"], {})
    return TrainedRewriter(folder, "cpu", "fp32")


def test_texts_with_the_log_probabilities_of_training(generative: TrainedRewriter) -> None:
    names = ["gqr", "decomposition"]
    sampled = generative.sample(TURNS, names, 6, 1.5, 0)
    model = generative.model
    used = model.rewrite([(each.text, each.history) for each in TURNS], names)
    for question, texts, by_strategy in zip(TURNS, used, sampled, strict=True):
        for name, candidates in by_strategy.items():
            assert not isinstance(candidates, str)
            assert [each.rewrite for each in candidates if each.greedy] == [texts[name]] * bool(texts[name])
            assert len({each.rewrite for each in candidates}) == len(candidates) > 1
            assert 0 < sum(each.times for each in candidates) <= 6
            for each in candidates:
                assert each.queries == model.queries(each.rewrite, name)
                (source,) = model.encode([model.task(question.text, name, question.history)])
                assert source is not None
                with torch.inference_mode():
                    batch = model.batch([source], model.encode.targets([each.rewrite]))
                    logp = float(model(*batch, [name]).sum())
                assert each.log_probability == pytest.approx(logp, abs=1e-3)


def test_texts_do_not_depend_on_the_batch_but_on_the_seed(generative: TrainedRewriter) -> None:
    together = generative.sample(TURNS, ["gqr", "decomposition"], 4, 1.5, 3)
    for question, by_strategy in zip(TURNS, together, strict=True):
        for name, candidates in by_strategy.items():
            ((alone),) = generative.sample([question], [name], 4, 1.5, 3)
            assert [(c.rewrite, c.times, c.greedy) for c in alone[name]] == [  # type: ignore[union-attr]
                (c.rewrite, c.times, c.greedy)
                for c in candidates  # type: ignore[union-attr]
            ]
    assert generative.sample(TURNS, ["gqr"], 4, 1.5, 4) != generative.sample(TURNS, ["gqr"], 4, 1.5, 3)


def test_a_question_that_is_too_long_says_why(generative: TrainedRewriter) -> None:
    (made,) = generative.sample([Question("1", "name1 " * 300)], ["gqr"], 2, 1.0, 0)
    assert "longer than the" in str(made["gqr"])
    with pytest.raises(UserError, match="was not trained on the strategy 'kwr'"):
        generative.sample(TURNS, ["kwr"], 2, 1.0, 0)
