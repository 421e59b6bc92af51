"""Kernels, attention and heads of our own: results and gradients are those of transformers, in fp32 under bf16."""

import copy
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import AutoModel, AutoModelForSeq2SeqLM, AutoModelForSequenceClassification, PreTrainedModel
from transformers.activations import NewGELUActivation
from transformers.models.t5.modeling_t5 import T5LayerNorm

from models import sdpa
from models.bigbird.attention import fuse, sparsify
from models.cross_encoder import RelevanceEstimator
from models.dmqr.rewriter import RewriterModel
from models.dmqr.strategies import POOL
from models.drrag.triple_classifier import PART, TripleClassifier
from models.first_token import FirstTokenLayer, compute_first_token
from models.full_precision import FullPrecisionLinear, keep_heads_in_fp32
from models.fused_kernels import FusedNorm, fuse_kernels
from models.length_batching import IGNORE
from models.pretrained import load_seq2seq
from models.sdpa import train_fast_on_cpu
from tests.helpers.devices import cpu_and_gpu
from tests.helpers.rerag_world import CROWD, PAIRS, estimator, generator, reading_batch
from tests.helpers.tolerances import fp32_tolerance


def test_the_norm_is_that_of_t5() -> None:
    """The kernel of a GPU is torch's, which has the same operations for a CPU."""
    torch.manual_seed(0)
    plain = T5LayerNorm(16, eps=1e-6)
    torch.nn.init.normal_(plain.weight)
    states = torch.randn(3, 5, 16) * 30
    kernel = torch.nn.functional.rms_norm(states, (16,), plain.weight, plain.variance_epsilon)
    torch.testing.assert_close(kernel, plain(states), rtol=1e-5, atol=1e-5)
    assert torch.equal(FusedNorm(plain)(states), plain(states))


@cpu_and_gpu("networks with fused kernels compute as transformers' do")
@pytest.mark.parametrize(("name", "family"), [("t5", AutoModelForSeq2SeqLM), ("big_bird", AutoModel)])
def test_a_network_computes_the_same(name, family, device, checkpoints) -> None:
    load = partial(family.from_pretrained, checkpoints[name], dtype=torch.float32)
    plain, fused = (load().to(device).train(False) for _ in range(2))
    fuse_kernels(fused)
    fuse_kernels(fused)  # a second time changes nothing
    assert not any(isinstance(module, NewGELUActivation) for module in fused.modules())
    assert fused.state_dict().keys() == plain.state_dict().keys()
    ids = torch.arange(5, 29, device=device).view(2, 12) % plain.config.vocab_size
    answers = {"labels": ids[:, :4].contiguous()} if name == "t5" else {}
    outputs = [network(input_ids=ids, **answers) for network in (plain, fused)]
    states = [output.logits if name == "t5" else output.last_hidden_state for output in outputs]
    torch.testing.assert_close(states[1], states[0], rtol=1e-4, atol=1e-5)
    for each in states:
        each.square().mean().backward()
    for ours, theirs in zip(fused.parameters(), plain.parameters(), strict=True):
        if theirs.grad is not None:
            torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-3, atol=1e-5)


def ragged() -> tuple[Tensor, Tensor]:
    """Token ids of three rows, two of which are padded, and what is no padding."""
    torch.manual_seed(0)
    ids, attention = torch.randint(5, 20, (3, 9)), torch.ones(3, 9, dtype=torch.long)
    attention[0, 4:] = attention[2, 7:] = 0
    return ids, attention


def assert_gradients_near(ours: nn.Module, theirs: nn.Module, tolerance: float) -> None:
    """Relative to the norm of each weight's gradient; none at all is one of zeros."""
    for (name, one), other in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        found, given = (torch.zeros_like(each) if each.grad is None else each.grad for each in (one, other))
        assert (found - given).norm() <= tolerance * (1e-3 + given.norm()), name


def bf16(enabled: bool = True) -> torch.autocast:
    return torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled)


def test_attention_and_its_gradients_are_those_of_fp32() -> None:
    torch.manual_seed(0)
    halves = [torch.randn(2, 3, 5, 4).bfloat16().requires_grad_() for _ in range(3)]
    mask = torch.zeros(2, 1, 1, 5).masked_fill(torch.arange(5) > 2, torch.finfo(torch.float32).min)
    singles = [each.detach().float().requires_grad_() for each in halves]
    with bf16():
        attended = sdpa.attend(*halves, mask)
    expected = F.scaled_dot_product_attention(*singles, attn_mask=mask)
    assert attended.dtype is torch.bfloat16
    torch.testing.assert_close(attended, expected.bfloat16(), atol=0, rtol=0)
    attended.float().sum().backward()
    expected.sum().backward()
    for half, single in zip(halves, singles, strict=True):
        torch.testing.assert_close(half.grad, single.grad.bfloat16(), atol=0, rtol=0)


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_an_encoder_trains_with_it_and_is_saved_without_it(family, checkpoints, tmp_path, monkeypatch) -> None:
    used: list[torch.dtype] = []
    attend = F.scaled_dot_product_attention

    def recorded(query, *rest, **options):
        used.append(query.dtype)
        return attend(query, *rest, **options)

    monkeypatch.setattr(F, "scaled_dot_product_attention", recorded)
    estimator = RelevanceEstimator.build(str(checkpoints[family]), 32, dropout=0.0)
    ids, attention = torch.randint(5, 20, (2, 9)), torch.ones(2, 9, dtype=torch.long)
    with bf16():
        estimator(ids, attention).score_P.sum().backward()
        with torch.inference_mode():
            estimator(ids, attention)
    layers = estimator.network.config.num_hidden_layers
    assert used == [torch.float32] * layers + [torch.bfloat16] * layers
    estimator.save(tmp_path)
    assert AutoModelForSequenceClassification.from_pretrained(tmp_path).config._attn_implementation == "sdpa"


@pytest.mark.parametrize("half", [False, True])
def test_a_t5_trains_step_by_step_with_the_loss_and_the_gradients_of_transformers(
    half, checkpoints, tmp_path, monkeypatch
) -> None:
    ours, _ = load_seq2seq(str(checkpoints["t5"]), "generator", 0.0, False)
    theirs = AutoModelForSeq2SeqLM.from_pretrained(
        checkpoints["t5"], attn_implementation="sdpa", dropout_rate=0.0
    ).train()
    (ids, attention), labels = ragged(), torch.randint(5, 20, (3, 4))
    for network in (ours.train(), theirs):
        with bf16(half):
            network(input_ids=ids, attention_mask=attention, labels=labels).loss.backward()
    assert all(weight.grad is not None for weight in ours.parameters())
    assert_gradients_near(ours, theirs, 0.05 if half else 1e-5)

    def kernel(*_: object, **__: object) -> None:
        raise AssertionError("torch's attention was called")

    monkeypatch.setattr(F, "scaled_dot_product_attention", kernel)
    ours(input_ids=ids, attention_mask=attention, labels=labels)
    with torch.inference_mode(), pytest.raises(AssertionError):
        ours(input_ids=ids, attention_mask=attention, labels=labels)
    ours.save_pretrained(tmp_path)
    assert AutoModelForSeq2SeqLM.from_pretrained(tmp_path).config._attn_implementation == "sdpa"


def test_no_row_attends_to_what_is_hidden_whatever_the_form_of_the_mask() -> None:
    torch.manual_seed(0)
    query, key, value = (torch.randn(2, 3, 4, 5, requires_grad=True) for _ in range(3))
    bias, module = torch.randn(1, 3, 4, 4), torch.nn.Module().train()
    module.is_causal = True
    visible = torch.tensor([[True, True, True, False], [True, False, True, True]])[:, None, None]
    causal = torch.ones(4, 4, dtype=torch.bool).tril()
    for mask, allowed in (
        (visible, visible), (torch.zeros(2, 1, 1, 4).masked_fill(~visible, -torch.inf), visible),
        (visible & causal, visible & causal), (None, causal),
    ):  # fmt: skip
        attended, _ = sdpa._forward_with_bias(module, query, key, value, mask, 0.0, 1.0, bias)
        expected = F.scaled_dot_product_attention(
            query, key, value, bias.expand(2, 3, 4, 4).masked_fill(~allowed, -torch.inf), scale=1.0
        )
        torch.testing.assert_close(attended, expected.transpose(1, 2), atol=1e-5, rtol=1e-5)


def classifier(folder: Path, **options: Any) -> PreTrainedModel:
    """A sequence classifier of two labels with this project's attention; its new head is the same each time."""
    torch.manual_seed(0)
    network = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=2, **options)
    if network.config.model_type == "big_bird":
        network.bert.set_attention_type("original_full")
        fuse(network.bert)
    else:
        train_fast_on_cpu(network)
    return network


@pytest.mark.parametrize("family", ["bert", "roberta", "big_bird"])
@pytest.mark.parametrize("half", [False, True])
def test_scores_and_gradients_are_those_of_the_whole_layer(family, half, checkpoints) -> None:
    whole, first = classifier(checkpoints[family]).eval(), classifier(checkpoints[family]).eval()
    names = list(first.state_dict())
    compute_first_token(first)
    assert isinstance(first.base_model.encoder.layer[-1], FirstTokenLayer)
    assert list(first.state_dict()) == names
    (ids, attention), logits = ragged(), []
    for network in (whole, first):
        with bf16(half):
            logits.append(network(input_ids=ids, attention_mask=attention).logits)
        logits[-1].float().square().sum().backward()
    torch.testing.assert_close(*logits, atol=2e-2 if half else 1e-6, rtol=0)
    assert_gradients_near(first, whole, 0.05 if half else 1e-5)


def test_other_tokens_of_the_last_layer_are_not_computed(checkpoints) -> None:
    estimator = RelevanceEstimator.build(str(checkpoints["bert"]), 32)
    widths: list[int] = []
    last = estimator.network.base_model.encoder.layer[-1]
    last.intermediate.register_forward_hook(lambda module, given, found: widths.append(found.shape[1]))
    estimator(torch.randint(5, 20, (2, 9)), torch.ones(2, 9, dtype=torch.long))
    assert widths == [1]


@pytest.mark.parametrize("family", ["bert", "big_bird", "longformer", "mpnet"])
def test_what_a_new_head_reads_is_centered_on_some_inputs(family, checkpoints, tmp_path) -> None:
    classifier = TripleClassifier.build(str(checkpoints[family]), 32, dropout=0.1).train()
    network, read = classifier.network, []
    before = {name: value.clone() for name, value in network.state_dict().items()}
    ids, attention = torch.randint(5, 20, (6, 9)), torch.ones(6, 9, dtype=torch.long)
    classifier.center(ids, attention)
    assert classifier.new_head == (family in ("bert", "mpnet"))  # the other folders hold a head
    assert network.training
    assert [name for name, value in network.state_dict().items() if not value.equal(before[name])] == [
        f"{network.base_model_prefix}.encoder.layer.1.output.LayerNorm.bias"
    ]
    network.classifier.register_forward_pre_hook(lambda head, given: read.append(given[0][:, 0].detach()))
    classifier.eval()(ids, attention)
    assert read[0].mean(dim=0).abs().max() < 1e-6
    assert read[0].std() > 0.1
    classifier.save(tmp_path)
    assert not TripleClassifier.build(str(tmp_path / PART), 32).new_head  # a trained one is left as it is


TOKENS = 768  # above 704: at most so many are computed with full attention


@pytest.mark.parametrize("training", [False, True])
def test_bf16_is_near_fp32_and_trains(checkpoints, training) -> None:
    torch.manual_seed(0)
    classifier = TripleClassifier.build(str(checkpoints["bert"]), 96, "block_sparse", dropout=0.0).train(training)
    ids = torch.randint(5, 60, (2, TOKENS))
    attention = torch.ones_like(ids)
    attention[1, 500:] = 0
    states = []
    classifier.network.bert.register_forward_hook(lambda _module, _given, made: states.append(made[0].detach()))
    fp32 = classifier(ids, attention)
    with bf16():
        half = classifier(ids, attention)
    assert half.dtype == torch.float32
    assert not torch.equal(states[0], states[1].float())
    torch.testing.assert_close(states[1].float(), states[0], rtol=0, atol=0.1)  # of states that are normalized
    torch.testing.assert_close(half, fp32, rtol=0.05, atol=1e-3)
    half.sum().backward()
    query = classifier.network.bert.encoder.layer[0].attention.self.query.weight
    assert query.grad.abs().sum() > 0


def test_block_sparse_attention_in_fp32_is_that_of_transformers(checkpoints) -> None:
    load = partial(AutoModel.from_pretrained, checkpoints["big_bird"], attention_type="block_sparse")
    plain, ours = load().eval(), load().eval()
    torch.manual_seed(0)
    table, ids = torch.randn(TOKENS, 32), torch.randint(5, 60, (2, TOKENS))
    for model in (plain, ours):
        model.embeddings.position_embeddings.weight.data = table
        model.embeddings.register_buffer("position_ids", torch.arange(TOKENS)[None], persistent=False)
        model.embeddings.register_buffer("token_type_ids", torch.zeros(1, TOKENS, dtype=torch.long), persistent=False)
    sparsify(ours)
    assert ours.state_dict().keys() == plain.state_dict().keys()
    with torch.inference_mode():
        assert torch.equal(ours(ids).last_hidden_state, plain(ids).last_hidden_state)
    assert ours.attention_type == plain.attention_type == "block_sparse"


ENCODERS = ("bert", "big_bird", "roberta", "longformer")
TRIPLES = [(question, passage, CROWD[-row - 1]) for row, (question, passage) in enumerate(PAIRS)]


def assert_fp32(scores: Tensor, expected: Tensor) -> None:
    """Scores have the resolution of fp32.

    They differ from double precision by rounding, and bf16 could not tell them apart.
    """
    assert scores.dtype == torch.float32
    magnitude = expected.abs().max().item()
    torch.testing.assert_close(scores.double(), expected, rtol=0, atol=fp32_tolerance(128, magnitude))
    assert (scores.bfloat16().float() - scores).abs().max() > 2**-12 * magnitude
    assert len(set(scores.tolist())) == len(scores)


def classification_head(network: PreTrainedModel) -> list[nn.Module]:
    return [network.bert.pooler, network.classifier] if network.config.model_type == "bert" else [network.classifier]


def scores_and_head_in_double(network: PreTrainedModel, score: Callable[[], Tensor]) -> tuple[Tensor, Tensor]:
    """Scores under autocast, and logits that the head in double precision makes of the same encoder states."""
    head, states = classification_head(network), []
    handle = head[0].register_forward_pre_hook(lambda _module, given: states.append(given[0].detach()))
    with bf16():
        scores = score()
    handle.remove()
    logits = states[0].double()
    with torch.no_grad():
        for module in head:
            logits = copy.deepcopy(module).double()(logits)
    return scores, logits


@pytest.mark.parametrize("family", ENCODERS)
def test_log_odds_of_triples_are_fp32_and_train_every_weight(checkpoints, family) -> None:
    torch.manual_seed(0)
    classifier = TripleClassifier.build(str(checkpoints[family]), 96).eval()
    batch = classifier.pad([classifier.encode(*triple) for triple in TRIPLES])
    scores, logits = scores_and_head_in_double(classifier.network, lambda: classifier(*batch))
    assert_fp32(scores, logits[:, 1] - logits[:, 0])
    with bf16():
        classifier(*batch).sum().backward()
    trained = [p.grad for name, p in classifier.named_parameters() if ".classifier." in name]
    assert len(trained) >= 2
    assert all(gradient is not None and gradient.dtype == torch.float32 for gradient in trained)
    assert classifier.network.base_model.embeddings.word_embeddings.weight.grad.abs().sum() > 0


@pytest.mark.parametrize("family", ["bert", "big_bird", "roberta"])
def test_relevance_logits_of_encoder_only_models_are_fp32(checkpoints, family) -> None:
    re = estimator(checkpoints, family)
    batch = re.encode.pad(re.encode([(question, [passage]) for question, passage in PAIRS]))
    scores, logits = scores_and_head_in_double(re.network, lambda: re(*batch).score_P)
    assert_fp32(scores, logits[:, 0] if logits.shape[1] == 1 else logits[:, 1] - logits[:, 0])
    scores.sum().backward()
    assert all(p.grad is not None for p in re.network.classifier.parameters())


def decoder_states(network: PreTrainedModel) -> list[Tensor]:
    """Receives the inputs of the LM head."""
    states: list[Tensor] = []
    network.get_output_embeddings().register_forward_pre_hook(lambda _module, given: states.append(given[0].detach()))
    return states


def nll_in_double(states_PAH: Tensor, network: PreTrainedModel, labels_PA: Tensor) -> Tensor:
    logits_PAV = states_PAH.double() @ network.get_output_embeddings().weight.detach().double().T
    logp_PA = logits_PAV.log_softmax(-1).gather(2, labels_PA.clamp(min=0)[:, :, None])[:, :, 0]
    return -logp_PA.masked_fill(labels_PA == IGNORE, 0.0)


def test_answer_probabilities_are_fp32(checkpoints) -> None:
    reader = generator(checkpoints)
    states = decoder_states(reader.network)
    labels = reader.labels(["name3", "the city of name4", "", "no"] * 3)
    with bf16():
        logp = reader(*reading_batch(reader), labels)
    assert_fp32(logp, -nll_in_double(states[0], reader.network, labels).sum(dim=1))
    logp.sum().backward()
    assert {p.grad.dtype for p in reader.parameters()} == {torch.float32}


def test_tokens_of_greedy_answers_are_chosen_in_fp32(checkpoints) -> None:
    reader = generator(checkpoints)
    encoded, tokenizer = reader.encode_contexts(*reading_batch(reader)), reader.encode.tokenizer
    with bf16():
        written = reader.write(encoded, 1)
    word = next(text for text in written if text)
    with torch.no_grad():  # a later word, in no context, whose logit is larger by 2^-14: in bf16 the first one wins
        table = reader.network.get_output_embeddings().weight
        table[tokenizer.convert_tokens_to_ids("name30")] = table[tokenizer.convert_tokens_to_ids(word)] * (1 + 2**-14)
    with bf16():
        chosen = reader.write(encoded, 1)
    assert chosen == ["name30" if text == word else text for text in written]


def test_the_loss_of_a_rewriter_is_fp32(checkpoints) -> None:
    rewriter = RewriterModel.build(str(checkpoints["t5"]), 40, 20, POOL).eval()
    states = decoder_states(rewriter.network)
    inputs = rewriter.encode([rewriter.task(question, "gqr") for question, _ in PAIRS])
    batch = rewriter.batch(inputs, rewriter.encode.targets(["name3 the city", "no"] * (len(PAIRS) // 2)))
    with bf16():
        logp = rewriter(*batch)
    assert_fp32(-logp.sum(dim=1), nll_in_double(states[0], rewriter.network, batch[2]).sum(dim=1))
    logp.sum().backward()
    assert all(p.grad is not None and p.grad.dtype == torch.float32 for p in rewriter.network.parameters())


@pytest.mark.parametrize("family", ["t5", *ENCODERS])
def test_in_fp32_nothing_changes(checkpoints, family) -> None:
    kind = AutoModelForSeq2SeqLM if family == "t5" else AutoModelForSequenceClassification
    torch.manual_seed(0)
    plain = kind.from_pretrained(checkpoints[family]).eval()
    kept = copy.deepcopy(plain)
    keep_heads_in_fp32(kept)
    keep_heads_in_fp32(kept)  # a second call finds nothing to do
    assert any(isinstance(module, FullPrecisionLinear) for module in kept.modules())
    assert not any(type(module) is nn.Linear for name, module in kept.named_modules() if "classifier" in name)
    assert kept.state_dict().keys() == plain.state_dict().keys()
    ids = torch.arange(5, 45).reshape(2, 20)
    inputs = {"input_ids": ids, **({"decoder_input_ids": ids[:, :4]} if family == "t5" else {})}
    assert torch.equal(kept(**inputs).logits, plain(**inputs).logits)
    kept(**inputs).logits.sum().backward()
    plain(**inputs).logits.sum().backward()
    for (name, ours), theirs in zip(kept.named_parameters(), plain.parameters(), strict=True):
        assert (ours.grad is None) == (theirs.grad is None), name
        assert ours.grad is None or torch.equal(ours.grad, theirs.grad), name
