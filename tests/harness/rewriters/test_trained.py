"""Trained rewriters: batches, fallbacks and costs."""

from pathlib import Path

import pytest
import torch

from common.errors import UserError
from common.records import Question
from harness.interfaces import Rewriter
from harness.rewriters.trained import EMPTY, TrainedRewriter
from models.dmqr.rewriter import RewriterModel
from models.dmqr.strategies import POOL
from models.lora import Lora

QUESTIONS = [Question("1", "who is name3 in the city"), Question("2", "is name4", history=("who is name5",))]


@pytest.fixture(scope="module", params=["t5", "chat", "adapters"])
def serving(
    request: pytest.FixtureRequest,
    checkpoints: dict[str, Path],
    chat_lm: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """A rewriter without training, exported; `adapters`: one for each strategy, with weights."""
    folder = tmp_path_factory.mktemp("serving")
    name, most = (chat_lm, 110) if request.param == "chat" else (checkpoints["t5"], 40)
    rewriter = RewriterModel.build(str(name), most, 6, POOL)
    if request.param == "adapters":
        rewriter.add_adapters(["gqr", "decomposition"], str(name), Lora(4, 8))
        torch.manual_seed(0)
        for key, parameter in rewriter.network.named_parameters():
            if "lora_B" in key:
                torch.nn.init.normal_(parameter, std=0.5)
    rewriter.save(folder, ["gqr", "decomposition"], {})
    return folder


@pytest.fixture
def generative(serving: Path) -> TrainedRewriter:
    return TrainedRewriter(serving, "cpu", "fp32")


def test_rewrites_are_batched_and_do_not_depend_on_the_batch(generative: TrainedRewriter) -> None:
    rewriter = generative
    assert isinstance(rewriter, Rewriter)
    together = rewriter.rewrite(QUESTIONS, ["gqr", "decomposition"])
    for question, made in zip(QUESTIONS, together, strict=True):
        assert list(made.queries) == ["gqr", "decomposition"]
        for name in made.queries:
            (alone,) = rewriter.rewrite([question], [name])
            assert alone.queries[name] == made.queries[name]
        assert made.costs["model_calls"] == 2
        assert made.costs["tokens"] > 0
    assert rewriter.rewrite([], ["gqr"]) == []


def test_empty_rewrites_fall_back_and_are_counted(generative: TrainedRewriter) -> None:
    rewriter = generative
    lm = rewriter.model.lm
    torch.nn.init.zeros_(
        lm.network.get_output_embeddings().weight
    )  # all logits are equal: the first token of the vocabulary
    first = lm.tokenizer.decode([0], skip_special_tokens=True)
    made = rewriter.rewrite([Question("1", "who"), Question("2", "who is name1")], ["gqr"])
    assert first == ""  # which is a special token
    assert made[0].queries == {"gqr": ("who",)}
    assert made[0].fallbacks == {"gqr": EMPTY}
    assert made[1].costs["model_calls"] == 1
    assert [each.costs["fallbacks"] for each in made] == [1, 1]


def test_a_question_that_is_too_long_is_cut_and_unknown_strategies_are_refused(generative: TrainedRewriter) -> None:
    long, cut = generative.model.rewrite([("name1 " * 300, ()), ("name1 " * 200, ())], ["gqr"])
    assert long == cut
    assert generative.model.cut_note("name1 " * 300).startswith("reads the first ")
    with pytest.raises(UserError, match=r"does not know the strategy 'kwr'; it knows: gqr, decomposition\."):
        generative.rewrite(QUESTIONS, ["gqr", "kwr"])
