"""Built-in mechanisms, and the mechanism and account of a run's options."""

from common.privacy.accounts import Account
from common.privacy.mechanisms.base import AccountedMechanism, Mechanism, MechanismSpec
from common.privacy.mechanisms.dp_sgd import DP_SGD
from common.privacy.mechanisms.vector import GAUSSIAN, LAPLACE, PRIVUNIT
from common.privacy.options import PrivacyOptions
from common.secure.noise import DISCRETE_GAUSSIAN

VECTOR_MECHANISMS: tuple[MechanismSpec[Mechanism], ...] = (GAUSSIAN, LAPLACE, PRIVUNIT)
"""Mechanisms for one vector, by `privacy.mechanism`."""


def select_spec(options: PrivacyOptions) -> MechanismSpec[AccountedMechanism]:
    """Return the spec of the mechanism that protects the unit of a run."""
    if options.unit in DP_SGD.units:
        return DP_SGD
    return DISCRETE_GAUSSIAN if options.resolved_trust == "helpers" else _vector_spec(options)


def build_account(options: PrivacyOptions) -> Account:
    """Return the account in which a run with these options is cheapest.

    Raises:
        ConfigError: ε is too small for the account at that δ.
    """
    return select_spec(options).account(options)


def build_mechanism(options: PrivacyOptions, cost: float, dimension: int) -> Mechanism:
    """Return the mechanism of `privacy.mechanism` that has that cost in its account.

    Raises:
        RefusedError: The cost is zero, negative, NaN or infinite, or the dimension is 0.
    """
    return _vector_spec(options).calibrate(options, cost, dimension)


def _vector_spec(options: PrivacyOptions) -> MechanismSpec[Mechanism]:
    return next(spec for spec in VECTOR_MECHANISMS if spec.name == options.mechanism)
