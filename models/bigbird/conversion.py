"""Converts BERT and RoBERTa checkpoints to BigBird: copies the weights and extends the position embeddings.

An alternative to a pretrained BigBird.  Up to the source's maximum length the hidden states equal the source's (1e-5).
"""

from torch import Tensor, nn
from transformers import BigBirdConfig, BigBirdModel, PreTrainedConfig, PreTrainedModel

from common.errors import UserError

FIRST_POSITION = {"bert": 0, "roberta": None, "xlm-roberta": None, "camembert": None}  # None: padding_idx + 1

_KEPT = (  # options that the converted model has as its source
    *("vocab_size", "hidden_size", "num_attention_heads", "intermediate_size", "hidden_act", "layer_norm_eps"),
    *("hidden_dropout_prob", "attention_probs_dropout_prob", "type_vocab_size"),
    *("pad_token_id", "bos_token_id", "eos_token_id"),
)


def convertible(config: PreTrainedConfig) -> bool:
    """Whether `to_bigbird` supports a checkpoint's model family."""
    return config.model_type in FIRST_POSITION


def to_bigbird(source: PreTrainedModel, max_tokens: int, layers: int | None = None) -> BigBirdModel:
    """A BigBird encoder (`original_full`) with the weights of a BERT- or RoBERTa-family encoder.

    Args:
        source: The encoder without a head, as `AutoModel` loads it.
        max_tokens: Positions of the new model; a shorter position table of the source is repeated from its start.
        layers: Number of first layers to keep; all when None.

    Returns:
        The encoder, in evaluation mode, with the token types of the source.

    Raises:
        UserError: If the model family is not supported, or the source has fewer layers.
    """
    config = source.config
    if not convertible(config):
        raise UserError(
            f"cannot convert a {config.model_type!r} checkpoint to BigBird; allowed: {', '.join(FIRST_POSITION)}."
        )
    kept = layers or config.num_hidden_layers
    if not 1 <= kept <= config.num_hidden_layers:
        raise UserError(f"layers must lie in 1..{config.num_hidden_layers} for {config.name_or_path}, got {layers}.")
    first = FIRST_POSITION[config.model_type]
    first = config.pad_token_id + 1 if first is None else first
    table = source.embeddings.position_embeddings.weight.detach()[first:]
    target = BigBirdModel(
        BigBirdConfig(
            **{name: getattr(config, name) for name in _KEPT},
            num_hidden_layers=kept,
            sep_token_id=getattr(config, "sep_token_id", None),
            max_position_embeddings=max(max_tokens, len(table)),
            attention_type="original_full",
        )
    )
    weights = {
        name: value
        for name, value in source.state_dict().items()
        if not name.startswith("pooler.") and "position" not in name and _layer(name) < kept
    }
    weights["embeddings.position_embeddings.weight"] = repeated(table, target.config.max_position_embeddings)
    missing, unexpected = target.load_state_dict(weights, strict=False)
    missing = [name for name in missing if not name.startswith("pooler")]
    unexpected = [name for name in unexpected if "token_type_ids" not in name]
    if missing or unexpected:
        wrong = ", ".join((missing + unexpected)[:3])
        raise UserError(f"{config.name_or_path}: weights missing or unexpected in {config.model_type}: {wrong}.")
    nn.init.eye_(target.pooler.weight)  # unused by the classifier; initialized so that saved files are reproducible
    nn.init.zeros_(target.pooler.bias)
    return target.eval()


def repeated(table_PE: Tensor, positions: int) -> Tensor:
    """A position embedding table (P, E) repeated from its start to shape (positions, E)."""
    copies = -(-positions // len(table_PE))
    return table_PE.repeat(copies, 1)[:positions].clone()


def _layer(name: str) -> int:
    """Index of the encoder layer that a weight belongs to; -1 for the embeddings."""
    head, _, rest = name.partition("encoder.layer.")
    return int(rest.split(".")[0]) if rest and not head else -1
