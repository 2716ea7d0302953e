"""Noise of rows of the ratings study."""

from common.privacy.accounts import rho_of
from studies.harness.experiment import Experiment, Settings
from studies.ratings.paper_figures import DELTA

MECHANISMS = {"privunit": "PrivUnitG", "gaussian": "Gaussian", "laplace": "Laplace"}

HELPERS = "helpers"
"""Noise of two helpers on the sum of all reports, in place of noise of each client."""

NOISES = {HELPERS: "two helpers on the sum", **MECHANISMS}
"""Noise: key -> title."""


def mechanism_of(one: Experiment) -> str:
    """Return the noise, such as `gaussian` or `helpers`; empty without noise."""
    if one.settings.get("privacy.trust") == HELPERS:
        return HELPERS
    return str(one.settings.get("privacy.mechanism", ""))


def epsilon_of_run(one: Experiment) -> float:
    """Return ε of the run; 0 without noise."""
    return float(one.settings.get("privacy.epsilon", 0.0))


def budget_share(one: Experiment, spent: float) -> float:
    """Return the share of the run's budget that an ε is, in the unit of its account."""
    if mechanism_of(one) in ("gaussian", HELPERS):
        return rho_of(spent, DELTA) / rho_of(epsilon_of_run(one), DELTA)
    return spent / epsilon_of_run(one)


def noise_settings(mechanism: str, epsilon: float) -> Settings:
    """Return user-level local privacy with every upload scaled to the clip; nothing without a mechanism."""
    if not mechanism:
        return {}
    if mechanism == HELPERS:
        return {"privacy.unit": "client", "privacy.epsilon": epsilon, "privacy.trust": HELPERS}
    privacy: Settings = {
        **{"unit": "client", "mechanism": mechanism, "epsilon": epsilon, "normalise": True},
        "accept-noise": True,
    }
    return {f"privacy.{key}": value for key, value in privacy.items()}
