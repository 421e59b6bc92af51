"""Samples of trained generative rewriters.

Their distribution, their log-probabilities, and that they depend on the question alone.
"""

from pathlib import Path

import pytest
import torch

from common.errors import UserError
from common.records import Question
from harness.rewriters.sample_seeds import seed_of
from harness.rewriters.trained import TrainedRewriter
from models.dmqr.rewriter import Rewriter
from models.dmqr.strategies import POOL
from models.lora import Lora


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
        rewriter.add_adapters(["gqr", "decomposition"], str(name), Lora(4, 8))
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
    with pytest.raises(UserError, match="does not know the strategy 'kwr'"):
        generative.sample(TURNS, ["kwr"], 2, 1.0, 0)
