"""Resident clients and a real SuperLink: TLS, node authentication, SQLite."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from flwr.app import ConfigRecord, Context, Message, RecordDict

from client.node.failures import NotAdmittedError, Server
from client.node.resident import run_resident
from common.errors import ConnectError
from deploy.keys.certificates import make_authority
from deploy.keys.nodes import load_private_key, make_node_key
from deploy.superlink.superlink import FLOWER_HOME, free_port, start_superlink
from studies.speed.noop_app.client_app import app
from tests.support.superlinks import NOOP, ROOT, Federation, run_client, start_federation


@pytest.fixture(scope="module")
def federation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("GRPC_VERBOSITY", raising=False)  # Flower sets it here, as no service does
        with start_federation(tmp_path_factory.mktemp("federation"), database=True) as federation:
            yield federation


@pytest.fixture
def node(federation: Federation) -> Iterator[list[str]]:
    """Run a resident client in a thread; yield its events."""
    with run_client(federation, app) as events:
        yield events


@pytest.mark.system
def test_messages_are_exchanged_through_a_superlink(federation: Federation, node: list[str]) -> None:
    assert federation.play(rounds=3) == 3


@pytest.mark.system
def test_nothing_of_an_ended_run_stays_on_the_disk_of_a_superlink_that_goes_on(
    federation: Federation, node: list[str]
) -> None:
    folder = federation.settings.folder
    assert federation.play(rounds=2) == 2
    generator = np.random.default_rng(0)  # as the no-op app
    sent = [generator.normal(size=25_000).astype(np.float32) for _ in range(3)]
    pieces = [b"payload", b"server_app.py", *(array.tobytes()[:16] for array in sent)]
    wal = folder / "superlink.sqlite-wal"
    database = [folder / "superlink.sqlite", wal]
    end = time.monotonic() + 10
    while found := [piece for path in database for piece in pieces if piece in path.read_bytes()]:
        assert time.monotonic() < end, found
        time.sleep(0.05)
    assert [*folder.glob(f"{FLOWER_HOME}/apps/*")] == []
    assert federation.superlink.process.poll() is None


@pytest.mark.system
def test_a_locked_database_holds_up_a_round_and_ends_nothing(federation: Federation, node: list[str]) -> None:
    """Flower gives up after 5 s, which would end the SuperLink."""
    lock = sqlite3.connect(federation.settings.database_file, isolation_level=None, check_same_thread=False)
    lock.execute("BEGIN IMMEDIATE")
    threading.Timer(6.5, lock.close).start()
    start = time.monotonic()
    assert federation.play(rounds=2) == 2
    assert time.monotonic() - start > 5
    assert federation.superlink.process.poll() is None
    assert federation.settings.log.read_text().count("database is locked or slow") == 1


def too_much(message: Message, context: Context) -> Message:
    """Answer with more than the limit of 1 MB."""
    return Message(RecordDict({"more": ConfigRecord({"blob": bytes(1_200_000)})}), reply_to=message)


@pytest.mark.system
def test_a_reply_beyond_the_limit_is_refused_unread_and_fails_at_once(federation: Federation) -> None:
    with run_client(federation, too_much) as events:
        run = federation.control.submit(NOOP, {"nodes": 1, "rounds": 1, "result": "none"})
        end = time.monotonic() + 60  # the ServerApp waits 600 s for a reply that is still on its way
        while not (status := federation.control.status(run)).startswith("finished"):
            assert time.monotonic() < end, federation.settings.log.read_text()[-2000:]
            time.sleep(0.1)
    assert status == "finished:failed"
    [event] = [event for event in events if "takes no message of this size" in event]
    assert "1,000,000 are taken; the server's owner can raise FEDLOOM_MOST_UPLOAD" in event


@pytest.mark.system
def test_a_client_reconnects_to_a_restarted_server(federation: Federation, node: list[str]) -> None:
    assert federation.play(rounds=1) == 1
    federation.processes.kill(federation.superlink)
    end = time.monotonic() + 10
    while not any("does not answer" in event for event in node):
        assert time.monotonic() < end
        time.sleep(0.05)
    federation.superlink = start_superlink(federation.processes, federation.settings)
    assert federation.play(rounds=2) == 2


@pytest.mark.system
def test_an_unregistered_key_is_refused(federation: Federation, tmp_path: Path) -> None:
    make_node_key(tmp_path / "stranger.key")
    with pytest.raises(NotAdmittedError, match="register its public key"):
        run_resident(app, federation.server(tmp_path / "stranger.key"), stop=threading.Event(), patience=0.5)


@pytest.mark.system
def test_a_node_without_a_key_is_refused(federation: Federation) -> None:
    guest = Server(federation.settings.address, federation.certificates.ca.read_bytes())
    with pytest.raises(ConnectError, match="registered keys only"):
        run_resident(app, guest, stop=threading.Event())


@pytest.mark.system
def test_a_wrong_certificate_authority_is_refused(federation: Federation, tmp_path: Path) -> None:
    other = make_authority(tmp_path)
    key = load_private_key(federation.key)
    with pytest.raises(ConnectError, match="not signed by the given CA"):
        run_resident(app, Server(federation.settings.address, other.ca.read_bytes(), key), stop=threading.Event())
    log = federation.settings.log.read_text()
    assert "Handshake failed" not in log, "gRPC would fill the server's disk for any stranger"


def seconds_to_end(command: list[str], line: str) -> float:
    """Start a client, send it SIGTERM after the line, and return the seconds to its end."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as client:
        assert client.stdout is not None
        assert line in client.stdout.readline()
        time.sleep(0.5)
        start = time.monotonic()
        client.send_signal(signal.SIGTERM)
        assert client.wait(10) == 0
        return time.monotonic() - start


@pytest.mark.system
@pytest.mark.parametrize("present", [True, False])
def test_a_client_stops_within_two_seconds_of_sigterm(federation: Federation, present: bool) -> None:
    address = federation.settings.address if present else f"127.0.0.1:{free_port()}"
    files = [str(federation.settings.folder / name) for name in ("ca.pem", "node.key")]
    command = [sys.executable, "-u", str(NOOP / "resident.py"), address, *files]
    line = "connected" if present else "waiting"
    assert seconds_to_end(command, line) < 2
