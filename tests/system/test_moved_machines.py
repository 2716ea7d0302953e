"""Machines that change: a server moved with its files, a disk that is new, clocks that are wrong.

As root, each side and the server's next machine have network namespaces of their own.
"""

import re
import shutil
import signal
import sys
from pathlib import Path

import pytest

from deploy.keys.certificates import ensure_certificates
from deploy.keys.nodes import make_node_key
from tests.system.desk import Command, Desk, until
from tests.system.machines import Machines, connected_machines

pytestmark = pytest.mark.system

WRONG_CLOCK = str(Path(__file__).with_name("wrong_clock.py"))
DAY = 86_400
DATA, ROUNDS = "demo:0-20", 30


def test_a_moved_server_ends_with_the_same_model_beside_wrong_clocks_and_a_new_disk(desk: Desk) -> None:
    before, after = desk.folder / "before", desk.folder / "after"
    with connected_machines() as machines:
        clients = ("client-0", "client-1")  # the names of a simulation, which fix the order of batches
        ensure_certificates(before / "home", [machines.address])
        for shard, name in enumerate(clients):
            _new_client(desk, before, name)
            _set_clock(desk, name, (-240, 3 * DAY)[shard])
        options = ("--method", "fedavg", "--clients", "2", "--rounds", str(ROUNDS), "--seed", "5")
        quorum = ("--set", "federation.min-replies=2", "--run-id", "moved")
        served = _serve(desk, before, machines.server, *options, *quorum)
        right, wrong = (
            _join(desk, machines, name, f"{shard}/2", machines.address) for shard, name in enumerate(clients)
        )
        until(lambda: len(desk.rounds("moved", before)) >= 2, wrong.error)
        assert [each.end(signal.SIGTERM) for each in (served, right, wrong)] == [128 + signal.SIGTERM, 0, 0]

        shutil.move(before, after)
        renewal = ("--home", "home", "--renew", "--name", machines.spare_address)
        desk.finish("keys", "server", *renewal, folder=after)
        shutil.rmtree(desk.folder / "client-1" / "state")
        resumed = _serve(desk, after, machines.spare, "--resume", "moved")
        for shard, name in enumerate(clients):
            _join(desk, machines, name, f"{shard}/2", machines.spare_address)
        assert resumed.end() == 0, resumed.error()
        assert [event["round"] for event in desk.rounds("moved", after)] == [*range(1, ROUNDS + 1)]
    assert desk.simulate("--data", DATA, *options)["model_sha256"] == resumed.result()["model_sha256"]


def test_a_disk_without_the_ledger_of_its_key_waits_for_the_owner_of_the_server(desk: Desk) -> None:
    """Restored copies and other accidents of ledgers are in tests/contracts/test_ledgers_in_runs.py."""
    at_server, machines = desk.folder / "server", Machines()
    ensure_certificates(at_server / "home", [machines.address])
    _new_client(desk, at_server, "ann")
    options = ("--method", "fedavg", "--clients", "1", "--rounds", "1", "--epsilon", "8")
    options = (*options, "--set", "privacy.accept-noise=true")
    joined = _join(desk, machines, "ann", "0/2", machines.address)
    served = _serve(desk, at_server, (), *options, "--run-id", "one")
    assert served.end() == 0, served.error()
    assert joined.end(signal.SIGTERM) == 0

    again = _serve(desk, at_server, (), *options, "--run-id", "two")
    shutil.rmtree(desk.folder / "ann" / "state")
    refused = _join(desk, machines, "ann", "0/2", machines.address)
    refused.wait_for("refused: the server does not admit this client: the privacy ledger")
    reason = r"the privacy ledger (\w{8}) is new, and this key had ledger (?!\1)\w{8} with 1 rows"
    until(lambda: bool(re.search(f"refused ann: {reason}", again.error())), again.error)
    assert re.search(f"admit this client: {reason}", refused.error())
    assert "restore the newest ledger, or ask the server's owner" in refused.error()
    assert refused.end(signal.SIGTERM) == 0
    assert desk.rounds("two", at_server) == []
    desk.finish("nodes", "accept-ledger", "ann", "--home", "home", folder=at_server)
    _join(desk, machines, "ann", "0/2", machines.address)  # at once; a client that stays is invited after a minute
    assert again.end() == 0, again.error()
    assert list(again.result()["clients"]) == ["ann"]


def _new_client(desk: Desk, at_server: Path, name: str) -> None:
    folder = desk.folder / name
    make_node_key(folder / "node.key")
    shutil.copy(at_server / "home" / "ca.pem", folder)
    words = ("nodes", "add", folder / "node.key.pub", "--name", name, "--home", "home")
    desk.finish(*words, folder=at_server)
    _set_clock(desk, name, 0)


def _set_clock(desk: Desk, name: str, seconds: int) -> None:
    draft = desk.folder / name / "clock.new"
    draft.write_text(str(seconds))
    draft.replace(desk.folder / name / "clock")  # a client reads the file at any time


def _serve(desk: Desk, folder: Path, prefix: tuple[str, ...], *options: str) -> Command:
    ports = ("--port", str(desk.port), "--control-port", str(desk.control_port))
    return desk.start("serve", *options, "--home", "home", "--json", *ports, prefix=prefix, folder=folder)


def _join(desk: Desk, machines: Machines, name: str, shard: str, address: str) -> Command:
    keys = ("--server", f"{address}:{desk.port}", "--ca", "ca.pem", "--key", "node.key", "--patience", "170")
    words = ["join", *keys, "--name", name, "--data", DATA, "--shard", shard, "--state-dir", "state"]
    return desk.program([*machines.clients, sys.executable, WRONG_CLOCK, "clock", *words], desk.folder / name)
