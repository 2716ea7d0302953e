"""Quadratic clients under FedRule."""

import numpy as np
import pytest

from tests.support.toys import Toy, configured, quadratics

EQ3 = {"optimizer": "sgd", "control": "eq3", "lr": 0.2, "local_steps": 3}

ZERO = pytest.approx(np.zeros(4), abs=1e-12)


def toy(clients: int = 4, **options: float | str) -> Toy:
    return Toy(configured("fedrule", **{**EQ3, **options}), quadratics(clients))  # type: ignore[arg-type]


def total(federation: Toy) -> np.ndarray:
    return sum((federation.delta(name) for name in federation.clients), np.zeros(4))
