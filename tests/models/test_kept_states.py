"""What prompts have in common is read once: replies and scores are those of reading every prompt whole."""

import random

import pytest
import torch
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    GPT2Config,
    GPT2LMHeadModel,
    MambaConfig,
    MambaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from models import causal_lm
from models.causal_lm import CausalLanguageModel
from models.kept_states import common_prefix
from models.token_sampling import TokenSampling

VOCABULARY, END, WINDOW = 60, 1, 12
SIZES = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4,
         "num_key_value_heads": 2, "vocab_size": VOCABULARY, "eos_token_id": END, "pad_token_id": 0,
         "bos_token_id": None, "initializer_range": 0.4, "max_position_embeddings": 256}  # fmt: skip
NETWORKS = {
    "qwen2": lambda: Qwen2ForCausalLM(Qwen2Config(**SIZES)),
    "gemma3": lambda: Gemma3ForCausalLM(
        Gemma3TextConfig(
            **SIZES, head_dim=8, sliding_window=WINDOW, query_pre_attn_scalar=8,
            layer_types=["sliding_attention", "full_attention", "sliding_attention"],
        )
    ),
    "gpt2": lambda: GPT2LMHeadModel(
        GPT2Config(
            vocab_size=VOCABULARY, n_embd=32, n_layer=3, n_head=4, n_positions=256, initializer_range=0.4,
            bos_token_id=END, eos_token_id=END,
        )
    ),
    "mamba": lambda: MambaForCausalLM(
        MambaConfig(vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, state_size=4, eos_token_id=END,
                    pad_token_id=0, bos_token_id=END)
    ),
}  # fmt: skip


def model_of(family: str) -> CausalLanguageModel:
    from tokenizers import Tokenizer, models

    torch.manual_seed(1)
    network: PreTrainedModel = NETWORKS[family]().eval()
    words = Tokenizer(models.WordLevel({str(n): n for n in range(VOCABULARY)}, unk_token="0"))
    return CausalLanguageModel(network, PreTrainedTokenizerFast(tokenizer_object=words)).eval()


def tokens(rng: random.Random, count: int) -> list[int]:
    return rng.choices(range(2, VOCABULARY), k=count)


@pytest.mark.parametrize(("sequences", "count"), [
    ([[1, 2, 3], [1, 2, 4, 5]], 2), ([[1, 2], [1, 2, 3]], 1), ([[1, 2], [1, 2]], 1), ([[3, 1], [4, 1], [3, 2]], 0),
    ([[1, 2, 9], [1, 2, 3], [1, 5, 3]], 1), ([[7]], 0), ([], 0),
])  # fmt: skip
def test_what_sequences_begin_with(sequences, count) -> None:
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
    rows = [(prompts, limits, choices, budget), (many, replies, ended, budget), (prompts, replies[:7], True, budget)]
    found = model.write(*rows[0]), model.logprobs(*rows[1]), model.logprobs(*rows[2])
    kept, read[:] = sum(read), []
    monkeypatch.setattr(causal_lm, "can_keep", lambda _: False)
    whole = model.write(*rows[0]), model.logprobs(*rows[1]), model.logprobs(*rows[2])
    assert [(each.ids, each.ended) for each in found[0]] == [(each.ids, each.ended) for each in whole[0]]
    assert [each.logprob for each in found[0]] == [pytest.approx(each.logprob, abs=1e-4) for each in whole[0]]
    for one, other in zip(found[1:], whole[1:], strict=True):
        assert one == [pytest.approx(each, abs=1e-4) for each in other]
    assert kept == sum(read) if family == "mamba" else kept < sum(read)


def test_one_prompt_with_many_replies_is_read_once() -> None:
    model, rng = model_of("gemma3"), random.Random(3)
    read: list[tuple[int, ...]] = []
    model.network.register_forward_pre_hook(
        lambda _, __, options: read.append(tuple(options["input_ids"].shape)), with_kwargs=True
    )
    prompt = tokens(rng, 100)
    model.logprobs([prompt] * 20, [tokens(rng, 3) for _ in range(20)])
    assert read == [(1, 104), (1, 1), (20, 5)]  # 99 tokens with padding; the last one; it again, three and the end
