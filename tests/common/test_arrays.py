"""Named arrays: arithmetic without side effects, and the checks on received arrays."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.arrays import (
    add,
    add_prefix,
    all_finite,
    check_like,
    group,
    mean,
    norm,
    scale,
    sha256,
    sub,
    total_of,
    zeros_like,
)
from common.errors import WireError

A = {"w": np.array([[1.0, -2.0]], np.float32), "b": np.array(3.0, np.float32)}
B = {"b": np.array(1.0, np.float32), "w": np.array([[4.0, 8.0]], np.float32)}


def test_arithmetic_goes_by_name_and_keeps_the_left_sides_order() -> None:
    assert {n: a.tolist() for n, a in add(A, B).items()} == {"w": [[5, 6]], "b": 4}
    assert {n: a.tolist() for n, a in sub(A, B).items()} == {"w": [[-3, -10]], "b": 2}
    assert list(add(B, A)) == ["b", "w"]
    assert {n: a.tolist() for n, a in zeros_like(A).items()} == {"w": [[0, 0]], "b": 0}


def test_different_names_raise_value_error() -> None:
    with pytest.raises(ValueError, match=r"arrays differ in names: \['b'\]"):
        add(A, {"w": A["w"]})
    with pytest.raises(ValueError, match="arrays differ"):
        mean([A, {"w": A["w"]}], [1, 1])


def test_scaling_keeps_the_type() -> None:
    scaled = scale({"w": np.array([2.0], np.float32), "n": np.array([3])}, 0.5)
    assert (scaled["w"].dtype, scaled["n"].dtype) == (np.float32, np.int64)
    assert (scaled["w"].tolist(), scaled["n"].tolist()) == ([1.0], [1])


def test_the_norm_is_that_of_one_long_vector() -> None:
    assert norm({"a": np.array([3.0]), "b": np.array([[4.0]])}) == 5.0
    assert norm({}) == 0.0
    assert norm({"n": np.full(4, 200, np.uint8)}) == 400.0, "squares are taken in float64"


def test_the_mean_is_weighted_and_summed_in_float64() -> None:
    assert {n: a.tolist() for n, a in mean([A, B], [3, 1]).items()} == {"w": [[1.75, 0.5]], "b": 2.5}
    tiny = {"w": np.array([1e-4], np.float32)}
    assert mean([{"w": np.array([1e4], np.float32)}] + [tiny] * 9999, [1.0] * 10_000)["w"][0] == pytest.approx(
        1.0001, rel=1e-7
    )
    assert mean([A], [0.1])["w"].dtype == np.float32


@given(st.lists(st.floats(0.1, 10), min_size=2, max_size=5), st.floats(0.5, 4))
def test_only_the_weights_proportions_matter(weights: list[float], factor: float) -> None:
    members = [{"w": np.arange(3.0) + k} for k in range(len(weights))]
    scaled = mean(members, [factor * w for w in weights])
    np.testing.assert_allclose(mean(members, weights)["w"], scaled["w"], rtol=1e-12)


@pytest.mark.parametrize(("members", "weights"), [([], []), ([A], [0.0]), ([A, B], [1.0, -1.0])])
def test_a_mean_without_weight_is_refused(members: list[dict[str, np.ndarray]], weights: list[float]) -> None:
    with pytest.raises(ValueError, match="at least one member of positive weight"):
        mean(members, weights)


def test_arguments_are_not_changed() -> None:
    before = sha256(A), sha256(B)
    add(A, B), sub(A, B), scale(A, 2), mean([A, B], [1, 2]), zeros_like(A), add_prefix("p", A), norm(A)
    assert (sha256(A), sha256(B)) == before


def test_group_inverts_prefixed() -> None:
    both = {**add_prefix("m", A), **add_prefix("model", B)}
    assert list(group("m", both)) == ["w", "b"]
    assert sha256(group("model", both)) == sha256(B)


@pytest.mark.parametrize(("value", "finite"), [(1.0, True), (np.nan, False), (np.inf, False)])
def test_finiteness(value: float, finite: bool) -> None:
    assert all_finite({"n": np.array([1]), "w": np.array([0.0, value])}) is finite


@pytest.mark.parametrize(
    ("arrays", "text"),
    [
        ({"w": A["w"]}, r"update: arrays \['b'\] are missing or unknown"),
        ({**A, "c": A["b"]}, r"update: arrays \['c'\] are missing or unknown"),
        ({**A, "w": A["w"].T}, r"update: array 'w' is float32\[2, 1\], expected float32\[1, 2\]"),
        ({**A, "b": A["b"].astype(np.float64)}, r"update: array 'b' is float64\[\], expected float32\[\]"),
        ({**A, "w": np.array([[np.nan, 0]], np.float32)}, "update: non-finite"),
        ({**A, "w": np.array([[-np.inf, 0]], np.float32)}, "update: non-finite"),
    ],
)
def test_a_difference_from_the_template_is_named(arrays: dict[str, np.ndarray], text: str) -> None:
    check_like(A, A, "update")
    with pytest.raises(WireError, match=text):
        check_like(arrays, A, "update")


def test_a_fingerprint_is_of_names_types_shapes_and_values() -> None:
    assert sha256(A) == sha256(dict(reversed(A.items())))
    assert len({sha256(x) for x in (A, B, {"w": A["w"]}, {**A, "w": A["w"].T}, {**A, "b": np.array(3.0)})}) == 5
    assert sha256({"w": np.arange(6).reshape(2, 3).T}) == sha256(
        {"w": np.ascontiguousarray(np.arange(6).reshape(2, 3).T)}
    )


def test_a_total_has_the_same_bits_on_every_python() -> None:
    tenths = [0.1] * 10
    assert total_of(tenths) == 0.9999999999999999  # as `sum` on Python 3.11; on later ones it gives 1.0
    assert total_of(iter([1e16, 1.0, -1e16])) == total_of([]) == 0.0
    assert norm({str(k): np.float64(1e8 if k == 0 else 1.0) for k in range(11)}) == 1e8
    assert mean([{"w": np.ones(1)}] * 10, tenths)["w"].tolist() == [1.0]
    assert total_of([1e308, 1e308]) == math.inf
