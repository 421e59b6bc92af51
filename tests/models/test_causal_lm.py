"""Language models: replies, kept states and log-probabilities are those of transformers, in any batch."""

import math
import random
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, GenerationConfig, PreTrainedTokenizerFast

from models import causal_lm, label_log_probability
from models.causal_lm import CausalLanguageModel
from models.kept_states import common_prefix
from models.label_log_probability import label_logp
from models.length_batching import IGNORE
from models.pretrained import load_seq2seq
from models.seq2seq_lm import Seq2SeqLanguageModel
from models.token_sampling import SampledTokens, TokenSampling, log_probabilities
from tests.helpers.causal_parts import alone
from tests.helpers.tiny_lm import cases
from tests.helpers.tolerances import model_close

LENGTHS = range(3, 60, 4)


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
    settings = {"do_sample": True, "temperature": 9.0, "top_k": 3, "repetition_penalty": 5.0, "max_length": 9}
    network.generation_config = GenerationConfig(eos_token_id=ends, pad_token_id=0, **settings)
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
    rows, limits = range(len(prompts)), [5] * len(prompts)
    choices = [TokenSampling(temperature=1.0 + row % 3, seed=row) if row % 4 else TokenSampling() for row in rows]
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
        copies = [each for each in profile.key_averages(group_by_input_shape=True) if each.key == "aten::copy_"]
        casts.append(sum(each.count for each in copies if each.input_shapes[0] == [64, 128]))  # a layer's last matrix
    assert casts[0] == casts[1] == 2  # layers


@pytest.mark.parametrize("temperature", [0.7, 1.5])
def test_tokens_are_sampled_with_their_probabilities(chat_lm, temperature) -> None:
    model = CausalLanguageModel.build(str(chat_lm)).eval()
    prompt, draws = model.tokenizer("The river of delta")["input_ids"], 1500
    choices = [TokenSampling(temperature, seed) for seed in range(draws)]
    written = model.write([prompt] * draws, [1] * draws, choices, 10**5)
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
    capped = {"head_dim": 8, "final_logit_softcapping": 2.0, "eos_token_id": [1, 4], "initializer_range": 0.5}
    network = AutoModelForCausalLM.from_config(AutoConfig.for_model("gemma2", **{**SIZES, **capped}))
    model = CausalLanguageModel(network.eval(), SimpleNamespace(pad_token_id=0, eos_token_id=1))
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


VOCABULARY, END, WINDOW = 60, 1, 12
SIZES = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4,
         "num_key_value_heads": 2, "vocab_size": VOCABULARY, "eos_token_id": END, "pad_token_id": 0,
         "bos_token_id": None, "initializer_range": 0.4, "max_position_embeddings": 256}  # fmt: skip
LAYERS = ["sliding_attention", "full_attention", "sliding_attention"]
WINDOWED = {"head_dim": 8, "sliding_window": WINDOW, "query_pre_attn_scalar": 8, "layer_types": LAYERS}
ENDS = {"vocab_size": VOCABULARY, "bos_token_id": END, "eos_token_id": END}
NETWORKS: dict[str, dict] = {
    "qwen2": SIZES,
    "gemma3_text": {**SIZES, **WINDOWED},
    "gpt2": {**ENDS, "n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 256, "initializer_range": 0.4},
    "mamba": {**ENDS, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 4, "pad_token_id": 0},
}


def model_of(family: str) -> CausalLanguageModel:
    from tokenizers import Tokenizer, models

    torch.manual_seed(1)
    network = AutoModelForCausalLM.from_config(AutoConfig.for_model(family, **NETWORKS[family]))
    words = Tokenizer(models.WordLevel({str(n): n for n in range(VOCABULARY)}, unk_token="0"))
    return CausalLanguageModel(network, PreTrainedTokenizerFast(tokenizer_object=words)).eval()


def tokens(rng: random.Random, count: int) -> list[int]:
    return rng.choices(range(2, VOCABULARY), k=count)


def test_what_sequences_begin_with() -> None:
    for sequences, count in (
        ([[1, 2, 3], [1, 2, 4, 5]], 2),
        ([[1, 2], [1, 2, 3]], 1),
        ([[1, 2], [1, 2]], 1),
        ([[3, 1], [4, 1], [3, 2]], 0),
        ([[1, 2, 9], [1, 2, 3], [1, 5, 3]], 1),
        ([[7]], 0),
        ([], 0),
    ):
        assert common_prefix(sequences) == count


@pytest.mark.parametrize("family", NETWORKS)
@pytest.mark.parametrize("budget", [60, 10**6])
def test_nothing_changes(family, budget, monkeypatch) -> None:
    """With a prefix longer than the window, rows of very different length, and prompts with several replies."""
    model, rng = model_of(family), random.Random(2)
    read: list[int] = []

    def count(_: object, __: object, options: dict[str, torch.Tensor]) -> None:
        read.append(options["input_ids"].numel())

    model.network.register_forward_pre_hook(count, with_kwargs=True)
    begin = tokens(rng, 40)
    prompts = [begin + tokens(rng, length) for length in (1, 2, 30, 5, 1, 17, 60)]
    limits, choices = [6, 3, 6, 6, 3, 6, 6], [TokenSampling(row % 2, row) for row in range(7)]
    many = [prompts[row] for row in (0, 1, 2, 3, 3, 3, 2, 1, 4, 5, 6)]
    replies = [tokens(rng, length) for length in (2, 0, 5, 1, 50, 3, 0, 2, 4, 1, 45)]
    ended = [row != 6 for row in range(len(many))]

    def made() -> tuple[list[SampledTokens], list[float]]:
        written = model.write(prompts, limits, choices, budget)
        scores = [*model.logprobs(many, replies, ended, budget), *model.logprobs(prompts, replies[:7], True, budget)]
        return written, [*(each.logprob for each in written), *scores]

    found, logprobs = made()
    kept, read[:] = sum(read), []
    monkeypatch.setattr(causal_lm, "can_keep", lambda _: False)
    whole, expected = made()
    assert same(found, whole)
    assert logprobs == pytest.approx(expected, abs=1e-4)
    assert kept == sum(read) if family == "mamba" else kept < sum(read)


def test_one_prompt_with_many_replies_is_read_once() -> None:
    model, rng = model_of("gemma3_text"), random.Random(3)
    read: list[tuple[int, ...]] = []
    model.network.register_forward_pre_hook(
        lambda _, __, options: read.append(tuple(options["input_ids"].shape)), with_kwargs=True
    )
    prompt = tokens(rng, 100)
    model.logprobs([prompt] * 20, [tokens(rng, 3) for _ in range(20)])
    assert read == [(1, 104), (1, 1), (20, 5)]  # 99 tokens with padding; the last one; it again, three and the end


INPUTS = ["who is the director of name3", "where", "name1 name2 is the film of the city"]
REPLIES = ["name3 film", "the city of name9 , name2", "yes"]


@pytest.fixture(scope="module")
def lm(checkpoints) -> Seq2SeqLanguageModel:
    return Seq2SeqLanguageModel(*load_seq2seq(str(checkpoints["t5"]), "pretrained", None, False)).eval()


def ids(lm: Seq2SeqLanguageModel, texts: list[str]) -> list[list[int]]:
    return list(lm.tokenizer(texts)["input_ids"])


def test_labels_are_the_replies_and_their_log_probability_is_that_of_transformers(lm) -> None:
    inputs, replies = ids(lm, INPUTS), ids(lm, REPLIES)
    batch = lm.reply_batch(inputs, replies)
    assert [[label for label in row if label != IGNORE] for row in batch[2].tolist()] == replies
    with torch.inference_mode():
        logp_PA = lm.labels_logp(*batch)
        for source, reply, logp in zip(inputs, replies, logp_PA.sum(dim=1).tolist(), strict=True):
            loss = lm.network(input_ids=torch.tensor([source]), labels=torch.tensor([reply])).loss
            assert logp == model_close(-float(loss) * len(reply), magnitude=len(reply) * 5)


def test_greedy_replies_do_not_depend_on_the_batch(lm) -> None:
    inputs = ids(lm, INPUTS)
    together = lm.write(inputs, [6, 3, 6])
    alone = [lm.write([one], [most])[0] for one, most in zip(inputs, [6, 3, 6], strict=True)]
    assert [each.ids for each in together] == [each.ids for each in alone]
    assert len(together[1].ids) <= 3
    generated = lm.network.generate(input_ids=torch.tensor(inputs[:1]), max_new_tokens=6, do_sample=False)
    expected = [token for token in generated[0, 1:].tolist() if token not in (lm.pad_id, *lm.end_ids)]
    assert list(together[0].ids) == expected


@pytest.mark.parametrize("at_once", [1, 30, 10**6])
@pytest.mark.parametrize("ends", [[2], [2, 0, 5]])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.bfloat16, 4e-3)])
def test_values_and_gradients_are_those_of_the_whole_log_softmax(at_once, ends, dtype, tolerance, monkeypatch) -> None:
    monkeypatch.setattr(label_log_probability, "LOGITS_AT_ONCE", at_once)
    generator = torch.Generator().manual_seed(0)
    logits_NV = (4 * torch.randn(9, 11, generator=generator)).to(dtype).requires_grad_()
    labels_N = torch.tensor([2, 0, 5, 1, 10, 3, 2, 7, 0])
    weights_N = torch.randn(9, generator=generator)
    logp_N = label_logp(logits_NV, labels_N, ends)
    (grad_NV,) = torch.autograd.grad((logp_N * weights_N).sum(), logits_NV)

    exact_NV = logits_NV.detach().double().requires_grad_()
    sets = [ends if label in ends else [label] for label in labels_N.tolist()]
    exact_N = torch.stack([row.log_softmax(0)[own].logsumexp(0) for row, own in zip(exact_NV, sets, strict=True)])
    (exact_grad_NV,) = torch.autograd.grad((exact_N * weights_N).sum(), exact_NV)
    assert logp_N.dtype == torch.float32
    assert grad_NV.dtype == dtype
    torch.testing.assert_close(logp_N.double(), exact_N, atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(grad_NV.double(), exact_grad_NV, atol=tolerance, rtol=tolerance)
    whole_N = log_probabilities(logits_NV, ends).gather(1, labels_N[:, None])[:, 0]
    torch.testing.assert_close(logp_N, whole_N, atol=1e-6, rtol=1e-6)


def test_no_label_has_no_log_probability() -> None:
    logits_NV = torch.zeros((0, 5), requires_grad=True)
    label_logp(logits_NV, torch.zeros(0, dtype=torch.long), [2]).sum().backward()
    assert logits_NV.grad.shape == (0, 5)
