"""The local line beyond the profile: ridge regression of the coming departures from it on those of the history.

A client's own, from nothing but its past; the federated model learns what it leaves over. docs/results/traffic.md compares.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

PENALTIES = (30.0, 100.0, 300.0, 1e3, 3e3, 1e4, 3e4, 1e5, np.inf)
"""What a sensor chooses from: a month of hours wants some hundreds, weeks that do not repeat themselves more."""

FOLDS = 8
"""Stretches of a past, each forecast from the others."""


@dataclass(frozen=True)
class Windows:
    """What a line looks back on and ahead to.

    Args:
        departures: From the profile, T × D, in standard deviations.
        history: H, steps looked back on.
        horizon: P, steps ahead.
    """

    departures: Floats
    history: int
    horizon: int

    def past(self, first: Places) -> Floats:
        """Histories of windows whose first targets are at `first`, N × H·D."""
        return self._spans(self.history)[first - self.history].reshape(len(first), -1)

    def coming(self, first: Places) -> Floats:
        """Their targets, N × P·D."""
        return self._spans(self.horizon)[first].reshape(len(first), -1)

    def _spans(self, length: int) -> Floats:
        return sliding_window_view(self.departures, length, axis=0)


def ridge_line(windows: Windows, train: Places, penalties: Sequence[float]) -> Floats:
    """Forecast departures of every window, T × P × D, 0 where a window has not enough history.

    Windows learnt from are forecast by those that share no target with their stretch of the past, so that the past looks no
    more predictable than the future; all others by the whole of it. Those forecasts of the past also choose the penalty.

    Args:
        windows: T readings.
        train: First targets of the windows to learn from, N, ascending.
        penalties: λ of ‖Y − XW‖² + λ‖W‖² to choose from, of equals the largest; ∞ is W = 0, the profile alone.
    """
    length, variables = windows.departures.shape
    line = np.zeros((length, windows.horizon * variables))
    if len(train) and length >= windows.history:
        past = _Past.of(windows, train)
        left_out = {penalty: past.left_out(penalty) for penalty in penalties}
        penalty = min(left_out, key=lambda one: (float(np.square(past.y - left_out[one]).sum()), -one))
        everywhere = np.arange(windows.history, length)
        line[everywhere] = windows.past(everywhere) @ past.weights(penalty)
        line[train] = left_out[penalty]
    return line.reshape(length, variables, windows.horizon).swapaxes(1, 2)


@dataclass(frozen=True)
class _Past:
    """Windows to learn from: histories N × H·D, targets N × P·D, and each fold with the windows that share a target with it."""

    x: Floats
    y: Floats
    folds: Sequence[tuple[Places, slice]]

    @classmethod
    def of(cls, windows: Windows, train: Places) -> "_Past":
        folds = []
        for own in np.array_split(np.arange(len(train)), min(FOLDS, len(train))):
            reach = np.array([train[own[0]] - windows.horizon + 1, train[own[-1]] + windows.horizon])
            folds.append((own, slice(*np.searchsorted(train, reach))))
        return cls(windows.past(train), windows.coming(train), folds)

    @cached_property
    def sums(self) -> tuple[Floats, Floats]:
        """XᵀX and XᵀY."""
        return self.x.T @ self.x, self.x.T @ self.y

    def weights(self, penalty: float, but: slice = slice(0)) -> Floats:
        """W from all windows but those, H·D × P·D."""
        gram, moment = self.sums
        if np.isinf(penalty):
            return np.zeros_like(moment)
        x, y = self.x[but], self.y[but]
        left = gram - x.T @ x + penalty * np.eye(len(gram))
        return np.asarray(np.linalg.solve(left, moment - x.T @ y), np.float64)

    def left_out(self, penalty: float) -> Floats:
        """Each window forecast by the others of the past, N × P·D."""
        forecasts: Floats = np.concatenate([self.x[own] @ self.weights(penalty, near) for own, near in self.folds])
        return forecasts
