"""Baselines of traffic: weekly profile, and ridge regression of future residuals on past ones."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from common.arrays import Flags, Floats, Ints
from common.tasks.traffic.options import TrafficOptions
from common.tasks.traffic.properties import groups_of
from common.tasks.traffic.shared_ridge import PENALTIES


def profile(values: Floats, slots: Ints, usable: Flags, week: int) -> Floats:
    """Compute the profile at every reading, T × D: the mean of its slot over the other usable readings.

    The reading itself is left out, and errors on the past are comparable with errors on the future. A slot without other
    readings gets the mean of the same hour of working days or weekends, else the mean of all readings.

    Args:
        values: Scaled readings, T × D.
        slots: Slot of the week of each reading, T.
        usable: True for readings of the training part, T.
        week: Number W of readings per week.
    """
    overall_mean = np.where(usable.any(), values[usable].mean(0, keepdims=True) if usable.any() else 0.0, 0.0)
    hours = groups_of("hourly", week)[slots]
    hourly = _leave_one_out_mean(values, hours, usable, np.broadcast_to(overall_mean, values.shape))
    return _leave_one_out_mean(values, slots, usable, hourly)


def _leave_one_out_mean(values: Floats, groups: Ints, usable: Flags, fallback: Floats) -> Floats:
    """Return the mean over the other usable readings of each reading's group, else the fallback."""
    size = int(groups.max()) + 1 if len(groups) else 0
    sums, counts = np.zeros((size, values.shape[1])), np.zeros(size)
    np.add.at(sums, groups[usable], values[usable])
    np.add.at(counts, groups[usable], 1)
    left = (counts[groups] - usable)[:, None]
    means = (sums[groups] - np.where(usable[:, None], values, 0)) / np.maximum(left, 1)
    return np.where(left > 0, means, fallback)


FOLDS = 8
"""Number of folds of the cross-validation over the past."""


@dataclass(frozen=True)
class Windows:
    """Windows of a series of residuals.

    Args:
        departures: Residuals of the profile, T × D, in standard deviations.
        history: Number H of steps of a history.
        horizon: Number P of steps of a target.
    """

    departures: Floats
    history: int
    horizon: int

    def past(self, first: Ints) -> Floats:
        """Return histories of windows whose first targets are at `first`, N × H·D."""
        return self._spans(self.history)[first - self.history].reshape(len(first), -1)

    def targets(self, first: Ints) -> Floats:
        """Return targets of windows whose first targets are at `first`, N × P·D."""
        return self._spans(self.horizon)[first].reshape(len(first), -1)

    def shaped(self, flat: Floats) -> Floats:
        """Return forecasts N × P × D of N × P·D."""
        return flat.reshape(len(flat), self.departures.shape[1], self.horizon).swapaxes(1, 2)

    def _spans(self, length: int) -> Floats:
        return sliding_window_view(self.departures, length, axis=0)


def ridge_forecasts(windows: Windows, train: Ints, penalties: Sequence[float]) -> Floats:
    """Forecast the residuals of every window, T × P × D; 0 for a window without enough history.

    A training window is forecast by weights of windows that share no target with its fold. All other windows are forecast by
    weights of all training windows. The penalty with the lowest error of the fold forecasts is used.

    Args:
        windows: Windows of T readings.
        train: First targets of the training windows, N, ascending.
        penalties: Penalties λ of ‖Y − XW‖² + λ‖W‖²; of equal errors the largest λ is used; ∞ is W = 0, the profile alone.
    """
    length, variables = windows.departures.shape
    forecasts = np.zeros((length, windows.horizon * variables))
    if len(train) and length >= windows.history:
        weights, left_out = ridge_weights(windows, train, penalties)
        all_windows = np.arange(windows.history, length)
        forecasts[all_windows] = windows.past(all_windows) @ weights
        forecasts[train] = left_out
    return windows.shaped(forecasts)


def ridge_weights(windows: Windows, train: Ints, penalties: Sequence[float]) -> tuple[Floats, Floats]:
    """Return the weights of all training windows, H·D × P·D, and the fold forecasts, N × P·D."""
    x, y, finite = windows.past(train), windows.targets(train), [p for p in penalties if np.isfinite(p)]
    gram, moment, folds = x.T @ x, x.T @ y, list[_Fold]()
    errors = dict.fromkeys(penalties, float(np.square(y).sum()))
    sums = np.zeros(len(finite))
    for inside in np.array_split(np.arange(len(train)), min(FOLDS, len(train))):
        reach = np.array([train[inside[0]] - windows.horizon + 1, train[inside[-1]] + windows.horizon])
        near = slice(*np.searchsorted(train, reach))  # these share a target with the fold
        folds.append(_Fold.of(x[inside], gram - x[near].T @ x[near], moment - x[near].T @ y[near]))
        sums += folds[-1].errors(y[inside], finite)
    errors |= dict(zip(finite, sums.tolist(), strict=True))
    penalty = min(penalties, key=lambda candidate: (errors[candidate], -candidate))
    if np.isinf(penalty):
        return np.zeros_like(moment), np.zeros_like(y)
    weights = np.linalg.solve(gram + penalty * np.eye(len(gram)), moment)
    return np.asarray(weights, np.float64), np.concatenate([fold.forecast(penalty) for fold in folds])


@dataclass(frozen=True)
class _Fold:
    """Windows of a fold, in the eigenvectors of the other windows' Gram matrix XᵀX.

    One decomposition serves all penalties.

    Args:
        values: Eigenvalues, H·D.
        past: Histories of the fold, N × H·D.
        moment: Moments XᵀY of the other windows, H·D × P·D.
    """

    values: Floats
    past: Floats
    moment: Floats

    @classmethod
    def of(cls, past: Floats, gram: Floats, moment: Floats) -> "_Fold":
        values, vectors = np.linalg.eigh(gram)
        return cls(values, past @ vectors, vectors.T @ moment)

    def forecast(self, penalty: float) -> Floats:
        """Forecast the targets of the fold, N × P·D."""
        return np.asarray(self.past @ (self.moment / (self.values + penalty)[:, None]))

    def errors(self, targets: Floats, penalties: Sequence[float]) -> Floats:
        """Return the squared error of the forecasts by each penalty, summed over windows and steps."""
        shares = 1 / (self.values + np.array(penalties)[:, None])
        products = ((self.past.T @ targets) * self.moment).sum(axis=1)
        squares = (self.past.T @ self.past) * (self.moment @ self.moment.T)
        return np.asarray(np.square(targets).sum() - 2 * shares @ products + (shares @ squares * shares).sum(axis=1))


def shrunk_weights(
    windows: Windows, train: Ints, shared: Floats, penalties: Sequence[float]
) -> Iterator[tuple[Floats, Floats]]:
    """Return for each penalty λ the A and B of the weights A + αB that minimize ‖Y − XW‖² + λ‖W − αS‖².

    Args:
        windows: Windows of T readings.
        train: First targets of the training windows, N.
        shared: Weights S, H·D × P·D.
        penalties: Penalties λ, above 0.
    """
    gram, moment = np.zeros((len(shared), len(shared))), np.zeros_like(shared)
    if len(train):
        past = windows.past(train)
        gram, moment = past.T @ past, past.T @ windows.targets(train)
    values, vectors = np.linalg.eigh(gram)
    rotated = vectors.T @ moment, vectors.T @ shared
    for penalty in penalties:
        if np.isinf(penalty):
            yield np.zeros_like(shared), shared
            continue
        own_part, toward = (vectors @ (each / (values + penalty)[:, None]) for each in rotated)
        yield own_part, penalty * toward


def fit_ridge(departures: Floats, usable: Flags, options: TrafficOptions) -> Floats:
    """Fit the ridge baseline to windows with usable targets and a usable last reading; return T × P × D.

    The result is empty with `ridge=none`.
    """
    if options.ridge == "none":
        return np.zeros((0, 0, 0))
    windows = Windows(departures, options.history, options.horizon)
    return ridge_forecasts(windows, complete_windows(usable, options), PENALTIES)


def complete_windows(usable: Flags, options: TrafficOptions) -> Ints:
    """Return the first targets of windows with usable targets and a usable last reading."""
    first = np.arange(options.history, len(usable) - options.horizon + 1)
    cumulated = np.concatenate([[0], np.cumsum(usable)])
    is_complete = cumulated[first + options.horizon] - cumulated[first - 1] == options.horizon + 1
    return np.asarray(first[is_complete], np.int64)
