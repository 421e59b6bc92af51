"""Rewriters on a base of 4 or 8 bits.

What is quantized and trained, FLOPs, checkpoints, and the export on fp32 weights.
"""

import json
import re

import pytest
import torch
from safetensors.torch import load_file

from datamodules.dmqr import RewriteBatch
from harness.rewriters.trained import TrainedRewriter
from models.dmqr.rewriter import RewriterModel
from models.dmqr.strategies import POOL
from models.lora import Lora
from tests.helpers.rewrite_runs import data_of
from tests.helpers.tiny_runs import best_of, checkpoint_of, fit, metrics
from trainers.dmqr import RewriterTrainer

TRAINER = "rewriter"


@pytest.mark.parametrize("bits", [4, 8])
def test_only_the_base_s_linear_layers_are_quantized_and_only_adapters_trained(
    checkpoints, chat_lm, workplace, bits
) -> None:
    pytest.importorskip("bitsandbytes")
    for folder, most in ((checkpoints["t5"], 40), (chat_lm, 100)):
        torch.manual_seed(0)
        module = RewriterTrainer(str(folder), most, 8, lora=Lora(4, dropout=0.05), base_bits=bits).load()
        kinds: dict[torch.dtype, set[str]] = {}
        for name, parameter in module.rewriter.network.named_parameters():
            kinds.setdefault(parameter.dtype, set()).add(name)
            assert parameter.requires_grad == (".lora_" in name)
        packed = kinds.pop(torch.uint8 if bits == 4 else torch.int8)
        assert len(packed) > 5
        assert all("base_layer" in name for name in packed)
        assert list(kinds) == [torch.float32]
        batch: RewriteBatch = next(iter(data_of(module, workplace / "rewrites.jsonl").train_dataloader()))
        module(batch).sum().backward()
        assert all((p.grad is not None) == p.requires_grad for p in module.parameters())
        assert any(float(p.grad.abs().max()) > 0 for p in module.parameters() if p.grad is not None)

        exact = RewriterModel.build(str(folder), most, 8, POOL)
        module.eval()
        with torch.inference_mode():
            difference = (module(batch) + exact(batch.ids_PT, batch.attention_PT, batch.labels_PA)).abs().max()
        assert 0 < difference < (2.0 if bits == 4 else 0.5)  # nats; the adapter adds nothing yet


@pytest.mark.parametrize(("bits", "adapters"), [(4, "shared"), (8, "per_strategy")])
def test_it_trains_and_exports_the_adapter_on_fp32_weights(workplace, checkpoints, bits, adapters, capsys) -> None:
    pytest.importorskip("bitsandbytes")
    folder = fit("small", "--model.base_bits", str(bits), "--model.adapters", adapters, "--trainer.max_epochs", "2")
    losses = [row["val/loss_nats"] for row in metrics(folder) if "val/loss_nats" in row]
    assert losses[-1] < losses[0]
    said = capsys.readouterr().out
    assert re.search(rf"differs from that on the {bits}-bit base by \d\.\d+ nats on average", said)
    assert json.loads((folder / "serving/serving.json").read_text())["base_bits"] == bits
    rewriter = TrainedRewriter(folder / "serving", "cpu", "fp32").model
    best = checkpoint_of(folder)
    assert all(".lora_" in name for name in best["state_dict"])
    exact = best_of(folder, RewriterTrainer, base_bits=None)
    batch = next(iter(data_of(exact, workplace / "rewrites.jsonl").val_dataloader()))
    with torch.inference_mode():
        served = rewriter(batch.ids_PT, batch.attention_PT, batch.labels_PA, batch.strategies)
        torch.testing.assert_close(served, -exact(batch), rtol=0, atol=1e-3)
    again = best_of(folder, RewriterTrainer)  # as a resumed run
    state = again.state_dict()
    assert state.keys() == best["state_dict"].keys()
    assert all(torch.equal(state[name], best["state_dict"][name]) for name in state)
    written = load_file(folder / "serving/rewriter/model.safetensors")
    assert written.keys() == load_file(checkpoints["t5"] / "model.safetensors").keys()
    assert {value.dtype for value in written.values()} == {torch.float32}
