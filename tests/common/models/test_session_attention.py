"""Target attention: chunks change nothing, and the gradients written by hand are right."""

import pytest
import torch
from torch import Tensor

from common.models import session_attention
from common.models.session_attention import target_scores


def attention_case() -> tuple[Tensor, ...]:
    """Candidates, keys, values and a mask that keeps 4, 2 and no click of three sessions."""
    generator = torch.Generator().manual_seed(5)
    e = torch.randn(7, 3, generator=generator, dtype=torch.float64)
    keys, values = torch.randn(2, 3, 4, 3, generator=generator, dtype=torch.float64)
    return e, keys, values, (torch.arange(4) < torch.tensor([[4], [2], [0]])).double()


def test_attention_in_chunks_is_attention_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    *tensors, mask = (t.requires_grad_() for t in attention_case())

    def results() -> tuple[Tensor, ...]:
        found = target_scores(tensors[0], tensors[1], tensors[2], mask)
        return found.detach(), *torch.autograd.grad(found.square().sum(), tensors)

    at_once = results()
    monkeypatch.setattr(session_attention, "NUMBERS_AT_ONCE", 2 * mask.numel())  # two candidates a chunk
    for chunked, whole in zip(results(), at_once, strict=True):
        torch.testing.assert_close(chunked, whole)


def test_gradients_of_attention_are_its_finite_differences() -> None:
    e, keys, values, mask = attention_case()
    inputs = (e.requires_grad_(), keys.requires_grad_(), values.requires_grad_())
    assert torch.autograd.gradcheck(lambda *tensors: target_scores(*tensors, mask), inputs)
    assert (target_scores(e, keys, values, mask)[2] == 0).all()
