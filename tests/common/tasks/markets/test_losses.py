"""BPR, KL and the Frobenius term, against values computed another way."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.distributions import Normal, kl_divergence

from common.tasks.markets.losses import bpr, contrastive, divergence, frobenius, frobenius_sampled, logits

EDGES = torch.tensor([[0, 1], [0, 4], [2, 3], [3, 8], [5, 6]])


def sample(seed: int = 0, n: int = 9, k: int = 4) -> Tensor:
    return torch.randn(n, k, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def dense(z: Tensor, theta: Tensor) -> Tensor:
    """Compute ‖A − E[A]‖_F² with dense A and E[A]."""
    adjacency = torch.zeros(len(z), len(z), dtype=z.dtype)
    adjacency[EDGES[:, 0], EDGES[:, 1]] = adjacency[EDGES[:, 1], EDGES[:, 0]] = 1
    return (adjacency - torch.sigmoid(theta[0] * z @ z.T + theta[1])).square().sum()


THETA = torch.tensor([1.3, -0.7], dtype=torch.float64)


def test_logits_are_scaled_and_shifted_inner_products() -> None:
    theta, a, b = torch.tensor([2.0, 0.5]), torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, -1.0]])
    assert logits(theta, a, b).tolist() == [2.5]


def test_bpr_is_minus_the_log_of_sigma() -> None:
    positive, negative = torch.tensor([2.0, -30.0]), torch.tensor([1.0, 40.0])
    by_hand = (np.log(1 + np.exp(-1.0)) + 70.0) / 2
    assert float(bpr(positive, negative)) == pytest.approx(by_hand)


def test_contrastive_pulls_neighbors_and_pushes_negatives_up_to_the_margin() -> None:
    rows = torch.tensor([[[0.0, 0.0], [3.0, 4.0], [0.0, 0.5]], [[0.0, 0.0], [0.0, 2.0], [6.0, 0.0]]])
    assert float(contrastive(*rows.unbind(1), 1.5)) == pytest.approx(0.5 * (25 + (1.5 - 0.5) ** 2 + 4 + 0) / 2)


def test_a_triple_without_a_negative_has_no_gradient() -> None:
    z = sample().requires_grad_()
    torch.autograd.backward(contrastive(z[[0, 2, 3]], z[[1, 2, 4]], z[[1, 2, 4]], 1.0))
    assert z.grad is not None
    assert not z.grad.any()


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_divergence_is_that_of_two_normals(seed: int) -> None:
    mean, log_variance, log_prior = torch.split(sample(seed, 27), 9)
    ours = divergence(mean, log_variance, log_prior.exp())
    q, p = Normal(mean, (log_variance / 2).exp()), Normal(torch.zeros_like(mean), (log_prior / 2).exp())
    torch.testing.assert_close(ours, kl_divergence(q, p).sum(1))
    assert (ours > 0).all()


def test_divergence_vanishes_only_where_both_agree() -> None:
    variance = torch.tensor([[0.2, 3.0]])
    assert float(divergence(torch.zeros(1, 2), variance.log(), variance)) == pytest.approx(0, abs=1e-6)
    assert float(divergence(torch.full((1, 2), 0.1), variance.log(), variance)) > 0.01


@pytest.mark.parametrize("block", [1, 4, 9, 100])
def test_blocks_add_up_to_the_dense_norm_and_its_gradient(block: int) -> None:
    z, theta = sample().requires_grad_(), THETA.clone().requires_grad_()
    ours, expected = frobenius(z, theta, EDGES, block), dense(z, theta)
    torch.testing.assert_close(ours, expected)
    for mine, right in zip(
        torch.autograd.grad(ours, (z, theta)), torch.autograd.grad(expected, (z, theta)), strict=True
    ):
        torch.testing.assert_close(mine, right)


def test_the_sampled_norm_is_unbiased() -> None:
    z = sample()
    each = [
        float(frobenius_sampled(z, THETA, torch.tensor([row]), EDGES[[edge]], len(EDGES)))
        for row in range(len(z))
        for edge in range(len(EDGES))
    ]
    assert np.mean(each) == pytest.approx(float(dense(z, THETA)))
    assert np.std(each) > 0.1, "single rows and edges have a large variance"


def test_all_rows_and_edges_are_no_sample() -> None:
    z = sample()
    whole = frobenius_sampled(z, THETA, torch.randperm(9), EDGES, len(EDGES))
    torch.testing.assert_close(whole, dense(z, THETA))
