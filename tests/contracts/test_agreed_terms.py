"""A server that asks for more than an owner agreed to: both sides have both texts, and no update leaves the client."""

from pathlib import Path

import pytest

from client.owner.consent import Consent
from client.owner.policy import Policy
from client.privacy.release import Releaser
from client.privacy.simulation import MemoryLedgers
from client.session import Session
from client.state import MemoryStore
from common.contract import terms_of
from common.errors import QuorumError
from deploy.simulation.grid import InProcessGrid
from server.record.events import Refusal, event_from_line
from server.record.folder import RunDirectory
from server.run import run
from tests.support.asked import learner
from tests.support.owners import noisy

AGREED = "agreed 'noise on everything that a client sends: ε = 5, δ = 1e-05 (gaussian)'"


def client(folder: Path) -> Session:
    policy = Policy()
    releaser = Releaser(policy, MemoryLedgers(policy), consent=Consent(folder, "SHA256:server"))
    return Session("client-0", learner, MemoryStore(), releaser)


def test_a_server_without_the_agreed_noise_gets_a_refusal_with_both_texts(tmp_path: Path) -> None:
    session = client(tmp_path / "client-0")
    agreed = noisy(tmp_path, "fedavg", rounds=2, privacy__accept_noise=True)
    session.consent.agree(terms_of(agreed), "invitation AAAA")
    exact = agreed.model_copy(update={"privacy": agreed.privacy.model_copy(update={"unit": "none"})})
    with pytest.raises(QuorumError) as missing:
        run(InProcessGrid({1: session}, 1), exact, tmp_path / "runs")
    assert AGREED in str(missing.value)
    assert "offered 'no noise'" in str(missing.value)
    lines = (RunDirectory(tmp_path / "runs", "toy").path / "metrics.jsonl").read_text().splitlines()
    [refused] = [event for event in map(event_from_line, lines) if isinstance(event, Refusal)]
    assert AGREED in refused.reason
    assert "offered 'metrics, number of records, updates'" in refused.reason
    assert session.consent.read().offered == terms_of(exact)
    result = run(InProcessGrid({1: session}, 1), agreed.model_copy(update={"run_id": "noisy"}), tmp_path / "runs")
    assert result.rounds == 2
