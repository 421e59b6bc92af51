"""Rewriters on a base of 4 or 8 bits.

What is quantized and trained, FLOPs, checkpoints, and the export on fp32 weights.
"""

import json
import re
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from common.errors import UserError
from datamodules.dmqr import RewriteBatch
from harness.rewriters.trained import TrainedRewriter
from models.dmqr.rewriter import Rewriter
from models.dmqr.strategies import POOL
from models.lora import Lora
from models.quantization import check_base_bits, check_quantized_device
from tests.helpers.rewrite_runs import data_of, prepare
from tests.helpers.tiny_runs import best_of, checkpoint_of, fit, metrics
from trainers.dmqr import RewriterTrainer


@pytest.fixture
def workplace(tmp_path: Path, checkpoints: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to run in, with data and a config for a tiny run."""
    return prepare(tmp_path, checkpoints["t5"], monkeypatch)


@pytest.mark.parametrize("bits", [4, 8])
def test_only_the_base_s_linear_layers_are_quantized_and_only_adapters_trained(
    checkpoints: dict[str, Path],
    chat_lm: Path,
    workplace: Path,
    bits: int,
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

        exact = Rewriter.build(str(folder), most, 8, POOL)
        module.eval()
        with torch.inference_mode():
            difference = (module(batch) + exact(batch.ids_PT, batch.attention_PT, batch.labels_PA)).abs().max()
        assert 0 < difference < (2.0 if bits == 4 else 0.5)  # nats; the adapter adds nothing yet


@pytest.mark.parametrize("bits", [4, 8])
def test_flops_are_those_of_the_weights_however_they_are_stored(checkpoints: dict[str, Path], bits: int) -> None:
    pytest.importorskip("bitsandbytes")
    whole, small = (
        RewriterTrainer(str(checkpoints["t5"]), 40, 8, lora=Lora(4), base_bits=each).load() for each in (None, bits)
    )
    assert small.flops_per_token == whole.flops_per_token


@pytest.mark.parametrize(("bits", "adapters"), [(4, "shared"), (8, "per_strategy")])
def test_it_trains_and_exports_the_adapter_on_fp32_weights(
    workplace: Path,
    checkpoints: dict[str, Path],
    bits: int,
    adapters: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
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


def test_what_cannot_be_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match=r"model\.base_bits 4 needs LoRA, .* give model\.lora\.rank"):
        check_base_bits(4, None)
    with pytest.raises(UserError, match=r"needs trainer\.accelerator cpu or gpu \(CUDA\), not mps"):
        check_quantized_device(torch.device("mps"))
    check_quantized_device(torch.device("cuda", 1))
    monkeypatch.setattr("models.quantization.PACKAGE", "no_such_package")
    with pytest.raises(UserError, match="needs no_such_package, which is not installed: pip install"):
        check_base_bits(8, 16)
    check_base_bits(None, None)
