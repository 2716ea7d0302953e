"""Autocovariances for federated ridge regression: products of residuals ℓ steps apart.

They are summed over sensors and give a linear forecast for all clients (explore-traffic.md §4, target 1). Gram matrices of
sliding windows are not sent. Their neighboring entries differ by products of a series' first and last readings, which could be
solved for.
"""

import math
from collections.abc import Mapping

import numpy as np

from common.arrays import Array, Arrays, Flags, Floats, Ints
from common.errors import WireError

SUMS = LAGS, PAIRS = "lags.products", "lags.pairs"
"""Names of the sums: Σ_t d_t·d_{t+ℓ}ᵀ, L × D × D, and their numbers of pairs of readings, L."""

COVARIANCES, CLIENTS = "lags.covariances", "lags.clients"
"""Names of the same in secure sums: Σ of the clients' autocovariances, L × D × D, and their number."""

NOISE = "lags.noise"
"""Name of the standard deviation of noise on the summed products; absent without noise."""

DIAGONAL_SHARE = 0.01
"""Ridge term on the diagonal of the covariances, as a share of their mean variance."""

NOISE_SHARE = 2.0
"""Ridge term of noised covariances, as a share of the norm of a Toeplitz matrix of noise."""


def lag_sums(departures: Floats, usable: Flags, lags: int) -> Arrays:
    """Compute one sensor's sums; zeros if it has fewer than 2·`lags` usable readings.

    Few readings could be reconstructed from their sums.

    Args:
        departures: Residuals d of the profile, in standard deviations, T × D.
        usable: True for readings that count, T.
        lags: Number L of lags, from 0.
    """
    length, variables = departures.shape
    products, pairs = np.zeros((lags, variables, variables)), np.zeros(lags)
    if usable.sum() >= 2 * lags:
        used = np.where(usable[:, None], departures, 0.0)
        for lag in range(lags):
            products[lag] = used[: length - lag].T @ used[lag:]
            pairs[lag] = np.count_nonzero(usable[: length - lag] & usable[lag:])
    return {LAGS: products, PAIRS: pairs}


def check_lags(sums: Arrays, variables: int) -> None:
    """Check a client's sums.

    Raises:
        WireError: Arrays have other names, types or shapes, or their values cannot be such sums.
    """
    if set(sums) != set(SUMS) or any(sums[name].dtype != np.float64 for name in SUMS):
        raise WireError("counts: arrays are not sums over lags")
    products, pairs = sums[LAGS], sums[PAIRS]
    if pairs.ndim != 1 or products.shape != (len(pairs), variables, variables) or not len(pairs):
        raise WireError(f"counts: sums over lags do not have {variables} variables")
    if not (np.isfinite(products).all() and np.isfinite(pairs).all() and (pairs >= 0).all()):
        raise WireError("counts: sums over lags are non-finite, or a number of pairs is negative")


def covariance_template(variables: int, lags: int) -> Arrays:
    """Return zeros for a client's autocovariances and its presence, for secure sums."""
    return {COVARIANCES: np.zeros((lags, variables, variables)), CLIENTS: np.zeros(1)}


def to_covariances(sums: Arrays, template: Arrays) -> Arrays:
    """Return a client's autocovariances within ±1 and a 1, by which every client has equal weight.

    They are zeros if it has too few readings at some lag.
    """
    if not (sums[PAIRS] > 0).all():
        return template
    covariances = sums[LAGS] / sums[PAIRS][:, None, None]
    return {COVARIANCES: np.clip(covariances, -1.0, 1.0), CLIENTS: np.ones(1)}


def to_unit(sums: Arrays) -> Arrays:
    """Return a client's autocovariances at an L2 norm of 1, for sums with noise; its presence is left out.

    A linear forecast depends on no scale, and variances differ by 100 times between sensors.
    """
    norm = float(np.linalg.norm(sums[COVARIANCES]))
    return {COVARIANCES: sums[COVARIANCES] / norm if norm else sums[COVARIANCES], CLIENTS: np.zeros(1)}


def to_sums(sums: Arrays, noise: float = 0.0) -> Arrays:
    """Return sums of autocovariances as sums over lags, with clients for pairs of readings.

    Sums with noise count as one client, since they have no number of clients.
    """
    clients = 1.0 if noise else np.rint(sums[CLIENTS].item())
    opened = {LAGS: sums[COVARIANCES], PAIRS: np.full(len(sums[COVARIANCES]), clients)}
    return opened | ({NOISE: np.array([noise])} if noise else {})


def split_noise(statics: Mapping[str, Array]) -> tuple[Arrays, float]:
    """Return sums over lags, and the standard deviation of their noise; 0 without noise.

    Raises:
        WireError: The deviation is not one finite number above zero.
    """
    noise = statics.get(NOISE)
    if noise is not None and (noise.shape != (1,) or not 0 < noise[0] < np.inf):
        raise WireError("counts: the noise of sums over lags is not one positive number")
    return {name: statics[name] for name in SUMS}, 0.0 if noise is None else float(noise[0])


def linear_forecast(sums: Arrays, history: int, horizon: int, noise: float = 0.0) -> Floats:
    """Solve for the weights W, H·D × P·D, of the best linear forecast Ŷ = X·W of a stationary series.

    W solves the normal equations C_XX W = C_XY (Yule-Walker); each covariance is over its own pairs. Rows and columns are
    ordered variable by variable. W is 0 × 0 if the sums are empty, have no variance, or have fewer than H + P lags.

    Args:
        sums: Sums over sensors.
        history: Number H of steps of a history.
        horizon: Number P of steps of a forecast.
        noise: Standard deviation of the noise on each product.
    """
    products, pairs = sums[LAGS], sums[PAIRS]
    if len(pairs) < history + horizon or not (pairs[: history + horizon] > 0).all():
        return np.zeros((0, 0))
    covariance = products / pairs[:, None, None]
    histories, targets = np.arange(history), history + np.arange(horizon)
    within = _blocks(covariance, histories, histories)
    level = DIAGONAL_SHARE * float(np.trace(covariance[0])) / covariance.shape[1]
    if level <= 0:
        return np.zeros((0, 0))
    size = len(within)
    level = max(level, NOISE_SHARE * noise / float(pairs[0]) * math.sqrt(2 * size * math.log(size)))
    weights = np.linalg.solve(within + level * np.eye(size), _blocks(covariance, histories, targets))
    return np.asarray(weights, np.float64)


def _blocks(covariance: Floats, rows: Ints, columns: Ints) -> Floats:
    """Return Cov(d_i, d_j) for times i of `rows` and j of `columns`, variable by variable."""
    lag = columns[None, :] - rows[:, None]
    table = np.where((lag < 0)[..., None, None], covariance[abs(lag)].swapaxes(-1, -2), covariance[abs(lag)])
    variables = covariance.shape[1]
    return np.asarray(table.transpose(2, 0, 3, 1).reshape(variables * len(rows), variables * len(columns)))
