"""Memory of resident clients, as `fedloom up` starts them, pages shared with other processes included, and of simulations."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil
import pytest

from studies.speed.noop_app.client_app import app
from studies.speed.population import LINE_LIMITS
from tests.support.superlinks import Federation, run_client, start_federation
from tests.system.desk import ROOT, Desk

pytestmark = pytest.mark.system

MOST_MB, MOST_MASKED_MB = 330, 500
"""Memory of a client, and with 1.4 million pairs of items in a masked vector.

Those of other tasks are measured by test_up.py and test_tasks.py."""


def write_readings(path: Path) -> Path:
    """Write a year of 5-minute readings of ten sensors."""
    times = np.arange("2025-01-01", "2026-01-01", 5, dtype="datetime64[m]")
    phase = np.arange(len(times)) * 2 * np.pi / 288
    columns = [np.char.mod("%.0f", 50 + 40 * np.sin(phase + k) + np.arange(len(times)) % 7) for k in range(10)]
    with path.open("w") as file:
        file.write("timestamp,site,volume\n")
        for k, column in enumerate(columns):
            file.writelines(f"{time},s{k},{cell}\n" for time, cell in zip(times, column, strict=True))
    return path


def write_ratings(path: Path) -> Path:
    """Write 100,000 ratings of 943 people and 1,682 films, as many as MovieLens-100K holds."""
    rows = np.random.default_rng(0).choice(943 * 1682, 100_000, replace=False)
    path.write_text("user,item,rating\n" + "".join(f"u{row // 1682},i{row % 1682},{1 + row % 5}\n" for row in rows))
    return path


@pytest.mark.parametrize(
    ("method", "write", "most"),
    [
        ("fedstl --set training.local-steps=1", write_readings, MOST_MB),
        ("fedavg --task ratings", write_ratings, MOST_MB),
        ("ridge --task ratings", write_ratings, MOST_MASKED_MB),
    ],
)
def test_a_resident_client_with_a_large_table_stays_small(
    method: str, write: Callable[[Path], Path], most: int, desk: Desk
) -> None:
    source = write(desk.folder / "table.csv")
    words = ("--clients", "4", "--rounds", "2", "--run-id", "small", "--no-alone")
    up = desk.up("--method", *method.split(), "--data", source, *words)
    peaks = up.peaks_of_clients()
    assert up.end() == 0, up.error()
    assert len(peaks) == 4
    assert max(peaks.values()) < most


def test_a_thousand_clients_of_sessions_train_in_one_and_a_half_gigabytes() -> None:
    """20,000 one-line sessions over 20,000 items, FedGA, a fiftieth of the clients a round."""
    words = (
        "--inner --task sessions --method fedga --clients 1000 --lines 20000 --rounds 5 --cohort 0.02 --replies auto"
    )
    command = [sys.executable, "-m", "studies", "speed", "population", *words.split()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    print(f"{found['peak_mb']:.0f} MB at most, {found['growth_after_3']:.3f} of that after three rounds")
    assert found["clients"] == 1000
    assert found["peak_mb"] < LINE_LIMITS["peak_mb"]


WARM_UP, ROUNDS = 40, 150
GROWTH_MB = 7.5
"""Half an array a round would be as much; 150 rounds added 2 to 3 MB here, and 1,600 rounds no more than that."""


def test_rounds_leave_nothing_in_the_memory_of_the_superlink(tmp_path: Path) -> None:
    with start_federation(tmp_path, database=False) as federation, run_client(federation, app):
        before, after = (memory_after(federation, rounds) for rounds in (WARM_UP, ROUNDS))
    assert after - before < GROWTH_MB


def memory_after(federation: Federation, rounds: int) -> float:
    """Return the resident memory of the SuperLink in MB after rounds."""
    assert federation.play(rounds) == rounds
    time.sleep(1)  # the SuperLink cleans up after the end
    return float(psutil.Process(federation.superlink.process.pid).memory_info().rss) / 1e6
