"""Log-probabilities of several rewrites of each question."""

from pathlib import Path

import pytest
import torch

from models.dmqr.candidates import candidate_batch, candidates_logp
from models.dmqr.rewriter import RewriterModel
from models.dmqr.strategies import Pool
from models.lora import Lora
from tests.helpers.rewrite_preferences import TEXTS
from tests.helpers.tiny_lm import save_plain_lm
from tests.helpers.tolerances import model_close


@pytest.mark.numeric
@pytest.mark.parametrize("adapters", ["shared", "per_strategy"])
@pytest.mark.parametrize("family", ["t5", "causal"])
def test_candidates_that_share_an_input_have_the_log_probabilities_of_rows_of_their_own(
    checkpoints: dict[str, Path], tmp_path: Path, family: str, adapters: str
) -> None:
    start = checkpoints["t5"] if family == "t5" else save_plain_lm(tmp_path / "lm", [("who", "name1")], 1)
    rewriter = RewriterModel.build(str(start), 64, 32, Pool.load(None).strategies).eval()
    if adapters == "per_strategy":
        rewriter.add_adapters(["gqr", "kwr"], str(start), Lora(4, 8))
        with torch.no_grad():
            for name, parameter in rewriter.named_parameters():
                if "lora_B" in name:
                    parameter.normal_(0, 0.3)
    tasks = [("who is name1", "gqr"), ("where is name2 of the city", "kwr"), ("name3", "gqr")]
    inputs = [ids for ids in rewriter.encode([rewriter.task(*each) for each in tasks]) if ids]
    targets = [rewriter.encode.targets(TEXTS[:2]), rewriter.encode.targets(TEXTS), rewriter.encode.targets(TEXTS[3:])]
    assert len(inputs) == len(tasks)
    names = [name for (_, name), each in zip(tasks, targets, strict=True) for _ in each]
    pairs = [(ids, target) for ids, each in zip(inputs, targets, strict=True) for target in each]
    together_C = candidates_logp(rewriter, *candidate_batch(rewriter, inputs, targets), names)
    plain_P = rewriter(*rewriter.batch([i for i, _ in pairs], [t for _, t in pairs]), names).sum(dim=1)
    assert together_C.tolist() == [model_close(each) for each in plain_P.tolist()]
    gradients = [
        torch.autograd.grad(each.sum(), [p for p in rewriter.parameters() if p.requires_grad], allow_unused=True)
        for each in (together_C, plain_P)
    ]
    for one, other in zip(*gradients, strict=True):
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
