"""Memory of a SuperLink with its state in memory, over many rounds of a ClientApp without work."""

import time
from pathlib import Path

import psutil
import pytest

from studies.speed.noop_app.client_app import app
from tests.support.superlinks import Federation, run_client, start_federation

pytestmark = pytest.mark.system

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
