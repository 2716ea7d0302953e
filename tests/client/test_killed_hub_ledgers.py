"""A hub that is killed before any kind of statement of its ledgers: each noise that a client drew is charged to its ledger."""

import os
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from client.app import open_session
from client.privacy.ledger.database import LedgerEntry
from tests.support.killed_hub import CLIENTS, CONFIG, COST, DRAWN, SENT, settings

KILLS = 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a hub after its kills."""
    folder = tmp_path_factory.mktemp("hub")
    command = [sys.executable, "-W", "ignore", "-m", "tests.support.killed_hub", str(folder), str(KILLS)]
    subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=True, timeout=300)
    return folder


def rows_of(folder: Path, client: str) -> list[LedgerEntry]:
    """Return the rows of a client in its ledger, which two of them share."""
    budget = open_session.__wrapped__(settings(folder, client)).releaser.budget
    ledger = budget.ledger(CONFIG.privacy)
    rows = [row for row in ledger.entries() if row.slot.run == budget.run_name("toy")]
    assert ledger.spent_in(budget.run_name("toy")) == pytest.approx(sum(row.terms.cost for row in rows))
    ledger.close()
    return rows


def test_each_noise_of_each_client_is_charged(folder: Path) -> None:
    drawn = Counter(tuple(line.split()) for line in (folder / DRAWN).read_text().splitlines())
    wasted = 0
    for client in CLIENTS:
        rows = rows_of(folder, client)
        charged = Counter(row.slot.round for row in rows)
        for number in range(1, KILLS + 2):
            assert 1 <= drawn[client, str(number)] <= charged[number]
        assert all(row.terms.cost == pytest.approx(COST) for row in rows)
        wasted += len(rows) - (KILLS + 1)
    assert 0 < wasted <= KILLS * len(CLIENTS), "some kills came after a charge"


def test_a_client_of_a_killed_hub_sends_one_reply_a_round(folder: Path) -> None:
    digests = defaultdict(set)
    for line in (folder / SENT).read_text().splitlines():
        client, number, digest = line.split()
        digests[client, int(number)].add(digest)
    assert {client for client, _ in digests} == {*CLIENTS}
    assert len(digests) == len(CLIENTS) * (KILLS + 1), "each round was answered in the end"
    assert all(len(found) == 1 for found in digests.values()), "asked again, the same numbers"
