"""Traffic in closed form: each client's ridge regression of residuals, shrunk to one of all clients.

Two sums. First, autocovariances of the residuals of the clients' profiles at lags 0 to H + P − 1, each within ±1. They give
weights S by the normal equations of a stationary series (`linear_forecast`). Then, squared errors by share α and λ.

A client forecasts with W that minimizes ‖Y − XW‖² + λ‖W − αS‖² over its own windows X, Y. Its errors are those of its
validation windows, with S of the other clients. Test data have no part.

Under noise there is the first sum alone, of norm 1 for each client. Each client then chooses α and λ by its own errors.
"""

from collections.abc import Sequence

import numpy as np

from common.arrays import Arrays, Floats
from common.errors import WireError
from common.tasks.closed_form import Entries, RowNames
from common.tasks.traffic.autocovariances import (
    CLIENTS,
    COVARIANCES,
    LAGS,
    NOISE,
    SUMS,
    check_lags,
    covariance_template,
    to_covariances,
    to_sums,
    to_unit,
)
from common.tasks.traffic.options import TrafficOptions
from common.tasks.traffic.properties import POOLED
from common.tasks.traffic.vocabulary import SensorVariables

ERRORS = "lags.errors"
"""Name of a client's errors by choice, and of the number of clients with errors."""

SIZES, CHOICE = "lags.sizes", "lags.choice"
"""Solution, besides the sums over lags: D, L and 1 under noise; α and λ."""

STATICS = (*POOLED, *SUMS, NOISE, SIZES, CHOICE)
"""Names of all untrained inputs of a model."""

PENALTIES = (30.0, 100.0, 300.0, 1e3, 3e3, 1e4, 3e4, 1e5, np.inf)
"""Penalties λ to choose from; ∞ keeps the weights that the ridge is shrunk to."""

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Shares α of the shared weights that the ridge is shrunk to; 0 is the client's own ridge."""

CHOICES = tuple((share, penalty) for share in SHARES for penalty in reversed(PENALTIES))
"""Pairs of α and λ; of equal errors the first is chosen."""

NORMAL_MEDIAN = 0.6745
"""Median of the absolute value of a standard normal number."""

MIDDLE = (0.5, 300.0)
"""α and λ without validation data."""

MOST_ERROR = 4.0
"""Largest mean squared error that a client adds for a choice, in its own variances."""

LASTING = {COVARIANCES: RowNames(lambda solved: (int(solved[SIZES][1]),)), CLIENTS: RowNames(lambda solved: (1,))}
"""Sums that other runs continue, by lag; see `ClosedForm.lasting`."""


ENTRIES = {
    COVARIANCES: Entries(-1, 1, per_record=False),
    CLIENTS: Entries(0, 1, per_record=False),
    ERRORS: Entries(0, MOST_ERROR, per_record=False),
}
"""Ranges of statistics; see `ClosedForm.entries`."""


def best_choice(errors: Floats) -> tuple[float, float]:
    """Return α and λ with the smallest error, from errors in the order of `CHOICES`."""
    return CHOICES[int(np.argmin(errors))]


def sizes(variables: SensorVariables, options: TrafficOptions, noised: bool) -> Arrays:
    """Return the sizes of the sums."""
    return {SIZES: np.array([len(variables.variables), options.history + options.horizon, noised], np.int64)}


def check(solved: Arrays, variables: SensorVariables, options: TrafficOptions, *, noised: bool) -> None:
    """Check that what a server has solved belongs to a run.

    Raises:
        WireError: Sizes differ, or arrays are malformed.
    """
    if not np.array_equal(solved.get(SIZES, 0), expected := sizes(variables, options, noised)[SIZES]):
        raise WireError("the server's sums are not of the variables, history and horizon of this run")
    if LAGS in solved:
        check_lags({name: a for name, a in solved.items() if name in SUMS}, len(variables.variables))
        if len(solved[LAGS]) != expected[1]:
            raise WireError("the server's sums do not have the lags of this run")
    chosen = solved.get(CHOICE, np.ones(2))
    if chosen.shape != (2,) or not (0 <= chosen[0] <= 1 and chosen[1] > 0):
        raise WireError("the server's choice is not a share and a penalty")


def template(solved: Arrays) -> Arrays:
    """Return zeros of a client's next statistics: autocovariances and its presence, then errors by choice."""
    if LAGS in solved:
        return {ERRORS: np.zeros(len(CHOICES) + 1, np.float32)}
    variables, lags, _ = solved[SIZES].tolist()
    return {name: a.astype(np.float32) for name, a in covariance_template(variables, lags).items()}


def lag_statistics(solved: Arrays, sums: Arrays) -> Arrays:
    """Return a client's part of the first sum from its sums over lags."""
    variables, lags, noised = solved[SIZES].tolist()
    packed = to_covariances(sums, covariance_template(variables, lags))
    return {name: a.astype(np.float32) for name, a in (to_unit(packed) if noised else packed).items()}


def error_statistics(errors: Sequence[Floats]) -> Arrays:
    """Return a client's part of the second sum: the mean over its sensors of errors by choice, and a 1."""
    if not errors:
        return {ERRORS: np.zeros(len(CHOICES) + 1, np.float32)}
    bounded = np.nan_to_num(np.minimum(np.mean(errors, axis=0), MOST_ERROR), nan=MOST_ERROR)
    return {ERRORS: np.append(bounded, 1.0).astype(np.float32)}


def solve(solved: Arrays, sums: Arrays, strength: float) -> Arrays:
    """Return what is solved after the next sums."""
    if ERRORS not in sums:
        noise = estimate_noise(sums) if solved[SIZES][2] else 0.0
        given = {CHOICE: np.array([1.0, strength])} if strength else {}
        return {**solved, **to_sums(sums, noise), **given}
    errors, clients = sums[ERRORS][:-1], sums[ERRORS][-1]
    return {**solved, CHOICE: np.array(best_choice(errors) if clients > 0.5 else MIDDLE)}


def estimate_noise(sums: Arrays) -> float:
    """Return the standard deviation of noise on sums of autocovariances, from their second differences.

    Autocovariances change little from lag to lag, and noise is independent. 0 if there are fewer than three lags.
    """
    curved = np.diff(sums[COVARIANCES], 2, axis=0)
    return float(np.median(abs(curved)) / (NORMAL_MEDIAN * np.sqrt(6))) if curved.size else 0.0
