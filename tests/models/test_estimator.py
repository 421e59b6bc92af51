"""Scorers of (question, passage): relevance estimators and any cross-encoder beside transformers."""

import itertools
import math

import pytest
import torch
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, BertForSequenceClassification

from common.records import Passage, passage_text
from models.cross_encoder import RelevanceEstimator, load_scorer
from models.length_batching import pad
from models.rerag.model import ReRagModel
from models.rerag.parts import load_generator
from tests.conftest import ENCODERS
from tests.helpers.mt5 import save_mt5
from tests.helpers.rerag_world import HAMLET, PAIRS, QUESTION, estimator, reading_batch, write_serving
from tests.helpers.tolerances import assert_gradients_close, decide, fp32_tolerance, model_close, model_tolerance
from trainers.rerag_losses import label_loss

pytestmark = pytest.mark.numeric


@pytest.mark.parametrize(("family", "words"), [("t5", ("true", "false")), ("mt5", ("yes", "no"))])
def test_t5_scores_are_logit_differences_of_plain_transformers(checkpoints, tmp_path, family, words) -> None:
    folder = checkpoints["t5"] if family == "t5" else save_mt5(tmp_path / "mt5")
    re = RelevanceEstimator.build(str(folder), 64, label_words=words).eval()
    plain, tokenizer = AutoModelForSeq2SeqLM.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    assert torch.equal(plain.lm_head.weight, plain.shared.weight) == (family == "t5")
    true, false = (tokenizer(word, add_special_tokens=False).input_ids[0] for word in words)
    scores = re.scores(PAIRS, tokens_per_batch=100)
    for (question, passage), score in zip(PAIRS, scores, strict=True):
        text = f"question: {question} title: {passage.title} context: {passage.text}"
        batch = tokenizer([text], return_tensors="pt")
        with torch.inference_mode():
            logits = plain(**batch, decoder_input_ids=torch.zeros(1, 1).long()).logits[0, 0].double()
            relevance = re(batch["input_ids"], batch["attention_mask"])
        assert score == model_close((logits[true] - logits[false]).item(), logits.abs().max().item())
        assert relevance.score_P.dtype == torch.float32
        p = logits.softmax(0)
        score_BN, other_BN, yes = relevance.score_P[None], relevance.other_logit_P[None], torch.tensor([[True]])
        spoken = label_loss(score_BN, yes, yes, "vocabulary", other_logit_BN=other_BN)
        assert spoken.item() == model_close(-p[true].log().item(), logits.abs().max().item())
        assert relevance.other_logit_P.sigmoid().item() == model_close(1 - p[true].item() - p[false].item())


def test_a_small_other_mass_keeps_its_digits(checkpoints) -> None:
    """A trained estimator says almost nothing else: 1 - P(true) - P(false) in fp32 would be rounding, even negative."""
    re = estimator(checkpoints)
    ids, attention = re.encode.pad(re.encode([(QUESTION, [HAMLET])]))
    with torch.no_grad():
        inputs = {"input_ids": ids, "attention_mask": attention, "decoder_input_ids": torch.zeros(1, 1).long()}
        direction = re.network(**inputs, output_hidden_states=True).decoder_hidden_states[-1][0, 0]
        re.network.lm_head.weight[[re.true_id, re.false_id]] += 20 * direction / direction.norm()
        logits = re.network(**inputs).logits[0, 0].double()
    others = torch.ones(len(logits), dtype=torch.bool)
    others[[re.true_id, re.false_id]] = False
    expected = logits.softmax(0)[others].sum().item()
    assert expected < 1e-5
    mass = re(ids, attention).other_logit_P.sigmoid()
    # a probability's relative error is its logit's absolute one
    assert mass.item() == pytest.approx(expected, rel=model_tolerance(logits.abs().max().item()))
    mass.sum().backward()
    assert all(p.grad.isfinite().all() for p in re.parameters() if p.grad is not None)


def test_logits_are_fp32_under_autocast(checkpoints) -> None:
    """Rounded to bf16, logits of this size are multiples of 1/16 and alike contexts tie."""
    re = estimator(checkpoints)
    states = []
    re.network.decoder.register_forward_hook(lambda _module, _args, output: states.append(output[0][:, 0]))
    with torch.inference_mode():
        re.network.lm_head.weight[[re.true_id, re.false_id]] *= 16
        with torch.autocast("cpu", dtype=torch.bfloat16):
            relevance = re(*re.encode.pad(re.encode([(question, [passage]) for question, passage in PAIRS])))
        logits = states[0].double() @ re.network.lm_head.weight.double().T / math.sqrt(32)
        assert logits.abs().max() > 8
        expected = logits[:, re.true_id] - logits[:, re.false_id]
    assert relevance.score_P.dtype == torch.float32
    # fp32 logits: products of bf16 states, which are exact; bf16 ones would be off by up to 1/32
    atol = fp32_tolerance(64, logits.abs().max().item())
    assert atol < 1e-3
    torch.testing.assert_close(relevance.score_P.double(), expected, atol=atol, rtol=0)


@pytest.mark.parametrize("family", ["t5", "bert", "big_bird", "roberta", "longformer", *ENCODERS])
def test_scores_depend_on_neither_company_nor_padding_nor_batches(checkpoints, family) -> None:
    re = estimator(checkpoints, family)
    scores = re.scores(PAIRS)
    nearest = min(b - a for a, b in itertools.pairwise(sorted(scores)))
    assert nearest > model_tolerance(max(map(abs, scores)))  # else a mixed-up order would pass
    assert [re.scores([pair])[0] for pair in PAIRS] == model_close(scores)
    assert re.scores(PAIRS[::-1], tokens_per_batch=1)[::-1] == model_close(scores)
    ids, attention = pad(re.encode([(q, [p]) for q, p in PAIRS]), re.encode.tokenizer.pad_token_id, 64, 64)
    assert re(ids, attention).score_P.tolist() == model_close(scores)
    assert re.scores([]) == []


@pytest.mark.parametrize("family", ["t5", "bert"])
def test_recomputed_activations_give_the_same_gradients(checkpoints, family) -> None:
    def gradients(recompute: bool) -> dict[str, torch.Tensor]:
        torch.manual_seed(0)
        re = RelevanceEstimator.build(str(checkpoints[family]), 64, "fid", 0.0, recompute).train()
        losses = [re(*re.encode.pad(re.encode([(q, [p]) for q, p in PAIRS]))).score_P.sum()]
        if family == "t5":
            reader = load_generator(str(checkpoints["t5"]), 64, "fid", "", 0.0, recompute).train()
            losses.append(reader(*reading_batch(reader), reader.labels(["name1"] * len(PAIRS))).sum())
            re.reader = reader
        sum(losses, torch.zeros(())).backward()
        return {name: p.grad for name, p in re.named_parameters() if p.grad is not None}

    assert_gradients_close(gradients(True), gradients(False), len(PAIRS))


def test_an_encoder_only_estimator_is_cut_to_its_first_layers(checkpoints) -> None:
    whole = RelevanceEstimator.build(str(checkpoints["bert"]), 96).network.state_dict()
    cut = RelevanceEstimator.build(str(checkpoints["bert"]), 96, layers=1).network
    assert len(cut.bert.encoder.layer) == cut.config.num_hidden_layers == 1
    body = {name: value for name, value in cut.state_dict().items() if name.startswith("bert.")}
    assert all(torch.equal(value, whole[name]) for name, value in body.items())
    assert len(body) < len([name for name in whole if name.startswith("bert.")])


@pytest.mark.parametrize("labels", [1, 2])
def test_a_cross_encoder_scores_as_sentence_transformers_does(checkpoints, tmp_path, labels) -> None:
    from sentence_transformers import CrossEncoder

    torch.manual_seed(labels)
    network = BertForSequenceClassification.from_pretrained(checkpoints["bert"], num_labels=labels)
    decide(network, 8)
    network.save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(checkpoints["bert"]).save_pretrained(tmp_path)
    pairs = [*PAIRS, (QUESTION, Passage.of("", HAMLET.text))]
    scores = load_scorer(tmp_path, "cpu", "fp32").scores(pairs)
    texts = [(question, passage_text(passage)) for question, passage in pairs]
    plain = {"activation_fn": torch.nn.Identity(), "show_progress_bar": False}
    reference = CrossEncoder(str(tmp_path), device="cpu").predict(texts, **plain)
    expected = reference[:, 1] - reference[:, 0] if labels == 2 else reference
    assert scores == model_close(expected.tolist())
    assert max(scores) - min(scores) > 0.1


def test_a_serving_folder_s_estimator_is_loaded_without_its_generator(tmp_path, checkpoints) -> None:
    folder = write_serving(checkpoints["t5"], tmp_path / "both")
    whole = ReRagModel.load(folder, "cpu").estimator
    assert load_scorer(folder, "cpu").scores(PAIRS) == model_close(whole.scores(PAIRS))
