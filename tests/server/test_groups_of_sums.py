"""Groups and clusters of a round's secure sums: who is in which, and their means."""

import numpy as np
import pytest

from common.arrays import Arrays, norm
from common.contribution import MAGNITUDE, UPDATE, Contribution, Member
from common.secure.layout import SumLayout, mark, to_clusters, update_clip
from server.aggregation.robust import median_of
from server.secure.sums import ClusterSums, Total, assign

NAMES = [f"c{k:02}" for k in range(11)]


def opened(*names: str, update: list[float], magnitude: list[float]) -> Contribution:
    """Return the contribution of an opened sum whose members made three local steps."""
    total = Contribution()
    total.record([Member(name, steps=3) for name in names])
    total.dtypes = {"w": np.dtype(np.float32)}
    for kind, mean in ((UPDATE, update), (MAGNITUDE, magnitude)):
        total.add_sums(kind, {"w": np.array(mean) * len(names) / 3})
    return total


@pytest.mark.parametrize("groups", [3, 4])
def test_groups_have_nearly_equal_sizes_and_are_drawn_anew_in_each_round(groups: int) -> None:
    drawn = [assign(NAMES, groups, 7, number, {}) for number in range(1, 6)]
    for one in drawn:
        sizes = np.bincount([*one.values()])
        assert (len(sizes), sizes.max() - sizes.min() <= 1, one.keys()) == (groups, True, set(NAMES))
    assert len({tuple(sorted(one.items())) for one in drawn}) == 5
    assert drawn[0] == assign(NAMES[::-1], groups, 7, 1, {}) != assign(NAMES, groups, 8, 1, {})


def test_who_was_asked_before_stays_and_the_others_fill_the_smallest_group() -> None:
    before = {"c00": 2, "c01": 2, "gone": 1}
    found = assign(NAMES, 3, 7, 1, before)
    assert {name: found[name] for name in before} == before
    assert np.bincount([*found.values()]).tolist() == [4, 4, 4]


def test_the_median_is_that_of_each_number_and_keeps_magnitudes_above_it() -> None:
    honest, other = opened("a", update=[1, 2], magnitude=[1, 2]), opened("b", update=[3, -2], magnitude=[4, 2])
    liar = opened("c", update=[1e30, -1e30], magnitude=[1e30, 1e30])
    found = median_of([other, liar, honest])
    assert found.names == ["a", "b", "c"]
    assert found.steps == {"a": 3, "b": 3, "c": 3}
    delta, magnitude = found.mean_and_magnitude()
    np.testing.assert_allclose(delta["w"], np.float32([3, -2]), rtol=1e-6)
    assert (np.abs(delta["w"]) <= magnitude["w"]).all()
    assert delta["w"].dtype == np.float32
    assert median_of([honest]) is honest


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
