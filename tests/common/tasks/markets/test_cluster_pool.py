"""Invariants of the clustering operator and its inverse (algorithms.md §5.10)."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from common.tasks.markets.model import Summary, assignments, summarize, unpool

both = pytest.mark.parametrize("summary", ["sum", "centroid"])


def drawn(seed: int, n: int = 40, c: int = 5, k: int = 8) -> tuple[Tensor, Tensor, Tensor]:
    """Return Z, κ and C."""
    source = torch.Generator().manual_seed(seed)
    z = torch.randn(n, k, generator=source, dtype=torch.float64)
    kappa = torch.randn(c, k, generator=source, dtype=torch.float64)
    return z, kappa, assignments(z, kappa, 1.0)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), tau=st.sampled_from([1e-3, 0.1, 1.0, 10.0, 1e4]))
def test_rows_of_c_are_the_kernel_and_sum_to_one(seed: int, tau: float) -> None:
    z, kappa, _ = drawn(seed)
    c = assignments(z, kappa, tau)
    kernel = np.array([[(1 + float((a - b).square().sum()) / tau) ** (-(tau + 1) / 2) for b in kappa] for a in z])
    np.testing.assert_allclose(c.numpy(), kernel / kernel.sum(1, keepdims=True), rtol=1e-9)
    assert torch.allclose(c.sum(1), torch.ones(len(z), dtype=c.dtype))
    assert ((c > 0) & (c <= 1)).all()


def test_large_tau_is_a_gaussian_kernel() -> None:
    z, kappa, _ = drawn(0)
    gauss = torch.softmax(-0.5 * torch.cdist(z, kappa).square(), dim=1)
    torch.testing.assert_close(assignments(z, kappa, 1e9), gauss, rtol=1e-5, atol=1e-8)


def test_an_item_on_a_centroid_belongs_to_it_and_its_gradient_is_finite() -> None:
    z = torch.tensor([[1.0, 0.0], [0.0, 1.0]], requires_grad=True)
    kappa = torch.tensor([[1.0, 0.0], [-3.0, 0.0]])
    c = assignments(z, kappa, 1e-3)
    assert float(c.detach()[0, 0]) == pytest.approx(1 / (1 + 16_001**-0.5005))
    [slope] = torch.autograd.grad(c[:, 0].sum(), z)
    assert slope.isfinite().all()


@both
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_unpooling_projects_on_the_columns_of_c(summary: Summary, seed: int) -> None:
    z, _, c = drawn(seed)
    xi = summarize(c, z, summary)
    back = unpool(c, xi, summary)
    assert not back.degenerate
    fitted = c.numpy() @ np.linalg.lstsq(c.numpy(), z.numpy(), rcond=None)[0]
    np.testing.assert_allclose(back.embeddings.numpy(), fitted, atol=1e-6)
    residual = np.linalg.lstsq(c.numpy(), z.numpy(), rcond=None)[1]
    np.testing.assert_allclose((z - back.embeddings).square().sum(0).numpy(), residual, rtol=1e-6)
    torch.testing.assert_close(summarize(c, back.embeddings, summary), xi, rtol=1e-6, atol=1e-8)
    torch.testing.assert_close(back.embeddings.sum(0), z.sum(0), rtol=1e-6, atol=1e-8)


@both
def test_summarizing_again_changes_nothing(summary: Summary) -> None:
    z, _, c = drawn(3)
    once = unpool(c, summarize(c, z, summary), summary).embeddings
    twice = unpool(c, summarize(c, once, summary), summary).embeddings
    torch.testing.assert_close(twice, once)
    assert torch.linalg.matrix_rank(once) == 5


@pytest.mark.parametrize("c", [6, 9])
def test_as_many_clusters_as_items_give_the_items_back(c: int) -> None:
    z, kappa, _ = drawn(1, n=6, c=c)
    of_each = assignments(z, kappa, 1.0)
    torch.testing.assert_close(unpool(of_each, of_each.T @ z, "sum").embeddings, z, rtol=1e-4, atol=1e-4)


def test_a_centroid_is_the_mean_of_a_hard_cluster() -> None:
    z = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 9.0]])
    hard = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    torch.testing.assert_close(summarize(hard, z, "sum"), torch.tensor([[4.0, 6.0], [5.0, 9.0]]))
    torch.testing.assert_close(summarize(hard, z, "centroid"), torch.tensor([[2.0, 3.0], [5.0, 9.0]]))


def test_coinciding_clusters_are_reported_and_do_not_fail() -> None:
    z, kappa, _ = drawn(2)
    kappa[1] = kappa[0]
    c = assignments(z, kappa, 1.0)
    xi = summarize(c, z, "sum")
    back = unpool(c, xi, "sum")
    assert back.degenerate
    assert back.condition > 1e8
    projector = c.numpy() @ np.linalg.pinv(c.numpy(), rcond=1e-6)
    np.testing.assert_allclose(back.embeddings.numpy(), projector @ z.numpy(), atol=1e-4)
    torch.testing.assert_close(c.T @ back.embeddings, xi, rtol=1e-4, atol=1e-4)


@both
@pytest.mark.parametrize("apart", [1.0, 1e-5, 0.0])
def test_gradients_through_the_round_trip_are_right(summary: Summary, apart: float) -> None:
    z, kappa, _ = drawn(5, n=12, c=3, k=4)
    kappa[1] = kappa[0] + apart * (kappa[1] - kappa[0])
    c = assignments(z, kappa, 1.0)
    assert unpool(c, c.T @ z, "sum").degenerate == (apart < 1)

    def round_trip(z: Tensor, kappa: Tensor) -> Tensor:
        c = assignments(z, kappa, 1.0)
        return unpool(c, summarize(c, z, summary), summary).embeddings

    assert torch.autograd.gradcheck(round_trip, (z.requires_grad_(), kappa.requires_grad_()))
