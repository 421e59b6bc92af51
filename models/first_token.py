"""The last layer of an encoder computed for its first token alone: all that a sequence classifier's head reads.

The other tokens of that layer are read as keys and values only, so 10 of the 12 parts of its matrix products are left
out, in training as in scoring: a fifth of the work of four layers. Results and gradients stay the same.

Shape legend: B sequences, H heads, T tokens, D features per head, E features of all heads.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from models.sdpa import NAME, attend

FAMILIES = ("bert", "roberta", "xlm-roberta", "camembert")  # beside BigBird with fused attention
CENTERED = ("big_bird", "longformer", "mpnet")  # whose head is given all states, and reads the first token's


class FirstTokenLayer(nn.Module):
    """A layer of the BERT family whose output is that of the first token.

    It shares the weights of the given layer, and their names.

    Args:
        layer: BertLayer, or that of a family with the same parts.
    """

    attention: Any
    intermediate: Any
    output: Any

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.attention, self.intermediate, self.output = layer.attention, layer.intermediate, layer.output
        self.train(layer.training)

    def forward(
        self, hidden_states: Tensor, attention_mask: Tensor | None = None, *unused: Any, **options: Any
    ) -> Tensor:
        """The first token's states (B, 1, E).

        Args:
            hidden_states: (B, T, E).
            attention_mask: Additive or boolean mask (B, 1, T, T) or (B, 1, 1, T); None for no padding.
            unused: Of decoders.
            options: Of decoders.
        """
        attention, first_B1E = self.attention.self, hidden_states[:, :1]

        def heads(projected_BTE: Tensor) -> Tensor:
            return projected_BTE.unflatten(2, (attention.num_attention_heads, -1)).transpose(1, 2)

        attended_BH1D = attend(
            heads(attention.query(first_B1E)),
            heads(attention.key(hidden_states)),
            heads(attention.value(hidden_states)),
            None if attention_mask is None else attention_mask[:, :, :1],
            attention.dropout.p if self.training else 0.0,
        )
        states_B1E = self.attention.output(attended_BH1D.transpose(1, 2).flatten(2), first_B1E)
        output: Tensor = self.output(self.intermediate(states_B1E), states_B1E)
        return output

    def of_first_token(self) -> Iterator[nn.Parameter]:
        """The weights that only the first token is multiplied with."""
        of_all = {id(p) for part in (self.attention.self.key, self.attention.self.value) for p in part.parameters()}
        return (parameter for parameter in self.parameters() if id(parameter) not in of_all)


def compute_first_token(network: PreTrainedModel) -> None:
    """Compute the last layer of a sequence classifier for its first token alone, in place.

    Other networks stay as they are.

    Args:
        network: With the attention that `models.sdpa.train_fast_on_cpu`, or `models.bigbird.attention.fuse`, gave it.
    """
    config = network.config
    if config.model_type == "big_bird" or (config.model_type in FAMILIES and config._attn_implementation == NAME):
        layers = network.base_model.encoder.layer
        layers[-1] = FirstTokenLayer(layers[-1])


@torch.no_grad()
def center_first_token(network: PreTrainedModel, ids_BT: Tensor, attention_BT: Tensor) -> None:
    """Shift the last layer's output, in place, so that its first token is 0 on average over B sequences.

    For a classifier with a new head. In a sentence encoder such as MiniLM the first token is hardly used: it is almost
    the same for every input, 0.54 beside differences of 0.004 after four of its layers, and in bf16 the differences
    vanish. A head that reads it learns one score for all inputs, which jumps from step to step, and the body learns
    nothing. Only the head reads that token, so that the bias of the layer's norm can take the common part away.
    Networks of other families than `CENTERED` stay as they are.

    Args:
        network: A sequence classifier.
        ids_BT: Token ids of some inputs.
        attention_BT: Their attention mask.
    """
    if network.config.model_type not in CENTERED:
        return
    training, read = network.training, []
    hook = network.classifier.register_forward_pre_hook(lambda head, given: read.append(given[0][:, 0]))
    network.eval()(input_ids=ids_BT, attention_mask=attention_BT)
    hook.remove()
    network.base_model.encoder.layer[-1].output.LayerNorm.bias -= read[0].mean(dim=0)
    network.train(training)
