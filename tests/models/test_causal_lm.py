"""A causal LM: replies and log-probabilities against transformers' own, against brute force, and in any batch."""

import math
import random
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    Gemma2Config,
    Gemma2ForCausalLM,
    GenerationConfig,
)

from models.causal_lm import CausalLanguageModel
from models.token_sampling import SampledTokens, TokenSampling, log_probabilities
from tests.helpers.causal_parts import alone
from tests.helpers.tiny_lm import cases
from tests.helpers.tolerances import model_close

LENGTHS = range(3, 60, 4)
COPY = "aten::copy_"


@pytest.fixture(scope="module", params=["chat", "plain"])
def model(request) -> CausalLanguageModel:
    return CausalLanguageModel.build(str(request.getfixturevalue(f"{request.param}_lm"))).eval()


def prompts_of(model: CausalLanguageModel) -> list[list[int]]:
    """Prompts of the task and of random tokens, of many lengths."""
    rng = random.Random(3)
    vocabulary = range(len(model.tokenizer) - 20, len(model.tokenizer))
    texts = [model.tokenizer(f"{user}\n")["input_ids"] for user, _ in cases(8, seed=5)]
    return texts + [rng.choices(vocabulary, k=length) for length in LENGTHS]


def same(one: Sequence[SampledTokens], other: Sequence[SampledTokens]) -> bool:
    return [(w.ids, w.ended) for w in one] == [(w.ids, w.ended) for w in other]


@torch.no_grad()
def test_scoring_is_brute_force(model) -> None:
    prompts, end = prompts_of(model), model.end_ids[0]
    rng = random.Random(1)
    replies = [rng.choices(range(3, len(model.tokenizer)), k=rng.randint(0, 7)) for _ in prompts]
    ended = [rng.random() < 0.5 for _ in prompts]
    rows = zip(prompts, replies, ended, strict=True)
    expected = [alone(model, prompt, [*reply, *[end] * last]) for prompt, reply, last in rows]
    assert model.logprobs(prompts, replies, ended) == [model_close(each) for each in expected]
    assert model.logprobs([], []) == []


@pytest.mark.parametrize("tokens_per_batch", [1, 100, 10**6])
def test_batch_order_and_padding_change_nothing(model, tokens_per_batch) -> None:
    prompts = prompts_of(model)
    order = random.Random(tokens_per_batch).sample(range(len(prompts)), len(prompts))
    limits = [2 + row % 5 for row in range(len(prompts))]
    alone = [model.write([prompt], [limit])[0] for prompt, limit in zip(prompts, limits, strict=True)]
    batched = model.write([prompts[row] for row in order], [limits[row] for row in order], None, tokens_per_batch)
    assert same(batched, [alone[row] for row in order])
    assert [w.logprob for w in batched] == [pytest.approx(alone[row].logprob, abs=1e-5) for row in order]
    scores = model.logprobs([prompts[row] for row in order], [[5, 6]] * len(order), True, tokens_per_batch)
    assert scores == [pytest.approx(model.logprobs([prompts[row]], [[5, 6]])[0], abs=1e-5) for row in order]


def with_ends(folder: Path, end_ids: list[int]) -> CausalLanguageModel:
    """A model whose replies end with these tokens."""
    model = CausalLanguageModel.build(str(folder)).eval()
    model.end_ids = end_ids
    model.network.generation_config = GenerationConfig(eos_token_id=end_ids, pad_token_id=model.pad_id)
    return model


@pytest.mark.parametrize(("family", "end"), [("chat", 2), ("plain", 0)])
def test_parity_with_transformers(family, end, families) -> None:
    model = with_ends(families[family], [end])
    prompts = prompts_of(model)
    for prompt, written in zip(prompts, model.write(prompts, [7] * len(prompts)), strict=True):
        made = model.network.generate(
            torch.tensor([prompt]), max_new_tokens=7, do_sample=False, output_scores=True, return_dict_in_generate=True,
            eos_token_id=[end], pad_token_id=end,
        )  # fmt: skip
        scores = model.network.compute_transition_scores(made.sequences, made.scores, normalize_logits=True)
        assert [*written.ids, *[end] * written.ended] == made.sequences[0, len(prompt) :].tolist()
        assert written.logprob == pytest.approx(scores[0].sum().item(), abs=1e-5)


def test_the_checkpoints_own_settings_of_generation_change_nothing(chat_lm, tmp_path) -> None:
    network, tokenizer = AutoModelForCausalLM.from_pretrained(chat_lm), AutoTokenizer.from_pretrained(chat_lm)
    ends = network.generation_config.eos_token_id
    network.generation_config = GenerationConfig(
        eos_token_id=ends, pad_token_id=0, do_sample=True, temperature=9.0, top_k=3, repetition_penalty=5.0,
        max_length=9
    )  # fmt: skip
    network.save_pretrained(tmp_path / "lm")
    tokenizer.save_pretrained(tmp_path / "lm")
    plain, configured = (CausalLanguageModel.build(str(folder)).eval() for folder in (chat_lm, tmp_path / "lm"))
    prompts = prompts_of(plain)
    one, other = (each.write(prompts, [9] * len(prompts)) for each in (plain, configured))
    assert one == other


def test_every_end_token_ends_a_reply_and_counts_as_the_end(chat_lm) -> None:
    model = CausalLanguageModel.build(str(chat_lm)).eval()
    assert model.end_ids == [2, 0]
    prompt = prompts_of(model)[0]
    model = with_ends(chat_lm, [2, model.write([prompt], [1])[0].ids[0]])
    (written,) = model.write([prompt], [5])
    assert (written.ids, written.ended) == ((), True)
    assert written.logprob == model_close(alone(model, prompt, [2]))


def test_samples_depend_on_seed_and_not_on_the_batch(model) -> None:
    prompts = prompts_of(model)
    choices = [
        TokenSampling(temperature=1.0 + row % 3, seed=row) if row % 4 else TokenSampling()
        for row in range(len(prompts))
    ]
    limits = [5] * len(prompts)
    together = model.write(prompts, limits, choices)
    assert same(together, [model.write([p], [5], [c])[0] for p, c in zip(prompts, choices, strict=True)])
    assert same(together, model.write(prompts, limits, choices, 100))
    assert not same(together, model.write(prompts, limits, [TokenSampling(c.temperature, c.seed + 1) for c in choices]))
    greedy = model.write(prompts, limits)
    assert all(w == g for row, (w, g) in enumerate(zip(together, greedy, strict=True)) if row % 4 == 0)
    scores = model.logprobs(prompts, [w.ids for w in together], [w.ended for w in together])  # at temperature 1
    assert [w.logprob for w in together] == [pytest.approx(score, abs=1e-5) for score in scores]


def test_weights_are_brought_to_bf16_once_for_all_tokens_of_a_batch(chat_lm) -> None:
    model = CausalLanguageModel.build(str(chat_lm)).eval()
    model.inference_dtype = torch.bfloat16
    prompts = [model.tokenizer("The river of delta")["input_ids"]] * 2
    casts = []
    for steps in (1, 6):
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as profile:
            model.write(prompts, [steps] * 2, [TokenSampling(9.0, 5)] * 2)
        copies = [each for each in profile.key_averages(group_by_input_shape=True) if each.key == COPY]
        casts.append(sum(each.count for each in copies if each.input_shapes[0] == [64, 128]))  # a layer's last matrix
    assert casts[0] == casts[1] == 2  # layers


@pytest.mark.parametrize("temperature", [0.7, 1.5])
def test_tokens_are_sampled_with_their_probabilities(chat_lm, temperature) -> None:
    model = CausalLanguageModel.build(str(chat_lm)).eval()
    prompt, draws = model.tokenizer("The river of delta")["input_ids"], 1500
    written = model.write(
        [prompt] * draws, [1] * draws, [TokenSampling(temperature, seed) for seed in range(draws)], 10**5
    )
    with torch.no_grad():
        probability_V = (model.network(torch.tensor([prompt])).logits[0, -1] / temperature).softmax(0)
    ends = probability_V[model.end_ids].sum().item()
    shares = {(): ends, **{(token,): probability_V[token].item() for token in probability_V.topk(5).indices.tolist()}}
    for ids, p in shares.items():
        if ids[:1] not in [(end,) for end in model.end_ids]:
            share = sum(w.ids == ids for w in written) / draws
            assert abs(share - p) < 5 * math.sqrt(p * (1 - p) / draws) + 1 / draws, ids


def test_the_head_sees_the_positions_before_labels_alone_and_gradients_are_those_of_all_logits() -> None:
    """With soft-capped logits, as Gemma 2 has them, and two end tokens."""
    torch.manual_seed(0)
    config = Gemma2Config(
        vocab_size=50, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2, head_dim=8,
        num_key_value_heads=1, final_logit_softcapping=2.0, eos_token_id=[1, 4], initializer_range=0.5,
    )  # fmt: skip
    tokenizer = SimpleNamespace(pad_token_id=0, eos_token_id=1)
    model = CausalLanguageModel(Gemma2ForCausalLM(config).eval(), tokenizer)  # type: ignore[arg-type]
    prompts, replies = [[2, 7, 9], [2, 8, 30, 31, 32]], [[11, 12, 13, 1], [4]]
    seen: list[int] = []
    head = model.network.get_output_embeddings()
    hook = head.register_forward_hook(lambda _, states, logits: seen.append(states[0].shape[:-1].numel()))
    logp_PA = model.labels_logp(*model.reply_batch(prompts, replies))
    hook.remove()
    assert seen == [5]
    weights_PA = torch.randn(logp_PA.shape)
    parameters = [*model.network.parameters()]
    gradients = torch.autograd.grad((logp_PA * weights_PA).sum(), parameters)

    rows = []
    for prompt, reply in zip(prompts, replies, strict=True):
        logits_TV = model.network(torch.tensor([[*prompt, *reply]])).logits[0, len(prompt) - 1 : -1]
        logp = log_probabilities(logits_TV, model.end_ids).gather(1, torch.tensor(reply)[:, None])[:, 0]
        rows.append(torch.cat([torch.zeros(logp_PA.shape[1] - len(reply)), logp]))
    whole_PA = torch.stack(rows)
    torch.testing.assert_close(logp_PA, whole_PA, atol=1e-5, rtol=0)
    for here, there in zip(gradients, torch.autograd.grad((whole_PA * weights_PA).sum(), parameters), strict=True):
        torch.testing.assert_close(here, there, atol=1e-5, rtol=1e-5)
