"""The local line beyond the profile: ridge regression of the coming departures from it on those of the history.

A client's own, from nothing but its past; the federated model learns what it leaves over. docs/results/traffic.md compares.
"""

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

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


def ridge_line(windows: Windows, train: Places, penalty: float) -> Floats:
    """Forecast departures of every window, T × P × D, 0 where a window has not enough history.

    Windows learnt from are forecast by those that share no target with their stretch of the past, so that the past looks no
    more predictable than the future; all others by the whole of it.

    Args:
        windows: T readings.
        train: First targets of the windows to learn from, N, ascending.
        penalty: λ of ‖Y − XW‖² + λ‖W‖².
    """
    length, variables = windows.departures.shape
    line = np.zeros((length, windows.horizon * variables))
    if len(train) and length >= windows.history:
        x, y = windows.past(train), windows.coming(train)
        gram, moment = x.T @ x + penalty * np.eye(x.shape[1]), x.T @ y
        everywhere = np.arange(windows.history, length)
        line[everywhere] = windows.past(everywhere) @ np.linalg.solve(gram, moment)
        for own in np.array_split(np.arange(len(train)), min(FOLDS, len(train))):
            reach = np.array([train[own[0]] - windows.horizon + 1, train[own[-1]] + windows.horizon])
            near = slice(*np.searchsorted(train, reach))
            others = np.linalg.solve(gram - x[near].T @ x[near], moment - x[near].T @ y[near])
            line[train[own]] = x[own] @ others
    return line.reshape(length, variables, windows.horizon).swapaxes(1, 2)
