"""Empirical audit of the mechanisms: lower bounds on ε stay below the claimed ε."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import beta

from common.privacy.accounts import Pure, Zcdp
from common.privacy.mechanisms.gaussian import Gaussian
from common.privacy.mechanisms.laplace import Laplace
from common.privacy.mechanisms.privunit import PrivUnit
from common.privacy.mechanisms.spec import Mechanism


def audited(mechanism: Mechanism, claimed: float, noise: Callable[[], np.random.Generator]) -> float:
    """Return a lower bound on ε at 95 % (Clopper-Pearson, δ = 1e-5).

    A canary's membership is guessed from ⟨answer, canary⟩.
    """
    canary, trials, delta = np.array([1.5, 0, 0, 0, 0]), 20_000, 1e-5
    present, absent = (
        np.array([mechanism.release(one, noise(), True)[0] for _ in range(trials)]) for one in (canary, -canary)
    )
    best = 0.0
    for cut in np.quantile(np.concatenate([present, absent]), np.linspace(0.02, 0.98, 25)):
        hits, alarms = int((present > cut).sum()), int((absent > cut).sum())
        low = beta.ppf(0.025, hits, trials - hits + 1) if hits else 0.0
        high = beta.ppf(0.975, alarms + 1, trials - alarms) if alarms < trials else 1.0
        best = max(best, math.log(max(low - delta, 1e-300) / high))
    return best


@pytest.mark.parametrize(
    ("mechanism", "claimed"),
    [
        (Gaussian(Zcdp().total(2, 1e-5), 1.5), 2.0),
        (Laplace(Pure().total(2, 1e-5), 1.5), 2.0),
        (PrivUnit(2.0, 1.5, 5), 2.0),
    ],
    ids=lambda m: getattr(m, "name", ""),
)
def test_an_audit_does_not_refute_the_claim(mechanism: Mechanism, claimed: float) -> None:
    rng = np.random.default_rng(7)
    found = audited(mechanism, claimed, lambda: rng)
    assert 0.2 < found <= claimed


class Silent(np.random.Generator):
    """Draws of a client without noise."""

    def standard_normal(self, *shape: object, **_: object) -> NDArray[np.float64]:  # type: ignore[override]
        return 0.05 * np.asarray(super().standard_normal(*shape))


def test_the_audit_refutes_a_mechanism_that_forgets_its_noise() -> None:
    rng = Silent(np.random.PCG64(7))
    assert audited(Gaussian(Zcdp().total(2, 1e-5), 1.5), 2.0, lambda: rng) > 3 * 2.0
