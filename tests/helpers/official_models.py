"""Networks with the published sizes of the models that configs name, on the meta device: shapes without weights."""

import torch
from transformers import (
    BigBirdConfig,
    BigBirdForSequenceClassification,
    LongformerConfig,
    LongformerForSequenceClassification,
    PreTrainedModel,
    Qwen2Config,
    Qwen2ForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
)

from models.bigbird.attention import freeze_pooler, fuse
from models.full_precision import keep_heads_in_fp32

BASE = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}
LARGE = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}
T5_BASE = {"d_model": 768, "d_kv": 64, "d_ff": 3072, "num_layers": 12, "num_heads": 12}
T5_LARGE = {"d_model": 1024, "d_kv": 64, "d_ff": 4096, "num_layers": 24, "num_heads": 16}
BIGBIRD = {"vocab_size": 50358, "max_position_embeddings": 4096, "attention_type": "original_full", "num_labels": 2}
T5 = {"vocab_size": 32128, "decoder_start_token_id": 0}
CONFIGS = {
    "google/bigbird-roberta-base": BigBirdConfig(**BIGBIRD, **BASE),
    "google/bigbird-roberta-large": BigBirdConfig(**BIGBIRD, **LARGE),
    "allenai/longformer-base-4096": LongformerConfig(
        vocab_size=50265, max_position_embeddings=4098, type_vocab_size=1, pad_token_id=1, attention_window=[512] * 12,
        num_labels=2, **BASE,
    ),
    "google-t5/t5-base": T5Config(**T5, **T5_BASE),
    "google-t5/t5-large": T5Config(**T5, **T5_LARGE),
    "google/flan-t5-base": T5Config(
        **T5, **{**T5_BASE, "d_ff": 2048}, feed_forward_proj="gated-gelu", tie_word_embeddings=False
    ),
    "Qwen/Qwen2.5-0.5B-Instruct": Qwen2Config(
        vocab_size=151936, hidden_size=896, intermediate_size=4864, num_hidden_layers=24, num_attention_heads=14,
        num_key_value_heads=2, max_position_embeddings=32768, tie_word_embeddings=True, rope_theta=1_000_000.0,
    ),
}  # fmt: skip
CLASSES: dict[str, type[PreTrainedModel]] = {
    "big_bird": BigBirdForSequenceClassification,
    "longformer": LongformerForSequenceClassification,
    "t5": T5ForConditionalGeneration,
    "qwen2": Qwen2ForCausalLM,
}


def official(name: str) -> PreTrainedModel:
    """A network as the trainers build it from that hub id, in training mode."""
    config = CONFIGS[name]
    with torch.device("meta"):
        network = CLASSES[config.model_type](config).train()
    if config.model_type == "big_bird":
        fuse(network.bert)
        freeze_pooler(network.bert)
    keep_heads_in_fp32(network)
    return network
