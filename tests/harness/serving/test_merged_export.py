"""Merged exports: each adapter in its base, as the adapter computes, in whole folders of transformers."""

import shutil
from pathlib import Path

import pytest
import torch
from huggingface_hub import ModelCard
from sentence_transformers import CrossEncoder
from tokenizers import processors
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from common.errors import ArtifactError, UserError
from common.files import digests
from common.records import Passage
from harness.commands.export import export
from harness.serving.merged_export import CROSS_ENCODER_NATS
from models.causal_part import load_causal
from models.cross_encoder import RelevanceEstimator, load_scorer
from models.dmqr.rewriter import RewriterModel
from models.dmqr.strategies import POOL
from models.lora import Lora, add_adapter
from models.pretrained import base_model
from models.rerag.model import ReRagModel
from models.rerag.parts import load_generator
from models.serving_manifest import write_manifest
from tests.helpers.causal_parts import LABEL_WORDS, QUESTIONS, ROWS, pair
from tests.helpers.tiny_lm import PLACES, SPECIALS
from tests.helpers.tiny_runs import run_card
from tests.helpers.tolerances import model_close, move_adapters
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


@pytest.mark.parametrize("family", ["chat", "plain"])  # a Qwen2, whose tokenizer AutoTokenizer makes anew; a Qwen3
def test_a_causal_estimator_is_a_cross_encoder_and_training_reads_it_as_before(
    family: str, chat_lm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = Path(shutil.copytree(chat_lm, tmp_path / "base"))
    if family == "plain":  # as a base model: no template, and a token before every text
        tokenizer = AutoTokenizer.from_pretrained(base)
        backend, first = tokenizer.backend_tokenizer, SPECIALS[1]
        special = [(first, tokenizer.convert_tokens_to_ids(first))]
        backend.post_processor = processors.TemplateProcessing(single=f"{first} $A", special_tokens=special)
        names = {"bos_token": first, "eos_token": tokenizer.eos_token, "pad_token": tokenizer.pad_token}
        PreTrainedTokenizerFast(tokenizer_object=backend, **names).save_pretrained(base)
        (base / "chat_template.jinja").unlink()
        options = Qwen2Config.from_pretrained(base).to_dict()
        for name in ("model_type", "architectures"):
            options.pop(name)
        config = Qwen3Config(**options, head_dim=16)
        Qwen3ForCausalLM(config).save_pretrained(base)
    torch.manual_seed(2)
    lm = load_causal(str(base), "estimator", lora=Lora(4), adapters=("estimator",))
    move_adapters(lm.network, 0.2)
    estimator = RelevanceEstimator.of_lm(lm, 160, LABEL_WORDS)
    serving, out = tmp_path / "serving", tmp_path / "out"
    ReRagModel.of(estimator.eval(), None, {}, 8).save(serving)
    before = digests(serving)
    export(serving, out, "merged")
    assert digests(serving) == before
    assert (load_scorer(serving, "cpu").encode.format, (serving / "modules.json").exists()) == (
        f"{family}_relevance", False
    )  # fmt: skip
    fits = [(QUESTIONS[n % 4], f"{place} ." * (n % 3) + f"It is {n}.") for n, place in enumerate(PLACES[:7])]
    ours = estimator.scores([(question, Passage.of("", text)) for question, text in fits])
    assert max(ours) - min(ours) > 1000 * CROSS_ENCODER_NATS
    model = CrossEncoder(str(out / "estimator"))
    assert model.predict(fits).tolist() == pytest.approx(ours, abs=CROSS_ENCODER_NATS)
    ids = model[0].preprocess(fits)["input_ids"]
    assert (
        ids[0][-len(estimator.encode([(fits[0][0], [Passage.of("", fits[0][1])])])[0]) :].tolist()
        == (estimator.encode([(fits[0][0], [Passage.of("", fits[0][1])])])[0])
    )
    question, cut = QUESTIONS[0], "The end ." * 200
    (read,) = model[0].preprocess([(question, cut)])["input_ids"]
    assert len(read) == estimator.encode.max_tokens
    assert f"The end .\nQuestion: {question}\nRelevant:" in model.tokenizer.decode(read)

    again = RelevanceEstimator.build(str(out / "estimator"), 160, label_words=LABEL_WORDS).eval()
    assert again.encode.format == f"{family}_relevance"
    own = [(question, Passage.of("", text)) for question, text in [*fits, (question, cut)]]
    assert again.scores(own) == model_close(estimator.scores(own), 20)

    card, found = run_card(out, monkeypatch)
    assert ("vllm serve" in card.text) == (family == "plain")
    theirs = [Passage.of(*text.split(": ", 1)) for text in found["texts"]]
    expected = estimator.scores([(found["question"], passage) for passage in theirs])
    assert found["scores"].tolist() == pytest.approx(expected, abs=CROSS_ENCODER_NATS)


def test_positions_that_padding_moves_give_no_modules_which_is_said(
    plain_lm: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    estimator, _ = pair(plain_lm)
    ReRagModel.of(estimator.eval(), None, {}, 8).save(tmp_path / "serving")
    export(tmp_path / "serving", tmp_path / "out", "merged")
    assert "estimator: no modules.json for CrossEncoder" in capsys.readouterr().err
    assert not (tmp_path / "out/estimator/modules.json").exists()


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
