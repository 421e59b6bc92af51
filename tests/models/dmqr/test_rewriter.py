"""Generative rewriters: the loss by hand, what is trained, and that adapter, merged model and trained module agree."""

import math
import shutil
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tokenizers import normalizers
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    PreTrainedTokenizerFast,
)

from models.dmqr.rewriter import RewriterModel, read_rewriter_manifest
from models.dmqr.strategies import POOL
from models.length_batching import IGNORE
from models.lora import Lora, add_adapter
from models.pretrained import base_model
from tests.helpers.tolerances import model_tolerance, move_adapters

FAMILIES = ("t5", "chat", "plain")
LENGTHS = {"t5": 40, "chat": 100, "plain": 100}
ROWS = (("where was name3 born", "gqr", ("who is name2", "name3")), ("who is it", "decomposition", ()))


def build(folder: Path, family: str) -> RewriterModel:
    return RewriterModel.build(str(folder), LENGTHS[family], 20, POOL)


def adapted(folder: Path, family: str, trained: bool = True) -> RewriterModel:
    """A rewriter with an adapter, which with `trained` is not zero."""
    torch.manual_seed(0)
    rewriter = build(folder, family)
    add_adapter(rewriter.network, str(folder), Lora(4, 8))
    if trained:
        move_adapters(rewriter, 0.05)
    return rewriter.eval()


def batch(rewriter: RewriterModel, rewrites: tuple[str, ...] = ("name3", "who ; where")) -> tuple[torch.Tensor, ...]:
    inputs = rewriter.encode([rewriter.task(*row) for row in ROWS])
    assert all(inputs)
    return rewriter.batch([each for each in inputs if each], rewriter.encode.targets(rewrites))


def test_a_folder_whose_tokenizer_reads_lower_case_keeps_it(families, tmp_path) -> None:
    """As those of small T5s that an earlier release trained to read every name in lower case."""
    older = Path(shutil.copytree(families["t5"], tmp_path / "older"))
    own = AutoTokenizer.from_pretrained(older)
    backend = own.backend_tokenizer
    backend.normalizer = normalizers.Lowercase()
    PreTrainedTokenizerFast(tokenizer_object=backend, **own.special_tokens_map).save_pretrained(older)
    build(older, "t5").save(tmp_path / "serving", ["gqr"], {})
    served = RewriterModel.load(tmp_path / "serving", "cpu")
    small, large = served.encode([served.task(text, "gqr") for text in ("who is name3", "WHO is NAME3")])
    assert small == large
    assert served.lm.tokenizer.unk_token_id not in small[-5:]


@pytest.mark.parametrize("family", FAMILIES)
def test_only_the_rewrite_is_learned(families, family) -> None:
    rewriter = build(families[family], family)
    targets = rewriter.encode.targets(("name3", "who ; where"))
    labels_PA = batch(rewriter)[2]
    assert [[label for label in row if label != IGNORE] for row in labels_PA.tolist()] == targets


def test_the_loss_of_a_uniform_t5_by_hand(families) -> None:
    """Logits of 0: every token costs ln V, V the size of the vocabulary."""
    rewriter = build(families["t5"], "t5").eval()
    torch.nn.init.zeros_(rewriter.network.get_output_embeddings().weight)
    V = rewriter.network.config.vocab_size
    logp_PA = rewriter(*batch(rewriter))
    expected = [[-math.log(V)] * 2 + [0.0] * 2, [-math.log(V)] * 4]  # "name3 </s>" and "who ; where </s>"
    assert logp_PA.shape == (2, 4)
    torch.testing.assert_close(logp_PA, torch.tensor(expected), atol=1e-5, rtol=0)


def test_the_loss_of_a_uniform_causal_lm_by_hand(families) -> None:
    """As above; its two end tokens are one event, which costs ln(V / 2).

    Rows end together: the shorter one starts later.
    """
    rewriter = build(families["chat"], "chat").eval()
    torch.nn.init.zeros_(rewriter.network.get_output_embeddings().weight)
    V = rewriter.network.config.vocab_size
    short, long = (len(each) for each in rewriter.encode.targets(("a", "a b c d e")))
    logp_PA = rewriter(*batch(rewriter, ("a", "a b c d e")))
    rows = [[0.0] * (long - n) + [-math.log(V)] * (n - 1) + [-math.log(V / 2)] for n in (short, long)]
    torch.testing.assert_close(logp_PA, torch.tensor(rows), atol=1e-5, rtol=0)


@pytest.mark.parametrize("family", FAMILIES)
def test_an_adapter_changes_nothing_until_it_is_trained_and_gets_the_only_gradient(families, family) -> None:
    rewriter, base = adapted(families[family], family, trained=False), build(families[family], family).eval()
    inputs = batch(rewriter)
    torch.testing.assert_close(rewriter(*inputs), base(*inputs), rtol=0, atol=model_tolerance(10.0))
    (-rewriter(*inputs).sum()).backward()
    trained = {name for name, p in rewriter.named_parameters() if p.requires_grad}
    assert trained == {name for name, p in rewriter.named_parameters() if p.grad is not None}
    assert all("lora_" in name for name in trained)
    assert all(p.grad.abs().max() > 0 for n, p in rewriter.named_parameters() if "lora_B" in n and p.grad is not None)
    assert len(trained) > 10


@pytest.mark.numeric
@pytest.mark.parametrize("family", FAMILIES)
def test_adapter_and_merged_model_answer_as_the_trained_module(families, family, tmp_path) -> None:
    rewriter = adapted(families[family], family)
    inputs = batch(rewriter)
    rewriter.save(tmp_path, ["gqr", "decomposition"], base_model(str(families[family])))
    merged, base = RewriterModel.load(tmp_path, "cpu", "fp32"), build(families[family], family).eval()
    with torch.inference_mode():
        here = rewriter(*inputs)
        assert (base(*inputs) - here).abs().max() > 0.05  # the adapter matters
        base.load_adapters(tmp_path / "adapter", [])
        assert torch.equal(base(*inputs), here)
        assert (merged(*inputs) - here).abs().max() <= model_tolerance(float(here.abs().max()))
    tasks = [rewriter.encode([rewriter.task(*row)])[0] or [] for row in ROWS]
    assert merged.write(tasks) == rewriter.write(tasks)
    assert set(merged.strategies) == {"gqr", "decomposition"}
    assert merged.queries("a; b; a", "decomposition") == ("a", "b")
    assert merged.queries("a; b", "gqr") == ("a; b",)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_merged_folder_has_the_layout_of_its_base(families, family, tmp_path) -> None:
    """What transformers and, for a causal LM, vLLM load.

    The same weights by name, architecture, tokenizer and template.
    """
    rewriter = adapted(families[family], family)
    rewriter.save(tmp_path, ["gqr"], {}, "bfloat16")
    kind = AutoModelForSeq2SeqLM if family == "t5" else AutoModelForCausalLM
    network, found = kind.from_pretrained(tmp_path / "rewriter", output_loading_info=True)
    assert not any(found[name] for name in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    assert network.dtype == torch.bfloat16
    here, there = (AutoConfig.from_pretrained(f) for f in (tmp_path / "rewriter", families[family]))
    assert here.architectures == there.architectures
    written = load_file(tmp_path / "rewriter/model.safetensors")
    assert written.keys() == load_file(families[family] / "model.safetensors").keys()
    assert {value.dtype for value in written.values()} == {torch.bfloat16}
    ours, theirs = (AutoTokenizer.from_pretrained(f) for f in (tmp_path / "rewriter", families[family]))
    assert ours.chat_template == theirs.chat_template
    assert ours.get_vocab() == theirs.get_vocab()
    # merged in fp32, then cast
    merged = {name: value.bfloat16() for name, value in rewriter.network.state_dict().items()}
    name = next(name for name in merged if name.endswith("base_layer.weight"))
    layer = rewriter.network.get_submodule(name.removesuffix(".base_layer.weight"))
    expected = (layer.base_layer.weight + layer.get_delta_weight("default")).bfloat16()
    assert torch.equal(written[name.replace(".base_layer", "")], expected)


def test_a_base_is_known_by_its_weights(families, tmp_path) -> None:
    rewriter = adapted(families["t5"], "t5")
    base = base_model(str(families["t5"]))
    assert list(base["sha256"]) == ["model.safetensors"]
    rewriter.save(tmp_path, ["gqr"], base)
    manifest = read_rewriter_manifest(tmp_path)
    assert manifest["base"] == base
    assert manifest["adapter"]["rank"] == 4


def test_no_sequence_of_tokens_is_written_twice(families, tmp_path) -> None:
    """A random T5 repeats itself; the limit is kept by the serving folder, and is none of a causal LM's."""
    free = build(families["t5"], "t5").eval()
    tasks = [ids for ids in free.encode([free.task(*row) for row in ROWS]) if ids]
    limited = RewriterModel.build(str(families["t5"]), 40, 20, POOL, no_repeat_ngram=2).eval()
    limited.save(tmp_path, ["gqr"], {})
    loaded = RewriterModel.load(tmp_path, "cpu", "fp32")
    written = limited.write(tasks)
    assert written == loaded.write(tasks)

    def repeats(text: str) -> bool:
        words = text.split()
        pairs = list(pairwise(words))
        return len(set(pairs)) < len(pairs)

    assert any(map(repeats, free.write(tasks)))
    assert not any(map(repeats, written))
