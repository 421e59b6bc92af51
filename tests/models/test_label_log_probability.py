"""Log-probabilities of labels and their gradients, against log_softmax in fp64, whatever is computed at once."""

import pytest
import torch

from models import label_log_probability
from models.label_log_probability import label_logp
from models.token_sampling import log_probabilities


@pytest.mark.parametrize("at_once", [1, 30, 10**6])
@pytest.mark.parametrize("ends", [[2], [2, 0, 5]])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.bfloat16, 4e-3)])
def test_values_and_gradients_are_those_of_the_whole_log_softmax(at_once, ends, dtype, tolerance, monkeypatch) -> None:
    monkeypatch.setattr(label_log_probability, "LOGITS_AT_ONCE", at_once)
    generator = torch.Generator().manual_seed(0)
    logits_NV = (4 * torch.randn(9, 11, generator=generator)).to(dtype).requires_grad_()
    labels_N = torch.tensor([2, 0, 5, 1, 10, 3, 2, 7, 0])
    weights_N = torch.randn(9, generator=generator)
    logp_N = label_logp(logits_NV, labels_N, ends)
    (grad_NV,) = torch.autograd.grad((logp_N * weights_N).sum(), logits_NV)

    exact_NV = logits_NV.detach().double().requires_grad_()
    sets = [ends if label in ends else [label] for label in labels_N.tolist()]
    exact_N = torch.stack([row.log_softmax(0)[own].logsumexp(0) for row, own in zip(exact_NV, sets, strict=True)])
    (exact_grad_NV,) = torch.autograd.grad((exact_N * weights_N).sum(), exact_NV)
    assert logp_N.dtype == torch.float32
    assert grad_NV.dtype == dtype
    torch.testing.assert_close(logp_N.double(), exact_N, atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(grad_NV.double(), exact_grad_NV, atol=tolerance, rtol=tolerance)
    whole_N = log_probabilities(logits_NV, ends).gather(1, labels_N[:, None])[:, 0]
    torch.testing.assert_close(logp_N, whole_N, atol=1e-6, rtol=1e-6)


def test_no_label_has_no_log_probability() -> None:
    logits_NV = torch.zeros((0, 5), requires_grad=True)
    label_logp(logits_NV, torch.zeros(0, dtype=torch.long), [2]).sum().backward()
    assert logits_NV.grad.shape == (0, 5)
