"""A key that the server's owner revokes while rounds run: its client is out within a round, and the others finish."""

import signal

import pytest

from deploy.keys.certificates import ensure_certificates
from deploy.keys.nodes import add_key, make_node_key, read_key
from server.clients.presence import REVOKED
from tests.system.desk import NETWORK, Command, Desk, until

pytestmark = pytest.mark.system

NAMES = ("ann", "bob", "eve")
ROUNDS = 1000  # the run is stopped after a few of them


def test_a_client_that_is_revoked_while_rounds_run_is_out_within_a_round(desk: Desk) -> None:
    ca = ensure_certificates(desk.folder / "home", []).ca
    for name in NAMES:
        make_node_key(desk.folder / f"{name}.key")
        add_key(desk.folder / "home" / "nodes", read_key(str(desk.folder / f"{name}.key.pub")), name)
    options = ("--clients", "3", *NETWORK, "--rounds", str(ROUNDS), "--run-id", "revoked", "--home", "home")
    quick = ("--method", "fedavg", "--set", "federation.min-replies=2")
    ports = ("--port", str(desk.port), "--control-port", str(desk.control_port))
    served = desk.start("serve", *options, *quick, *ports)
    joined = [_join(desk, str(ca), name, f"{shard}/3") for shard, name in enumerate(NAMES)]
    _await_rounds(desk, served, 2)
    assert desk.rounds("revoked")[-1]["answered"] == 3

    revoked = desk.start("nodes", "revoke", "eve", "--home", "home")
    assert revoked.end() == 0, revoked.error()
    last = len(desk.rounds("revoked"))
    served.wait_for("removed ")
    _await_rounds(desk, served, last + 4)
    later = desk.rounds("revoked")[last + 1 :]  # the round under way may still have its reply
    assert {(event["answered"], event["asked"]) for event in later} == {(2, 3)}
    assert {event["clients"]["eve"]["state"] for event in later} == {"revoked"}
    assert all(REVOKED in event["refused"]["eve"] for event in later)
    assert all(event["missing"] == [] and "eve" not in event["gone"] for event in later)
    assert max(event["seconds"] for event in desk.rounds("revoked")[last : last + 2]) < 30
    assert "2/3 clients (eve: revoked)" in served.error()
    assert "gone since" not in served.error()
    joined[2].wait_for("does not admit this node's key")
    assert served.end(signal.SIGTERM) == 128 + signal.SIGTERM
    assert [command.end(signal.SIGTERM) for command in joined[:2]] == [0, 0]


def _join(desk: Desk, ca: str, name: str, shard: str) -> Command:
    keys = ("--server", f"127.0.0.1:{desk.port}", "--ca", ca, "--key", f"{name}.key", "--state-dir", f"{name}-state")
    return desk.start("join", *keys, "--name", name, "--data", "demo:0-30", "--shard", shard)


def _await_rounds(desk: Desk, served: Command, number: int) -> None:
    until(lambda: len(desk.rounds("revoked")) >= number or served.process.poll() is not None, served.error)
    assert served.process.poll() is None, served.error()
