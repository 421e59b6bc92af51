"""T5's norm and GELU as single kernels: results, gradients and weight names equal those of transformers."""

import pytest
import torch
from transformers import AutoModel, AutoModelForSeq2SeqLM, PreTrainedModel
from transformers.activations import NewGELUActivation
from transformers.models.t5.modeling_t5 import T5LayerNorm

from models.fused_kernels import FusedNorm, fuse_kernels
from tests.helpers.devices import cpu_and_gpu


def test_the_norm_is_that_of_t5() -> None:
    """The kernel of a GPU is torch's, which has the same operations for a CPU."""
    torch.manual_seed(0)
    plain = T5LayerNorm(16, eps=1e-6)
    torch.nn.init.normal_(plain.weight)
    states = torch.randn(3, 5, 16) * 30
    kernel = torch.nn.functional.rms_norm(states, (16,), plain.weight, plain.variance_epsilon)
    torch.testing.assert_close(kernel, plain(states), rtol=1e-5, atol=1e-5)
    assert torch.equal(FusedNorm(plain)(states), plain(states))


@cpu_and_gpu("networks with fused kernels compute as transformers' do")
@pytest.mark.parametrize(("name", "family"), [("t5", AutoModelForSeq2SeqLM), ("big_bird", AutoModel)])
def test_a_network_computes_the_same(name, family, device, checkpoints) -> None:
    plain: PreTrainedModel = family.from_pretrained(checkpoints[name], dtype=torch.float32).to(device).train(False)
    fused: PreTrainedModel = family.from_pretrained(checkpoints[name], dtype=torch.float32).to(device).train(False)
    fuse_kernels(fused)
    fuse_kernels(fused)  # a second time changes nothing
    assert not any(isinstance(module, NewGELUActivation) for module in fused.modules())
    assert fused.state_dict().keys() == plain.state_dict().keys()
    ids = torch.arange(5, 29, device=device).view(2, 12) % plain.config.vocab_size
    answers = {"labels": ids[:, :4].contiguous()} if name == "t5" else {}
    outputs = [network(input_ids=ids, **answers) for network in (plain, fused)]
    states = [output.logits if name == "t5" else output.last_hidden_state for output in outputs]
    torch.testing.assert_close(states[1], states[0], rtol=1e-4, atol=1e-5)
    for each in states:
        each.square().mean().backward()
    gradients = dict(fused.named_parameters())
    for key, parameter in plain.named_parameters():
        if parameter.grad is not None:
            torch.testing.assert_close(gradients[key].grad, parameter.grad, rtol=1e-3, atol=1e-5)
