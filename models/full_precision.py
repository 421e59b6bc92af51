"""Heads that are computed in fp32 under autocast: LM heads and classification heads, whose differences are scores."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PreTrainedModel


class FullPrecisionLinear(nn.Linear):
    """A linear layer that computes in fp32 even under autocast; it shares the weights of the given layer.

    In bf16 a logit near 20 is a multiple of 1/8, so scores of similar inputs (differences of two logits) would tie.
    """

    def __init__(self, layer: nn.Linear) -> None:
        with torch.device("meta"):
            super().__init__(layer.in_features, layer.out_features, bias=layer.bias is not None)
        self.weight, self.bias = layer.weight, layer.bias
        self.train(layer.training)

    def forward(self, states: Tensor) -> Tensor:
        """Outputs (..., V) in fp32 of states (..., H); in fp64 where the weights are."""
        device = "cpu" if states.is_meta else states.device.type  # autocast does not support the meta device
        dtype = torch.promote_types(self.weight.dtype, torch.float32)
        with torch.autocast(device, enabled=False):
            bias = None if self.bias is None else self.bias.to(dtype)
            return F.linear(states.to(dtype), self.weight.to(dtype), bias)


def keep_heads_in_fp32(network: PreTrainedModel) -> None:
    """Compute the heads of a model in fp32 under autocast, in place.

    Weights, their names and results in fp32 stay the same.

    Args:
        network: An encoder-decoder, whose head is its LM head, or a sequence classifier, whose head is every linear
            layer after the encoder, BERT's pooler included.
    """
    if network.config.is_encoder_decoder:
        head = network.get_output_embeddings()
        if not isinstance(head, FullPrecisionLinear):
            network.set_output_embeddings(FullPrecisionLinear(head))
        return
    body = {id(module) for module in network.base_model.modules()}
    for name, module in list(network.named_modules()):
        in_head = id(module) not in body or "pooler" in name.split(".")
        if in_head and isinstance(module, nn.Linear) and not isinstance(module, FullPrecisionLinear):
            network.set_submodule(name, FullPrecisionLinear(module))
