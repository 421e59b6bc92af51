"""Trained rewriters behind the interface: batches, fallbacks, costs, and strategies that were not learned."""

from pathlib import Path

import pytest
import torch

from common.errors import ArtifactError, MissingInputError, UserError
from common.records import Question
from harness.interfaces import Rewriter as RewriterInterface
from harness.rewriters.trained import EMPTY, TrainedRewriter
from models.dmqr.rewriter import Rewriter
from models.dmqr.strategies import POOL

QUESTIONS = [Question("1", "who is name3 in the city"), Question("2", "is name4", history=("who is name5",))]


@pytest.fixture(scope="module", params=["t5", "chat"])
def serving(
    request: pytest.FixtureRequest,
    checkpoints: dict[str, Path],
    chat_lm: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """A rewriter without training, exported."""
    folder = tmp_path_factory.mktemp("serving")
    name, most = (checkpoints["t5"], 40) if request.param == "t5" else (chat_lm, 110)
    Rewriter.build(str(name), most, 6, POOL).save(folder, ["gqr", "decomposition"], {})
    return folder


def test_rewrites_are_batched_and_do_not_depend_on_the_batch(serving: Path) -> None:
    rewriter = TrainedRewriter(serving, "cpu", "fp32")
    assert isinstance(rewriter, RewriterInterface)
    together = rewriter.rewrite(QUESTIONS, ["gqr", "decomposition"])
    for question, made in zip(QUESTIONS, together, strict=True):
        assert list(made.queries) == ["gqr", "decomposition"]
        for name in made.queries:
            (alone,) = rewriter.rewrite([question], [name])
            assert alone.queries[name] == made.queries[name]
        assert made.costs["model_calls"] == 2
        assert made.costs["tokens"] > 0
    assert rewriter.rewrite([], ["gqr"]) == []


def test_empty_rewrites_and_long_questions_fall_back_and_are_counted(
    serving: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rewriter = TrainedRewriter(serving, "cpu", "fp32")
    lm = rewriter.model.lm
    torch.nn.init.zeros_(
        lm.network.get_output_embeddings().weight
    )  # all logits are equal: the first token of the vocabulary
    first = lm.tokenizer.decode([0], skip_special_tokens=True)
    made = rewriter.rewrite([Question("1", "who"), Question("2", "name1 " * 300)], ["gqr"])
    assert first == ""  # which is a special token
    assert made[0].queries == {"gqr": ("who",)}
    assert made[0].fallbacks == {"gqr": EMPTY}
    assert made[1].queries["gqr"][0].startswith("name1 name1")
    assert "longer than the" in made[1].fallbacks["gqr"]
    assert made[1].costs["model_calls"] == 0
    assert [each.costs["fallbacks"] for each in made] == [1, 1]
    assert "2 of 2 rewrites fell back to the question" in capsys.readouterr().err


def test_strategies_that_were_not_learned_are_refused_by_name(serving: Path) -> None:
    with pytest.raises(UserError, match=r"does not know the strategy 'kwr'; it knows: gqr, decomposition\."):
        TrainedRewriter(serving, "cpu").rewrite(QUESTIONS, ["gqr", "kwr"])


def test_other_folders_are_refused(tmp_path: Path, serving: Path) -> None:
    with pytest.raises(MissingInputError, match="no serving folder there"):
        TrainedRewriter(tmp_path / "none").load()
    weights = serving / "rewriter/model.safetensors"
    kept = weights.read_bytes()
    weights.write_bytes(kept[:-1] + bytes([kept[-1] ^ 1]))
    try:
        with pytest.raises(ArtifactError, match=r"model\.safetensors"):
            TrainedRewriter(serving).load()
    finally:
        weights.write_bytes(kept)
