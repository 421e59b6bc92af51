"""Whatever a checkpoint was saved in, it is trained, and served, with fp32 weights: those of the file."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from harness.indexing.sentence_encoder import SentenceEncoder
from models.cross_encoder import RelevanceEstimator
from models.dmqr.rewriter import RewriterModel
from models.dmqr.strategies import POOL
from models.drrag.triple_classifier import TripleClassifier
from models.drrag.triple_tokenizer import TEXT_FORMAT
from models.rerag.parts import load_generator
from models.serving_manifest import write_manifest
from tests.helpers.half import saved_in_bf16

PARTS: dict[str, Callable[[str], nn.Module]] = {
    "classifier": lambda folder: TripleClassifier.build(folder, 96),
    "estimator": lambda folder: RelevanceEstimator.build(folder, 64),
    "generator": lambda folder: load_generator(folder, 64),
    "rewriter": lambda folder: RewriterModel.build(folder, 40, 20, POOL),
    "sentence encoder": lambda folder: SentenceEncoder(folder, "cpu").model,
}


@pytest.mark.parametrize(
    ("part", "family"),
    [
        *(("classifier", family) for family in ("big_bird", "longformer", "bert", "roberta")),
        *(("estimator", family) for family in ("t5", "big_bird", "bert", "roberta")),
        ("generator", "t5"),
        ("rewriter", "t5"),
        ("sentence encoder", "bert"),
    ],
)
def test_weights_are_fp32_and_the_files(checkpoints, tmp_path, part, family) -> None:
    made = PARTS[part](str(saved_in_bf16(checkpoints[family], tmp_path / "half")))
    assert {p.dtype for p in made.parameters()} == {torch.float32}
    ours = next(value for name, value in made.named_parameters() if "query" in name or "SelfAttention.q" in name)
    assert torch.equal(ours, ours.bfloat16().float())
    theirs = PARTS[part](str(checkpoints[family])).state_dict()
    name = next(name for name, value in made.named_parameters() if value is ours)
    torch.testing.assert_close(ours, theirs[name], rtol=2**-8, atol=1e-6)


def test_a_served_classifier_saved_in_bf16_is_trained_further_and_served_in_fp32(checkpoints, tmp_path) -> None:
    TripleClassifier.build(str(checkpoints["big_bird"]), 96).save(tmp_path / "whole")
    half = saved_in_bf16(tmp_path / "whole/classifier", tmp_path / "half/classifier")
    assert {p.dtype for p in TripleClassifier.build(str(half), 96).parameters()} == {torch.float32}
    write_manifest(half.parent, "triple_classifier", TEXT_FORMAT, 96, attention="auto", threshold=0.5)
    assert {p.dtype for p in TripleClassifier.load(half.parent, "cpu").parameters()} == {torch.float32}
