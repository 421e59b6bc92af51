"""Trained rewriters: batches, fallbacks and costs."""

import pytest
import torch

from common.errors import UserError
from common.records import Question
from harness.rewriters.trained import EMPTY, TrainedRewriter
from models.dmqr.rewriter import RewriterModel
from models.dmqr.strategies import POOL
from models.lora import Lora
from tests.helpers.tolerances import move_adapters

BOTH = ["gqr", "decomposition"]
QUESTIONS = [Question("1", "who is name3 in the city"), Question("2", "is name4", history=("who is name5",))]


@pytest.fixture(params=["t5", "chat", "adapters"])
def rewriter(request, checkpoints, chat_lm, tmp_path) -> TrainedRewriter:
    """A rewriter without training, exported; `adapters`: one for each strategy, with weights."""
    name, most = (chat_lm, 110) if request.param == "chat" else (checkpoints["t5"], 40)
    model = RewriterModel.build(str(name), most, 6, POOL)
    if request.param == "adapters":
        model.add_adapters(BOTH, str(name), Lora(4, 8))
        torch.manual_seed(0)
        move_adapters(model.network, 0.5)
    model.save(tmp_path / "serving", BOTH, {})
    return TrainedRewriter(tmp_path / "serving", "cpu", "fp32")


def test_rewrites_do_not_depend_on_the_batch_and_empty_ones_fall_back(rewriter: TrainedRewriter) -> None:
    for question, made in zip(QUESTIONS, rewriter.rewrite(QUESTIONS, BOTH), strict=True):
        assert list(made.queries) == BOTH
        for name in BOTH:
            assert rewriter.rewrite([question], [name])[0].queries[name] == made.queries[name]
        assert made.costs["model_calls"] == 2
        assert made.costs["tokens"] > 0
    assert rewriter.rewrite([], ["gqr"]) == []
    long, cut = rewriter.model.rewrite([("name1 " * 300, ()), ("name1 " * 200, ())], ["gqr"])
    assert long == cut
    assert rewriter.model.cut_note("name1 " * 300).startswith("reads the first ")
    with pytest.raises(UserError, match=r"does not know the strategy 'kwr'; it knows: gqr, decomposition\."):
        rewriter.rewrite(QUESTIONS, ["gqr", "kwr"])
    lm = rewriter.model.lm  # now all logits are equal: it writes the first token of the vocabulary, a special one
    torch.nn.init.zeros_(lm.network.get_output_embeddings().weight)
    assert lm.tokenizer.decode([0], skip_special_tokens=True) == ""
    made, other = rewriter.rewrite([Question("1", "who"), Question("2", "who is name1")], ["gqr"])
    assert (made.queries, made.fallbacks) == ({"gqr": ("who",)}, {"gqr": EMPTY})
    assert (made.costs["fallbacks"], other.costs["fallbacks"], other.costs["model_calls"]) == (1, 1, 1)
