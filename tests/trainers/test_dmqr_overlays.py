"""The configs of pretrained rewriters.

A random model of each architecture trains with LoRA, merges, exports and reloads.
"""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import (
    AutoTokenizer,
    Qwen2Config,
    Qwen2ForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
)

import train
from common.errors import UserError
from common.records import Question
from harness.rewriters.trained import TrainedRewriter
from models.dmqr.rewriter import read_rewriter_manifest
from tests.conftest import save_t5_tokenizer
from tests.helpers.runs import ROOT
from tests.helpers.tiny_runs import use

DEPTH = 2  # layers; all widths are the published ones
BASE = ROOT / "configs/train/dmqr_rrr_hotpot.yaml"
SMALL = (
    *("--data.validation_fraction", "0.2", "--data.generated_rewrites", "4", "--data.rewrites_per_step", "8"),
    *("--trainer.accelerator", "cpu", "--trainer.precision", "32-true", "--trainer.max_epochs", "1"),
    *("--model.optimizer.warmup_steps", "1", "--trainer.logger", "false", "--trainer.enable_progress_bar", "false"),
)


def save_flan_t5(folder: Path) -> None:
    """Two layers of Flan-T5-base, whose output layer is not its embedding."""
    folder.mkdir()
    config = T5Config(
        vocab_size=save_t5_tokenizer(folder), d_model=768, d_kv=64, d_ff=2048, num_layers=DEPTH,
        num_decoder_layers=DEPTH, num_heads=12, feed_forward_proj="gated-gelu", tie_word_embeddings=False,
        decoder_start_token_id=0,
    )  # fmt: skip
    torch.manual_seed(0)
    network = T5ForConditionalGeneration(config)
    network.lm_head.weight = torch.nn.Parameter(torch.randn_like(network.lm_head.weight) * 0.05)
    network.save_pretrained(folder)
    assert "lm_head.weight" in load_file(folder / "model.safetensors")


def save_qwen(folder: Path, chat_lm: Path) -> None:
    """Two layers of Qwen2.5-0.5B, with the tokenizer and the template of the tests' chat model."""
    tokenizer = AutoTokenizer.from_pretrained(chat_lm)
    config = Qwen2Config(
        vocab_size=len(tokenizer), hidden_size=896, intermediate_size=4864, num_hidden_layers=DEPTH,
        num_attention_heads=14, num_key_value_heads=2, max_position_embeddings=32768, tie_word_embeddings=True,
        rope_theta=1_000_000.0, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    torch.manual_seed(0)
    Qwen2ForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


@pytest.mark.numeric
@pytest.mark.whole_run
@pytest.mark.parametrize("overlay", ["dmqr_flan_t5_base", "dmqr_qwen_0_5b"])
def test_it_trains_with_lora_merges_exports_and_reloads(overlay, tmp_path, chat_lm, monkeypatch) -> None:
    model = tmp_path / "model"
    save_flan_t5(model) if "t5" in overlay else save_qwen(model, chat_lm)
    use(tmp_path, monkeypatch)
    Path("train.source").write_text("".join(f"who is name{n} of the film\n" for n in range(30)))
    Path("train.target").write_text("".join(f"name{n} ; film\n" for n in range(30)))
    configs = ["--config", str(BASE), "--config", str(ROOT / f"configs/train/overlays/{overlay}.yaml")]
    data = json.dumps([{"layout": "rrr", "path": "train.source"}])
    typed = ["fit", *configs, "--name", "run", "--model.pretrained", str(model), "--data.train", data, *SMALL]
    train.main(typed)

    serving = Path("checkpoints/run/serving")
    manifest = read_rewriter_manifest(serving)
    assert manifest["adapter"]["rank"] == 16
    assert manifest["base"]["name"] == str(model)
    assert list(manifest["strategies"]) == ["decomposition"]
    written, base = load_file(serving / "rewriter/model.safetensors"), load_file(model / "model.safetensors")
    assert written.keys() == base.keys()
    dtype = torch.float32 if "t5" in overlay else torch.bfloat16
    assert {value.dtype for value in written.values()} == {dtype}
    changed = {name for name in base if not torch.equal(written[name], base[name].to(dtype))}
    assert len(changed) > 10
    assert not any("lm_head" in name or "embed" in name or "shared" in name or "norm" in name for name in changed)

    rewriter = TrainedRewriter(serving, "cpu", "fp32")  # of which `fit` has compared adapter and merged weights
    (made,) = rewriter.rewrite([Question("1", "who is name3 of the film")], ["decomposition"])
    assert made.queries["decomposition"]
    Path("train.target").write_text("".join(f"film {n}\n" for n in range(30)))  # which no option names
    with pytest.raises(UserError, match=r"train\.target has changed since the run began"):
        train.main([*typed, "--resume", "auto"])
