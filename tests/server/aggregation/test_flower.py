"""The adaptive step against Flower's own strategies: equal where the flags match, and where they do not, why.

Flower starts at v₀ = 0, ours at v₀ = τ² (Reddi et al. 2021, Algorithm 2). Flower's FedAdam multiplies η by
√(1−β₂^(r+1))/(1−β₁^(r+1)) with rounds r = 1, 2, …; ours corrects nothing, as the paper's Algorithm 2 does not.
"""

from typing import Any

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.serverapp.strategy import FedAdagrad, FedAdam, FedYogi
from flwr.serverapp.strategy.fedopt import FedOpt

from common.arrays import Arrays, scale, sub
from server.aggregation.optimizers import OptimizerState, Rule, adaptive
from tests.support.toys import instruction

MODEL: Arrays = {"w": np.array([1.0, -2.0, 0.5]), "b": np.array([[3.0]])}
LATE = 1_000_000
"""A round in which Flower's correction has become 1."""


def updates() -> list[Arrays]:
    rng = np.random.default_rng(7)
    return [{n: rng.normal(size=a.shape) for n, a in MODEL.items()} for _ in range(4)]


def flowers(strategy: FedOpt, first_round: int = 1) -> list[Arrays]:
    """Flower's models after each update; a single client of theirs returns θ − Δ."""
    model, models = MODEL, []
    for number, update in enumerate(updates(), first_round):
        strategy.current_arrays = model
        returned = ArrayRecord({n: Array(a) for n, a in sub(model, update).items()})
        content = RecordDict({"arrays": returned, "metrics": MetricRecord({"num-examples": 1})})
        reply = Message(content, reply_to=instruction(2, RecordDict({"config": ConfigRecord({})})))
        arrays, _ = strategy.aggregate_train(number, [reply])
        assert arrays is not None
        model = {n: a.numpy() for n, a in arrays.items()}
        models.append(model)
    return models


def ours(rule: Rule, eta: float, memory: OptimizerState, **flags: float) -> list[Arrays]:
    model, models = MODEL, []
    for update in updates():
        step, memory = adaptive(memory, update, rule, **flags)
        model = sub(model, scale(step, eta))
        models.append(model)
    return models


def from_zero() -> OptimizerState:
    return {"v": {n: np.zeros_like(a) for n, a in MODEL.items()}}


def close(left: list[Arrays], right: list[Arrays]) -> bool:
    return all(np.allclose(a[n], b[n], rtol=1e-12) for a, b in zip(left, right, strict=True) for n in MODEL)


FLAGS: dict[str, Any] = {"beta1": 0.9, "beta2": 0.99, "tau": 0.01}
THEIRS: dict[str, Any] = {"eta": 0.3, "beta_1": 0.9, "beta_2": 0.99, "tau": 0.01}


def test_yogi_from_v_0_equals_flower() -> None:
    assert close(ours("yogi", 0.3, from_zero(), **FLAGS), flowers(FedYogi(**THEIRS)))


def test_adam_from_v_0_equals_flower_once_its_correction_has_decayed() -> None:
    assert close(ours("adam", 0.3, from_zero(), **FLAGS), flowers(FedAdam(**THEIRS), LATE))


def test_adagrad_from_v_0_equals_flower() -> None:
    plain = {**FLAGS, "beta1": 0.0}
    assert close(ours("adagrad", 0.3, from_zero(), **plain), flowers(FedAdagrad(eta=0.3, tau=0.01)))


@pytest.mark.parametrize("rule", ["adam", "yogi"])
def test_the_initial_v_differs_from_flower(rule: Rule) -> None:
    """Under v₀ = 0 the first step is m/√v = ±(1−β₁)/√(1−β₂)·η whatever the size of Δ̄; v₀ = τ² keeps small ones small."""
    strategy = FedAdam(**THEIRS) if rule == "adam" else FedYogi(**THEIRS)
    assert not close(ours(rule, 0.3, {}, **FLAGS), flowers(strategy, LATE))


def test_the_correction_of_flower_is_one_round_ahead() -> None:
    """Adam's first corrected step is 1·η (Kingma & Ba 2015); with the exponent r + 1 it is √(1−.99²)/(1−.9²) = 0.742·η."""
    [first, *_] = flowers(FedAdam(**{**THEIRS, "tau": 1e-12}))
    sizes = np.abs(first["w"] - MODEL["w"]) / 0.3
    assert sizes == pytest.approx(np.full(3, 0.742460), rel=1e-6)
    corrected = 0.3 * np.sqrt(1 - 0.99**2) / (1 - 0.9**2)
    assert close(ours("adam", corrected, from_zero(), **FLAGS)[:1], flowers(FedAdam(**THEIRS))[:1])
