"""Sizes of what is measured: on a card, and of the rehearsal on a CPU."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class BenchmarkSizes:
    """Of models, data and repetitions.

    Args:
        matrix: Rows and columns of the matrices whose product is timed.
        steps: Training steps that are timed, after `warm_up` others; also repetitions of everything else.
        warm_up: Steps that are not timed: they compile kernels and fill the allocator.
        encoder: Of BigBird-base and BERT-base.
        encoder_vocabulary: Tokens.
        t5: Of T5-base.
        t5_vocabulary: Tokens.
        causal: Of Qwen2.5-0.5B.
        triple_tokens: Of a training step of DR-RAG.
        questions: Of a training step of RE-RAG.
        contexts: Of each question.
        rewrites: Of a training step of the causal LM.
        words: Median length of a passage of HotpotQA, in tokens; other lengths are in proportion.
        triples: That are scored.
        passages: That are reranked.
    """

    matrix: int
    steps: int
    warm_up: int
    encoder: dict[str, int]
    encoder_vocabulary: int
    t5: dict[str, int]
    t5_vocabulary: int
    causal: dict[str, Any]
    triple_tokens: int
    questions: int
    contexts: int
    rewrites: int
    words: int
    triples: int
    passages: int


CARD = BenchmarkSizes(
    matrix=8192, steps=8, warm_up=3, encoder_vocabulary=50_358, t5_vocabulary=32_128,
    encoder={"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072},
    t5={"d_model": 768, "d_kv": 64, "d_ff": 3072, "num_layers": 12, "num_heads": 12},
    causal={
        "vocab_size": 151_936, "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24,
        "num_attention_heads": 14, "num_key_value_heads": 2, "tie_word_embeddings": True,
    },
    triple_tokens=16_384, questions=4, contexts=20, rewrites=128, words=110, triples=4096, passages=100,
)  # fmt: skip
REHEARSAL = BenchmarkSizes(
    matrix=256, steps=2, warm_up=1, encoder_vocabulary=200, t5_vocabulary=200,
    encoder={"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64},
    t5={"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4},
    causal={
        "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2,
    },
    triple_tokens=500, questions=2, contexts=4, rewrites=8, words=12, triples=64, passages=10,
)  # fmt: skip
