"""Training of generative rewriters: parts of a step, and real (tiny) runs of the command line."""

import math
from typing import Any

import pytest
import torch

from common.errors import ArtifactError
from common.records import Question
from harness.rewriters.trained import TrainedRewriter
from models.length_batching import IGNORE
from models.lora import Lora, adapter_names, adapter_parameters
from tests.helpers.rewrite_runs import data_of
from tests.helpers.tiny_runs import best_of, checkpoint_of, divided_steps, fit, metrics, run_card
from tests.helpers.tolerances import model_close
from trainers.dmqr import RewriterTrainer

TRAINER = "rewriter"
STRATEGIES = ("gqr", "decomposition")


@pytest.fixture
def module(checkpoints) -> RewriterTrainer:
    torch.manual_seed(0)
    return RewriterTrainer(str(checkpoints["t5"]), 40, 8, lora=Lora(4)).load().eval()


@pytest.mark.numeric
@pytest.mark.parametrize(("ranks", "accumulate"), [(1, 4), (2, 1), (4, 4)])  # 16 parts exceed the 12 rewrites of a step
def test_the_parts_make_up_the_mean_over_the_tokens_of_the_step(module, workplace, ranks, accumulate) -> None:
    def share(batch: Any) -> float:
        return float((module(batch).sum(dim=1) * batch.weights_P).sum() / batch.step_tokens)

    path = workplace / "rewrites.jsonl"
    with torch.inference_mode():
        for batch, mine in divided_steps(lambda *place: data_of(module, path, *place), ranks, accumulate):
            nll_PA = module(batch)
            mean = float(nll_PA[batch.labels_PA != IGNORE].mean())
            assert share(batch) == model_close(mean)
            assert sum(map(share, mine)) == model_close(mean)
            seen = [row for b in mine for row, w in zip(b.rows_P.tolist(), b.weights_P.tolist(), strict=True) if w]
            assert sorted(seen) == sorted(batch.rows_P.tolist())


@pytest.mark.parametrize(("adapters", "epochs", "rate"), [("shared", 10, "1.0e-2"), ("per_strategy", 6, "3.0e-2")])
def test_a_run_learns_and_exports_a_rewriter_that_rewrites_alike(
    adapters, epochs, rate, workplace, monkeypatch
) -> None:
    folder = fit("tiny", "--model.adapters", adapters, "--model.optimizer.learning_rate", rate, "--trainer.max_epochs",
                 str(epochs), "--trainer.check_val_every_n_epoch", str(epochs // 2))  # fmt: skip
    losses = [row["val/loss_nats"] for row in metrics(folder) if "val/loss_nats" in row]
    assert losses[-1] < losses[0]
    assert losses[-1] < 0.85 * math.log(104)  # of the start, the logarithm of its vocabulary
    best = checkpoint_of(folder)["state_dict"]
    assert all("lora_" in name for name in best)
    module = best_of(folder, RewriterTrainer)
    assert not any(each.training for each in module.modules())  # the added layers as well
    own = adapters == "per_strategy"
    if own:
        assert adapter_names(best) == list(STRATEGIES)
        one, other = (
            torch.cat([p.flatten() for p in adapter_parameters(module.rewriter.network, name)]) for name in STRATEGIES
        )
        assert (one - other).abs().max() > 0.01
    rewriter = TrainedRewriter(folder / "serving", "cpu", "fp32")
    assert rewriter.strategies == STRATEGIES
    questions = [Question("1", "who is of name5", history=("is name7 born", "name7")), Question("2", "who is name9")]
    asked = [(question.text, question.history) for question in questions]
    texts = module.rewriter.rewrite(asked, STRATEGIES)
    assert rewriter.model.rewrite(asked, STRATEGIES) == texts
    for question, rewrites, written in zip(questions, rewriter.rewrite(questions, STRATEGIES), texts, strict=True):
        for name in STRATEGIES:
            queries = module.rewriter.queries(written[name] or "", name)
            assert rewrites.queries[name] == (queries or (question.text,))
    card, found = run_card(folder / "serving", monkeypatch)
    assert card.data.to_dict()["pipeline_tag"] == "text2text-generation"
    assert ("for each strategy a LoRA adapter of rank 4" in card.text) == own
    (alone,) = rewriter.model.encode([rewriter.model.task(found["question"], "gqr")])
    assert rewriter.model.encode.decoded(found["ids"][0]) == rewriter.model.write([alone], ["gqr"])[0]


@pytest.mark.parametrize("ranks", [1, 2])  # DDP gives every weight a gradient
def test_a_step_of_one_strategy_leaves_the_other_s_adapter_as_it_is(checkpoints, workplace, ranks) -> None:
    """Also when the other one has momentum and weights decay."""
    torch.manual_seed(0)
    module = RewriterTrainer(str(checkpoints["t5"]), 40, 8, lora=Lora(4, dropout=0.05), adapters="per_strategy").load()
    data = data_of(module, workplace / "rewrites.jsonl")
    module.trainer = data.trainer
    data.trainer.datamodule, data.trainer.world_size, data.trainer.precision = data, ranks, "32-true"
    data.trainer.strategy = "ddp"
    module.setup("validate")
    optimizer = torch.optim.AdamW([p for p in module.parameters() if p.requires_grad], lr=0.1, weight_decay=0.1)

    def step(strategies: set[str]) -> None:
        chosen = [row for row, each in enumerate(data.training) if each.example.strategy in strategies][:4]
        optimizer.zero_grad()
        module.training_step(data._collate(0, chosen[:2], chosen), 0).backward()
        if ranks == 2:
            assert all(p.grad is not None for p in module.parameters() if p.requires_grad)
        module.on_after_backward()
        optimizer.step()

    def weights_of(name: str) -> torch.Tensor:
        return torch.cat([p.detach().flatten() for p in adapter_parameters(module.rewriter.network, name)])

    step({"gqr"})
    step({"decomposition"})
    before = {name: weights_of(name) for name in ("gqr", "decomposition")}
    step({"gqr"})
    assert torch.equal(weights_of("decomposition"), before["decomposition"])
    assert (weights_of("gqr") - before["gqr"]).abs().max() > 0.01


def test_an_adapter_is_not_resumed_on_another_model(module) -> None:
    saved: dict[str, Any] = {}
    module.on_save_checkpoint(saved)
    module.on_load_checkpoint(saved)
    saved["frozen_bases"]["rewriter"] = {"name": "t5-other", "sha256": {"model.safetensors": "0" * 64}}
    with pytest.raises(ArtifactError, match="rewriter belongs to t5-other with other weights than those of"):
        module.on_load_checkpoint(saved)
