"""Clients that a server puts up with no more while rounds run, and the others go on.

One has a valid key and replies of hundreds of megabytes: the server's memory stays bounded. Another's key is revoked.
"""

import re
import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from deploy.keys.certificates import ensure_certificates
from deploy.keys.nodes import make_node_key
from server.clients.presence import REVOKED
from server.record.process import FOLDER, read_records
from tests.system.desk import NETWORK, Command, Desk, until

pytestmark = pytest.mark.system

LIAR = Path(__file__).with_name("oversized_client.py")
SENT_MB = 300  # more than the limit
IDLE_MB = 200  # less than a ServerApp takes with PyTorch alone
NAMES = ("ann", "bob", "cyd", "liar")


def peaks(home: Path) -> dict[str, int]:
    """Return the largest resident memory in MB that each server process has had."""
    found = dict[str, int]()
    for record in read_records(home / FOLDER):
        with suppress(OSError):
            [line] = re.findall(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{record.pid}/status").read_text())
            found[record.name] = int(line) // 1024
    return found


def join(desk: Desk, name: str, ca: Path) -> Command:
    """Start a client in a folder of its own; the liar packs more."""
    folder = desk.folder / name
    program = [str(LIAR), str(SENT_MB)] if name == "liar" else ["-m", "deploy.cli"]
    words = ["--server", f"127.0.0.1:{desk.port}", "--ca", str(ca), "--key", "node.key", "--state-dir", "state"]
    words += ["--name", name, "--data", "demo:0-12", "--shard", f"{NAMES.index(name)}/{len(NAMES)}", "--task", "rules"]
    return desk.program([sys.executable, *program, "join", *words], folder)


def await_rounds(desk: Desk, served: Command, number: int) -> None:
    until(lambda: len(desk.rounds("large")) >= number or served.process.poll() is not None, served.error)
    assert served.process.poll() is None, served.error()


def test_a_client_with_oversized_replies_and_one_that_is_revoked_lose_their_places(desk: Desk) -> None:
    home = desk.folder / "home"
    ca = ensure_certificates(home, ["127.0.0.1"]).ca
    (home / "nodes").mkdir()
    for name in NAMES:
        (desk.folder / name).mkdir()
        make_node_key(desk.folder / name / "node.key")
        shutil.copy(desk.folder / name / "node.key.pub", home / "nodes" / f"{name}.pub")
    options = ("--clients", "4", *NETWORK, "--rounds", "5000", "--run-id", "large", "--home", home)
    served = desk.start("serve", *options, "--port", str(desk.port), "--control-port", str(desk.control_port))
    *others, liar = [join(desk, name, ca) for name in NAMES]
    liar.wait_for("takes no message of this size")
    before = len(desk.rounds("large"))
    until(lambda: any(event["answered"] == 3 for event in desk.rounds("large")[before:]), served.error)
    liar.end(signal.SIGKILL)
    largest = peaks(home)
    print(largest)
    assert largest["the SuperLink"] < SENT_MB
    assert largest["the ServerApp"] < SENT_MB + IDLE_MB
    events = desk.rounds("large")
    assert all("liar" in {*event["missing"], *event["refused"]} for event in events)
    served.wait_for("3/4 clients (liar")
    assert all(client.process.poll() is None for client in (served, *others))
    revoke(desk, served)
    *others, revoked = others
    revoked.wait_for("does not admit this node's key")
    assert served.end(signal.SIGTERM) == 128 + signal.SIGTERM
    assert [command.end(signal.SIGTERM) for command in others] == [0, 0]


def revoke(desk: Desk, served: Command) -> None:
    """Revoke the key of the third client; it is out within a round."""
    desk.finish("nodes", "revoke", "cyd", "--home", "home")
    last = len(desk.rounds("large"))
    served.wait_for("removed ")
    await_rounds(desk, served, last + 4)
    later = desk.rounds("large")[last + 1 :]  # the round under way may still have its reply
    assert {(event["answered"], event["asked"]) for event in later} == {(2, 4)}
    assert {event["clients"]["cyd"]["state"] for event in later} == {"revoked"}
    assert all(REVOKED in event["refused"]["cyd"] for event in later)
    assert all("cyd" not in {*event["missing"], *event["gone"]} for event in later)
    assert max(event["seconds"] for event in desk.rounds("large")[last : last + 2]) < 30
    assert re.search(r"2/4 clients \(.*cyd: revoked", served.error())
    assert "cyd gone since" not in served.error()
