"""An adapter for each strategy.

Rows of several strategies in one batch, gradients, files, and that serving computes alike.
"""

from pathlib import Path

import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file
from torch import Tensor
from transformers import AutoModelForSeq2SeqLM

from common.records import Question
from harness.rewriters.trained import TrainedRewriter
from models.dmqr.rewriter import RewriterModel, read_rewriter_manifest
from models.dmqr.strategies import POOL
from models.lora import Lora, adapter_parameters
from tests.helpers.tolerances import model_tolerance, move_adapters

FAMILIES = ("t5", "chat")
LENGTHS = {"t5": 40, "chat": 100}
NAMES = ("gqr", "cce", "decomposition")
ROWS = (
    ("who is name3", "cce"), ("is it name4", "gqr"), ("where was name3 born", "cce"), ("who is name5", "decomposition")
)  # fmt: skip
REWRITES = ("name3", "who name4", "name3 born", "who ; where")
OF_ROWS = [name for _, name in ROWS]


def adapted(folder: Path, family: str, checkpointing: bool = False) -> RewriterModel:
    """A rewriter with an adapter for each of NAMES, all different."""
    rewriter = RewriterModel.build(str(folder), LENGTHS[family], 8, POOL, gradient_checkpointing=checkpointing)
    torch.manual_seed(0)
    rewriter.add_adapters(NAMES, str(folder), Lora(4, 8))
    move_adapters(rewriter, 0.2)
    return rewriter.eval()


def batch(rewriter: RewriterModel) -> tuple[Tensor, Tensor, Tensor]:
    inputs = rewriter.encode([rewriter.task(*row) for row in ROWS])
    return rewriter.batch([each for each in inputs if each], rewriter.encode.targets(REWRITES))


@pytest.mark.numeric
@pytest.mark.parametrize("family", FAMILIES)
def test_every_row_is_computed_with_its_strategy_s_adapter(families, family, tmp_path) -> None:
    """The reference is the base model with one adapter alone, as peft loads it."""
    rewriter = adapted(families[family], family)
    rewriter.save(tmp_path, NAMES, {})
    inputs = batch(rewriter)
    encoded = [ids for ids in rewriter.encode([rewriter.task(*row) for row in ROWS]) if ids]
    with torch.inference_mode():
        together_PA = rewriter(*inputs, OF_ROWS)
    texts = rewriter.write(encoded, OF_ROWS)
    assert len(set(texts)) > 1
    for row, name in enumerate(OF_ROWS):
        alone = RewriterModel.build(str(families[family]), LENGTHS[family], 8, POOL).eval()
        alone.load_adapters(tmp_path / "adapter" / name, [])
        with torch.inference_mode():
            alone_PA = alone(*inputs)
        tolerance = model_tolerance(float(alone_PA.abs().max()))
        torch.testing.assert_close(together_PA[row], alone_PA[row], rtol=0, atol=tolerance)
        assert alone.write([encoded[row]]) == [texts[row]]
        others = [other for other in range(len(ROWS)) if OF_ROWS[other] != name]
        assert (together_PA[others] - alone_PA[others]).abs().max() > 0.01


@pytest.mark.parametrize("family", FAMILIES)
def test_rows_of_a_strategy_give_its_adapter_alone_a_gradient(families, family) -> None:
    rewriter = adapted(families[family], family).train()
    trained = {name for name, parameter in rewriter.named_parameters() if parameter.requires_grad}
    assert {name for name in NAMES if any(f".{name}." in each for each in trained)} == set(NAMES)
    assert all(".lora_" in each for each in trained)
    (-rewriter(*batch(rewriter), OF_ROWS)[[0, 2]].sum()).backward()
    for name in NAMES:
        gradients = [parameter.grad for parameter in adapter_parameters(rewriter.network, name)]
        assert len(gradients) > 10
        largest = max(float(each.abs().max()) for each in gradients if each is not None)
        assert (largest > 0) == (name == "cce")
    rewriter.zero_grad()
    ids_PT, attention_PT, labels_PA = batch(rewriter)
    (-rewriter(ids_PT[[1]], attention_PT[[1]], labels_PA[[1]], ["gqr"]).sum()).backward()
    without = [p.grad for name in ("cce", "decomposition") for p in adapter_parameters(rewriter.network, name)]
    assert all(each is None for each in without)


@pytest.mark.numeric
@pytest.mark.parametrize("family", FAMILIES)
def test_the_serving_folder_answers_alike(families, family, tmp_path) -> None:
    rewriter = adapted(families[family], family)
    rewriter.save(tmp_path, NAMES, {})
    serving = TrainedRewriter(tmp_path, "cpu", "fp32")
    assert serving.strategies == NAMES
    with torch.inference_mode():
        assert torch.equal(serving.model(*batch(rewriter), OF_ROWS), rewriter(*batch(rewriter), OF_ROWS))
    questions = [Question("1", "who is name3 in the city"), Question("2", "is name4", history=("who is name5",))]
    written = rewriter.rewrite([(each.text, each.history) for each in questions], NAMES)
    for made, texts, asked in zip(serving.rewrite(questions, NAMES), written, questions, strict=True):
        assert made.queries == {name: rewriter.queries(texts[name], name) or (asked.text,) for name in NAMES}
    manifest = read_rewriter_manifest(tmp_path)
    assert manifest["adapter"]["strategies"] == list(NAMES)
    base, saved = load_file(families[family] / "model.safetensors"), load_file(tmp_path / "rewriter/model.safetensors")
    assert saved.keys() == base.keys()
    assert all(torch.equal(saved[name], base[name]) for name in base)


@pytest.mark.numeric
def test_peft_merges_one_strategy_s_adapter_into_the_exported_base(families, tmp_path) -> None:
    """As docs/train_rewriter.md shows it."""
    rewriter = adapted(families["t5"], "t5")
    rewriter.save(tmp_path, NAMES, {})
    base = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "rewriter")
    PeftModel.from_pretrained(base, tmp_path / "adapter/cce").merge_and_unload().save_pretrained(tmp_path / "cce")
    rewriter.lm.tokenizer.save_pretrained(tmp_path / "cce")
    merged = RewriterModel.build(str(tmp_path / "cce"), 40, 8, POOL).eval()
    inputs = batch(rewriter)
    with torch.inference_mode():
        here_PA, merged_PA = rewriter(*inputs, OF_ROWS), merged(*inputs)
    torch.testing.assert_close(
        merged_PA[[0, 2]], here_PA[[0, 2]], rtol=0, atol=model_tolerance(float(here_PA.abs().max()))
    )
