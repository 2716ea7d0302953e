"""Server optimizers against numbers by hand."""

import numpy as np
import pytest

from common.arrays import sha256
from server.aggregation.optimizers import OptimizerState, adaptive, momentum, second_moment

UPDATES = (0.5, -0.25, 1.0)


def steps(rule: str) -> list[float]:
    memory: OptimizerState = {}
    out = []
    for d in UPDATES:
        step, memory = adaptive(memory, {"w": np.array([d])}, rule, beta1=0.9, beta2=0.99, tau=0.1)  # type: ignore[arg-type]
        out.append(float(step["w"][0]))
    return out


def test_adam_by_hand() -> None:
    """Three steps of Reddi et al. 2021, Algorithm 2, written out.

    m, v = 0, 0.1**2
    for d in (0.5, -0.25, 1.0):
        m, v = 0.9 * m + 0.1 * d, 0.99 * v + 0.01 * d * d
        print(m / (v ** 0.5 + 0.1))
    """
    assert steps("adam") == pytest.approx([0.23656848451250911, 0.09364060038073353, 0.4702995664078631], rel=1e-12)


def test_yogi_by_hand() -> None:
    """The same with Yogi's second moment.

    m, v = 0, 0.1**2
    for d in (0.5, -0.25, 1.0):
        m = 0.9 * m + 0.1 * d
        v = v - 0.01 * d * d * (1 if v > d * d else -1)
        print(m / (v ** 0.5 + 0.1))
    """
    assert steps("yogi") == pytest.approx([0.2360679774997897, 0.0932121111929344, 0.46812567347655226], rel=1e-12)


def test_yogi_leaves_v_unchanged_where_it_equals_the_square() -> None:
    v = second_moment("yogi", np.array([4.0, 4.0, 1.0]), np.array([4.0, 1.0, 4.0]), 0.9)
    assert v.tolist() == pytest.approx([4.0, 4.0 - 0.1 * 1, 1.0 + 0.1 * 4])


def test_momentum_by_hand() -> None:
    """M ← 0.5 m + Δ: 1, then 0.5·1 + 2 = 2.5, then 0.5·2.5 + 0 = 1.25."""
    memory: OptimizerState = {}
    seen = []
    for d in (1.0, 2.0, 0.0):
        m, memory = momentum(memory, {"w": np.array([d])}, 0.5)
        seen.append(float(m["w"][0]))
    assert seen == [1.0, 2.5, 1.25]


def test_zero_momentum_is_the_mean_itself_and_stores_nothing() -> None:
    update = {"w": np.array([1.0])}
    assert momentum({}, update, 0.0) == (update, {})


@pytest.mark.parametrize("rule", ["adam", "yogi"])
def test_other_groups_are_passed_on_and_arguments_are_unchanged(rule: str) -> None:
    memory: OptimizerState = {"mean.3": {"w": np.ones(2, np.float32)}}
    update = {"w": np.array([0.5, -1.0], np.float32)}
    before = sha256(update)
    step, after = adaptive(memory, update, rule, beta1=0.9, beta2=0.99, tau=1e-3)  # type: ignore[arg-type]
    kept = {key: sha256(a) for key, a in after.items()}
    adaptive(after, update, rule, beta1=0.9, beta2=0.99, tau=1e-3)  # type: ignore[arg-type]
    assert {key: sha256(a) for key, a in after.items()} == kept
    assert (sorted(memory), sorted(after), sha256(update)) == (["mean.3"], ["m", "mean.3", "v"], before)
    assert {a.dtype for a in (step["w"], after["m"]["w"], after["v"]["w"])} == {np.dtype(np.float32)}
