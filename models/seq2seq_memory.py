"""Memory of an encoder-decoder at inference, from its `config.json`.

Shape legend: P rows, T tokens, A reply tokens, H hidden width, V vocabulary.
"""

from pathlib import Path

import torch
from torch import Tensor
from transformers import AutoModelForSeq2SeqLM, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput

from models.full_precision import keep_heads_in_fp32
from models.live_memory import Compute, PartMemory, batch_size, empty_network, forward_memory
from models.seq2seq_lm import TOKENS_PER_BATCH


def seq2seq_memory(folder: Path, compute: Compute, inputs: int, max_tokens: int, reply_tokens: int) -> PartMemory:
    """Memory of generating replies to inputs of the maximum length.

    Args:
        folder: The model's folder; no weights are read.
        compute: Precision and device.
        inputs: Number of inputs at once.
        max_tokens: Maximum length of an input, in tokens.
        reply_tokens: Maximum length of a reply, in tokens.
    """
    network, weights = empty_network(AutoModelForSeq2SeqLM, folder)
    keep_heads_in_fp32(network)
    rows, _ = batch_size(inputs, max_tokens, TOKENS_PER_BATCH[compute.device], compute)

    def write(ids_PT: Tensor, attention_PT: Tensor) -> None:
        states_PTH = network.get_encoder()(input_ids=ids_PT, attention_mask=attention_PT).last_hidden_state
        decode_last(network, states_PTH, attention_PT, reply_tokens)

    return forward_memory(network, weights, write, (rows, max_tokens), 1, compute)


def decode_last(network: PreTrainedModel, states_PTH: Tensor, attention_PT: Tensor, reply_tokens: int) -> None:
    """The last step of greedy decoding, with the cache of the steps before it.

    The words are not chosen: that needs values.
    """
    words_PA = torch.zeros(len(states_PTH), reply_tokens, dtype=torch.long, device=states_PTH.device)
    cache = None
    if reply_tokens > 1:
        cache = network.get_decoder()(
            input_ids=words_PA[:, 1:],
            encoder_hidden_states=states_PTH,
            encoder_attention_mask=attention_PT,
            use_cache=True,
        ).past_key_values
    logits_P1V = network(
        encoder_outputs=BaseModelOutput(last_hidden_state=states_PTH),
        attention_mask=attention_PT,
        decoder_input_ids=words_PA[:, :1],
        past_key_values=cache,
        use_cache=True,
    ).logits
    logits_P1V[:, -1].float().clone()  # generate() chooses from a copy
