"""bf16 autocast on tensors without storage, so that the memory can be counted before anything is loaded."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

PRODUCTS = {
    F.linear,
    torch.einsum,
    torch.matmul,
    Tensor.matmul,
    Tensor.__matmul__,
    torch.bmm,
    Tensor.bmm,
    torch.baddbmm,
    torch.addmm,
}
FP32_ON_GPU = {
    F.layer_norm,
    F.softmax,
    torch.softmax,
    Tensor.softmax,
    F.log_softmax,
    Tensor.log_softmax,
    F.cross_entropy,
}


class CountedAutocast(TorchFunctionMode):
    """Lowers the precision as bf16 autocast does, which the meta device does not have.

    `torch.autocast("cpu")` does nothing to tensors of that device, but says where a head turns autocast off.
    """

    def __init__(self, on_gpu: bool, fp32_attention: bool) -> None:
        super().__init__()
        self.on_gpu, self.fp32_attention = on_gpu, fp32_attention
        self.copies: dict[int, Tensor] = {}  # of parameters, made once as by autocast

    def _cast(self, value: Any, dtype: torch.dtype) -> Any:
        if not isinstance(value, Tensor) or not value.is_floating_point() or value.dtype == dtype:
            return value
        if not isinstance(value, torch.nn.Parameter):
            return value.to(dtype)
        if id(value) not in self.copies:
            self.copies[id(value)] = value.to(dtype)
        return self.copies[id(value)]

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        dtype = None
        if torch.is_autocast_enabled("cpu"):
            if func is F.scaled_dot_product_attention:  # `models.sdpa` trains in fp32 on a CPU
                dtype = torch.float32 if self.fp32_attention else torch.bfloat16
            elif func in PRODUCTS:
                dtype = torch.bfloat16
            elif self.on_gpu and func in FP32_ON_GPU:
                dtype = torch.float32
        if dtype is None:
            return func(*args, **kwargs)
        made = func(*(self._cast(a, dtype) for a in args), **{name: self._cast(a, dtype) for name, a in kwargs.items()})
        return made.to(torch.bfloat16) if func is F.scaled_dot_product_attention else made
