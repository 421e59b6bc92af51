"""Memory of a causal LM at inference, from its `config.json`.

Shape legend: P rows, T tokens.
"""

from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM, DynamicCache, PreTrainedModel

from models.causal_lm import TOKENS_PER_BATCH, check_causal, context_of, positions_of
from models.full_precision import keep_heads_in_fp32
from models.live_memory import Compute, PartMemory, batch_size, empty_network, forward_memory
from models.pretrained import resolve

UNLIMITED = 4096  # tokens assumed of a model that names no limit


def causal_memory(
    pretrained: str, compute: Compute, prompts: int, context_tokens: int | None, batch_tokens: int | None
) -> PartMemory:
    """Memory of generating replies, to prompts that fill the context together with their replies.

    Args:
        pretrained: Folder or hub id; no weights are read.
        compute: Precision and device.
        prompts: Number of prompts at once.
        context_tokens: Most tokens of a prompt and its reply together; the model's when None.
        batch_tokens: Most tokens of a batch; by device when None.

    Raises:
        MissingInputError: If the model is not on this machine.
        UserError: If it is not a causal LM.
    """
    folder = resolve(pretrained)
    config = AutoConfig.from_pretrained(str(folder))
    check_causal(pretrained, config)
    network, weights = empty_network(AutoModelForCausalLM, folder)
    keep_heads_in_fp32(network)
    tokens = min(each for each in (context_tokens, context_of(config) or UNLIMITED) if each)
    rows, _ = batch_size(prompts, tokens, batch_tokens or TOKENS_PER_BATCH[compute.device], compute)

    def write(ids_PT: Tensor, attention_PT: Tensor) -> None:
        _write(network, ids_PT, attention_PT)

    return forward_memory(network, weights, write, (rows, tokens), 1, compute)


def _write(network: PreTrainedModel, ids_PT: Tensor, attention_PT: Tensor) -> None:
    """The prompt at once, and the last token, with the states of the tokens before it kept."""
    cache, positions_PT = DynamicCache(config=network.config), positions_of(attention_PT)
    for place in (slice(ids_PT.shape[1] - 1), slice(ids_PT.shape[1] - 1, None)):
        logits_P1V = network(
            input_ids=ids_PT[:, place],
            attention_mask=attention_PT[:, : place.stop],
            position_ids=positions_PT[:, place],
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        ).logits
        logits_P1V[:, -1].float().log_softmax(-1).clone()  # of the chosen token, and generate()'s copy
