"""The fused loss against torch's cross-entropy of scores."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from studies.sessions.loss import next_item_loss

V, D = 9, 5


@pytest.mark.parametrize("scale", [1.0, 1000.0])
def test_the_loss_from_vectors_is_the_cross_entropy_of_scores(scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("studies.sessions.loss.ITEMS_AT_ONCE", 4)  # V = 9 makes a last chunk of one
    generator = torch.Generator().manual_seed(6)
    vectors = (scale * torch.randn(5, D, generator=generator)).requires_grad_()
    table, target = torch.randn(V + 1, D, generator=generator).requires_grad_(), torch.tensor([0, 8, 3, 3, 7])

    def results(each: Callable[[], Tensor]) -> tuple[Tensor, ...]:
        found = each()
        return found.detach(), *torch.autograd.grad(found @ torch.arange(5.0), (vectors, table))

    fused = results(lambda: next_item_loss(vectors, table, target))
    plain = results(lambda: cross_entropy(vectors @ table[1:].T, target, reduction="none"))
    for found, expected in zip(fused, plain, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6 * scale)
    assert (fused[2][0] == 0).all()
