"""Means of clusters from an opened sum."""

import numpy as np
import pytest

from common.arrays import Arrays, norm
from common.secure.layout import SumLayout, mark, to_clusters, update_clip
from server.secure.sums import ClusterSums, Total

K, SMALLEST = 3, 5
TEMPLATE = to_clusters({"update/w": np.zeros(4)}, 0, K)


def sums(sizes: list[float], update: float, clip: float = 0.0, spread: float = 0.0) -> ClusterSums:
    """Return sums in which every number of every cluster's update is `update`."""
    arrays: Arrays = {"cluster": np.array(sizes) * mark(clip)}
    arrays |= {f"update/{j}/w": np.full(4, update) for j in range(K)}
    names = [f"client-{k}" for k in range(20)]
    total = Total(SumLayout.of(arrays).vector(arrays), names, dict.fromkeys(names, 3), spread=spread)
    return ClusterSums.of(total, TEMPLATE, K, clip)


def test_clusters_of_too_few_clients_have_no_mean() -> None:
    found = sums([10, 4, 6], 30.0).means(SMALLEST)
    assert {*found} == {"update/0/w", "update/2/w"}
    np.testing.assert_array_equal(found["update/0/w"], np.full(4, 3.0))
    np.testing.assert_array_equal(found["update/2/w"], np.full(4, 5.0))


@pytest.mark.parametrize(("size", "has_mean"), [(4.4, False), (4.6, True), (-20.0, False)])
def test_with_noise_the_rounded_estimate_of_the_size_decides(size: float, has_mean: bool) -> None:
    found = sums([10, size, 6], 1.0, clip=2.0, spread=0.1)
    assert ("update/1/w" in found.means(SMALLEST)) is has_mean
    assert found.sizes[1] == round(size)


def test_no_liar_moves_a_cluster_by_more_than_one_update_and_noise() -> None:
    spread = 0.1
    found = sums([10, 5, 6], 1e6, clip=2.0, spread=spread).means(SMALLEST)
    assert norm({"": found["update/1/w"]}) == pytest.approx(update_clip(2.0) + 1.1 * spread * 2 / 5)


def test_weights_of_records_divide_where_there_are_some() -> None:
    template = to_clusters({"update/w": np.zeros(4), "weight": np.zeros(1)}, 0, K)
    arrays = {**template, "cluster": np.array([6.0, 6.0, 0.0]), "weight": np.array([2.0, 0.0, 0.0])}
    arrays["update/0/w"] = np.full(4, 3.0)
    found = ClusterSums.of(Total(SumLayout.of(arrays).vector(arrays), [], {}), template, K, 0.0).means(SMALLEST)
    assert {*found} == {"update/0/w"}
    np.testing.assert_array_equal(found["update/0/w"], np.full(4, 1.5))
