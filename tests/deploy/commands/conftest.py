"""A sensor's table."""

from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Three weeks of hourly volumes at two sites, a weekly wave with some noise."""
    rng, hours = np.random.default_rng(0), np.arange(21 * 24)
    lines = ["timestamp,site,volume"]
    for site, level in (("north", 100), ("south", 900)):
        wave = level * (1 + 0.5 * np.sin(2 * np.pi * hours / 24)) + rng.normal(0, level / 50, len(hours))
        times = np.datetime64("2024-01-01T00:00") + hours * np.timedelta64(1, "h")
        lines += [f"{time},{site},{value:.1f}" for time, value in zip(times, wave, strict=True)]
    path = tmp_path / "sensors.csv"
    path.write_text("\n".join(lines) + "\n")
    return path
