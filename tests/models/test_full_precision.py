"""Heads under bf16 autocast.

Their logits are fp32's, gradients flow, and weights, names and fp32 results stay the same.
"""

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from transformers import AutoModelForSeq2SeqLM, AutoModelForSequenceClassification, PreTrainedModel

from models.dmqr.rewriter import RewriterModel
from models.dmqr.strategies import POOL
from models.drrag.triple_classifier import TripleClassifier
from models.full_precision import FullPrecisionLinear, keep_heads_in_fp32
from models.length_batching import IGNORE
from tests.helpers.rerag_world import CROWD, PAIRS, estimator, generator, reading_batch
from tests.helpers.tolerances import fp32_tolerance

ENCODERS = ("bert", "big_bird", "roberta", "longformer")
TRIPLES = [(question, passage, CROWD[-row - 1]) for row, (question, passage) in enumerate(PAIRS)]


def bf16() -> torch.autocast:
    return torch.autocast("cpu", dtype=torch.bfloat16)


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
    trained = {name: p.grad for name, p in classifier.named_parameters() if ".classifier." in name}
    assert len(trained) >= 2
    for name, gradient in trained.items():
        assert gradient is not None, name
        assert gradient.dtype == torch.float32
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
    with (
        torch.no_grad()
    ):  # a later word, in no context, whose logit is larger by 2^-14: in bf16 equal, and the first one wins
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
