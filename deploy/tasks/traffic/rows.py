"""Forecast as rows of JSON; importing it must not import torch."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from common.options import Scalar

if TYPE_CHECKING:
    from client.tasks.traffic.inference import Forecast


def forecast_rows(made: "Forecast", variables: Sequence[str]) -> list[dict[str, Scalar | None]]:
    """Return one row for each step and variable; a value that does not exist is None."""
    tables = {"forecast": made.student, "corrected": made.corrected, "low": made.low, "high": made.high}
    columns = {**tables, "profile": made.profile, "low80": made.low80, "high80": made.high80}
    return [
        {"time": str(made.times[t]), "variable": variable}
        | {name: _finite(float(table[t, d])) for name, table in columns.items()}
        | {"marked": bool(made.marked[t, d])}
        for t in range(len(made.times))
        for d, variable in enumerate(variables)
    ]


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
