"""Initial centroids of a market's clusters."""

import numpy as np
import torch
from torch import Tensor

from client.trainers.pfgnn import initialize_centroids


def source(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def groups() -> tuple[Tensor, Tensor]:
    """Return thirty items around three distant directions, and the directions."""
    directions = 9 * torch.eye(3, 4)
    return directions.repeat(10, 1) + 0.01 * torch.randn(30, 4, generator=source(1)), directions


def test_centroids_are_spread_over_the_items_and_matched_to_the_reference() -> None:
    items, directions = groups()
    for seed in range(5):
        for order in ([0, 1, 2], [2, 0, 1]):
            kappa = initialize_centroids(items, torch.zeros(3, 4), 5 * directions[order], source(seed))
            np.testing.assert_allclose(kappa.numpy(), directions[order].numpy(), atol=0.1)


def test_the_seed_determines_the_centroids() -> None:
    items = torch.randn(50, 4, generator=source(2))
    start = torch.randn(5, 4, generator=source(3))
    once, again, other = (initialize_centroids(items, start, start, source(seed)) for seed in (0, 0, 1))
    assert once.equal(again)
    assert not once.equal(other)


def test_clusters_beyond_the_distinct_items_keep_the_server_s_centroid() -> None:
    start = 7 * torch.eye(4)
    items = torch.tensor([[0.0, 0.0, 1.0, 0.0], [1.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]])
    kappa = initialize_centroids(items, start, start, source())
    assert kappa.tolist() == [[1, 0, 0, 0], [0, 7, 0, 0], [0, 0, 1, 0], [0, 0, 0, 7]]
    assert start.equal(7 * torch.eye(4)), "the argument is not changed"


def test_identical_items_give_finite_centroids() -> None:
    start = torch.eye(3)
    assert initialize_centroids(torch.zeros(5, 3), start, start, source()).isfinite().all()
