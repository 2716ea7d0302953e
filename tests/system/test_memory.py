"""Memory of resident clients, as `fedloom up` starts them, pages shared with other processes included, and of simulations."""

import json
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil
import pytest

from studies.speed.population import LINE_LIMITS
from tests.system.desk import ROOT, Command, Desk

pytestmark = pytest.mark.system

PLAIN, GRAPH = 330, 470  # MB of a client without a graph model, and of one with PyTorch Geometric
LARGE = 470  # MB of a client of sessions or markets; they load no PyTorch Geometric and do not yet stay below PLAIN


def peaks_of_clients(up: Command) -> dict[int, float]:
    """Return the largest observed RSS in MB of each client process; wait for the end of the command.

    A child of a client has the client's name and memory until it runs its own program; it is not counted.
    """
    peaks: dict[int, float] = {}
    while up.process.poll() is None:
        for process in up.family():
            with suppress(psutil.Error):
                if is_client(process.pid) and not is_client(process.ppid()):
                    megabytes = process.memory_info().rss / 2**20
                    peaks[process.pid] = max(peaks.get(process.pid, 0.0), megabytes)
        time.sleep(0.1)
    return peaks


def is_client(pid: int) -> bool:
    """Return True if a process has the name of a client."""
    return psutil.Process(pid).name().startswith("client-")


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


OWN_TABLES = {"traffic.csv": write_readings, "ratings.csv": write_ratings}


@pytest.mark.parametrize(
    ("task", "data", "bound"),
    [
        ("traffic", "demo", PLAIN),
        ("traffic", "traffic.csv", PLAIN),
        ("ratings", "demo", PLAIN),
        ("ratings", "ratings.csv", PLAIN),
        ("rules", "demo", GRAPH),
        ("sessions", "demo", LARGE),
        ("markets", "demo", LARGE),
    ],
)
def test_a_resident_client_stays_small(task: str, data: str, bound: int, desk: Desk) -> None:
    source = OWN_TABLES[data](desk.folder / data) if data in OWN_TABLES else data
    up = desk.up("--task", task, "--data", source, "--clients", "4", "--rounds", "2", "--run-id", "small")
    peaks = peaks_of_clients(up)
    assert up.end() == 0, up.error()
    print(f"{task}, {data}: {max(peaks.values()):.0f} MB at most in {len(peaks)} clients, bound {bound} MB")
    assert len(peaks) == 4
    assert max(peaks.values()) < bound


def test_a_thousand_clients_of_sessions_train_in_one_and_a_half_gigabytes() -> None:
    """20,000 one-line sessions over 20,000 items, FedGA, a fiftieth of the clients a round."""
    words = (
        "--inner --task sessions --method fedga --clients 1000 --lines 20000 --rounds 20 --cohort 0.02 --replies auto"
    )
    command = [sys.executable, "-m", "studies", "speed", "population", *words.split()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    print(f"{found['peak_mb']:.0f} MB at most, {found['growth_after_3']:.3f} of that after three rounds")
    assert found["clients"] == 1000
    assert found["peak_mb"] < LINE_LIMITS["peak_mb"]
