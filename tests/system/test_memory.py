"""Memory of resident clients, as `fedloom up` starts them on the demo data, pages shared with other processes included."""

import time
from contextlib import suppress

import psutil
import pytest

from tests.system.desk import Command, Desk

pytestmark = pytest.mark.system

PLAIN, GRAPH = 330, 470  # MB of a client without a graph model, and of one with PyTorch Geometric
LARGE = 470  # MB of a client of sessions or markets; they load no PyTorch Geometric and do not yet stay below PLAIN


def peaks_of_clients(up: Command) -> dict[int, float]:
    """Return the largest observed RSS in MB of each client process; wait for the end of the command."""
    peaks: dict[int, float] = {}
    while up.process.poll() is None:
        for process in up.family():
            with suppress(psutil.Error):
                if process.name().startswith("client-"):
                    megabytes = process.memory_info().rss / 2**20
                    peaks[process.pid] = max(peaks.get(process.pid, 0.0), megabytes)
        time.sleep(0.1)
    return peaks


@pytest.mark.parametrize(
    ("task", "bound"),
    [("traffic", PLAIN), ("ratings", PLAIN), ("rules", GRAPH), ("sessions", LARGE), ("markets", LARGE)],
)
def test_a_resident_client_stays_small(task: str, bound: int, desk: Desk) -> None:
    up = desk.up("--task", task, "--clients", "4", "--rounds", "2", "--run-id", "small")
    peaks = peaks_of_clients(up)
    assert up.end() == 0, up.error()
    print(f"{task}: {max(peaks.values()):.0f} MB at most in {len(peaks)} clients, bound {bound} MB")
    assert len(peaks) == 4
    assert max(peaks.values()) < bound
