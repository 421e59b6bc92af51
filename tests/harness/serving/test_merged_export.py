"""Merged exports: each adapter in its base, as the adapter computes, in whole folders of transformers."""

from pathlib import Path

import pytest
import torch
from huggingface_hub import ModelCard
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

from common.errors import ArtifactError, UserError
from common.files import digests
from harness.commands.export import export
from models.cross_encoder import RelevanceEstimator
from models.dmqr.rewriter import RewriterModel
from models.dmqr.strategies import POOL
from models.lora import Lora, add_adapter
from models.pretrained import base_model
from models.rerag.model import ReRagModel
from models.rerag.parts import load_generator
from models.serving_manifest import write_manifest
from tests.helpers.causal_parts import LABEL_WORDS, ROWS, pair
from tests.helpers.tolerances import model_close
from trainers.rerag import ReRagTrainer

pytestmark = pytest.mark.numeric


def rewriter(folder: Path, own: bool) -> RewriterModel:
    """With adapters that differ from zero, one or one each of gqr and par."""
    torch.manual_seed(0)
    made = RewriterModel.build(str(folder), 60, 20, POOL)
    if own:
        made.add_adapters(["gqr", "par"], str(folder), Lora(4, 8))
    else:
        add_adapter(made.network, str(folder), Lora(4, 8))
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            if "lora_B" in name:
                parameter.normal_(0, 0.05)
    return made.eval()


@pytest.mark.parametrize("family", ["t5", "plain"])
def test_each_adapter_becomes_a_whole_model(
    family: str, checkpoints: dict[str, Path], plain_lm: Path, tmp_path: Path
) -> None:
    base, serving, out = {"t5": checkpoints["t5"], "plain": plain_lm}[family], tmp_path / "serving", tmp_path / "out"
    made = rewriter(base, own=True)
    made.save(serving, ["gqr", "par"], base_model(str(base)))
    (serving / "README.md").write_text("---\nlicense: gemma\n---\nA card.\n")
    with pytest.raises(ArtifactError, match=r"allowed 0.0e.00: not written"):
        export(serving, out, "merged", 0.0)
    assert not out.exists()
    for _ in range(2):  # the second replaces the first
        export(serving, out, "merged")
    assert ModelCard.load(out / "README.md").data.license == "gemma"

    kind = AutoModelForSeq2SeqLM if family == "t5" else AutoModelForCausalLM
    encoded = made.encode([made.task("where was name3 born", "par")])
    inputs = made.batch(encoded, made.encode.targets(["name3"]))
    for name in ("gqr", "par"):
        whole = RewriterModel.build(str(out / name), 60, 20, POOL).eval()
        assert type(kind.from_pretrained(out / name)) is type(whole.network)
        assert AutoTokenizer.from_pretrained(out / name).get_vocab() == made.lm.tokenizer.get_vocab()
        with torch.inference_mode():
            expected, other = (
                made(*inputs, [each]).sum().item() for each in (name, {"gqr": "par", "par": "gqr"}[name])
            )
            assert whole(*inputs).sum().item() == model_close(expected)
            assert abs(expected - other) > 0.01


def test_the_adapters_of_rerag_become_two_models_that_training_starts_from(plain_lm: Path, tmp_path: Path) -> None:
    estimator, generator = pair(plain_lm)
    ReRagModel.of(estimator.eval(), generator.eval(), {}, 8).save(tmp_path / "serving")
    export(tmp_path / "serving", tmp_path / "out", "merged")
    alone = RelevanceEstimator.build(str(tmp_path / "out/estimator"), 64, label_words=LABEL_WORDS).eval()
    pairs = [(question, passage) for question, (passage,) in ROWS]
    assert alone.scores(pairs) == model_close(estimator.scores(pairs), 20)
    with pytest.raises(UserError, match=r"holds its generator as an adapter: .* --form merged"):
        ReRagTrainer(None, str(tmp_path / "serving")).load()
    assert ReRagTrainer(None, str(tmp_path / "out/generator"), max_tokens=64).load().generator is not None
    writer, sequences = load_generator(str(tmp_path / "out/generator"), 64).eval(), generator.encode(ROWS)
    answers = ["opal"] * len(ROWS)
    assert writer.logprobs(sequences, answers) == model_close(generator.logprobs(sequences, answers), 20)


def test_a_shared_adapter_is_merged_already_and_other_kinds_have_none(plain_lm: Path, tmp_path: Path) -> None:
    rewriter(plain_lm, own=False).save(tmp_path / "serving", ["gqr"], base_model(str(plain_lm)))
    export(tmp_path / "serving", tmp_path / "out", "merged")
    assert digests(tmp_path / "out/rewriter") == digests(tmp_path / "serving/rewriter")
    assert not (tmp_path / "out/adapter").exists()
    (tmp_path / "other").mkdir()
    write_manifest(tmp_path / "other", "triple_classifier", "text", 96)
    with pytest.raises(UserError, match=r"--form merged is for dmqr_rewriter, re_rag, and .*triple_classifier"):
        export(tmp_path / "other", tmp_path / "no", "merged")
    assert not (tmp_path / "no").exists()
