"""`fedloom leave --forget`: the request to the server, the deletion of local state, and the owner's receipt."""

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from client.checks import check_client
from client.owner.control import OwnerControl, RunningClient, running_clients
from client.privacy.ledger.database import Slot
from client.privacy.ledger.locate import open_ledger
from client.settings import ClientSettings
from client.state import ClientMemory, DiskStore
from common.errors import ConfigError, RefusedError
from common.privacy.accounts import Zcdp
from common.privacy.mechanisms import Gaussian
from deploy.cli.app import app

RUNNING = RunningClient(os.getpid(), "ann", "train.example.org:9092", "2026-11-23T09:59:59+00:00")


REPLY = b"bytes of a reply"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Return the state folder of a client with state of two runs, and a release in its ledger."""
    folder = tmp_path / "state"
    checked = check_client(ClientSettings(data="demo:0-4", name="ann", state_dir=folder))
    for run in ("spring", "summer"):
        DiskStore(checked.root).save(run, ClientMemory(3))
    ledger = open_ledger("demo:0-4", folder, checked.data, "client", Zcdp(), 10.0, 1e-5)
    ledger.release(Slot("spring", 1), ledger.terms(Gaussian(0.25, 1.0)), lambda: REPLY)
    ledger.close()
    return folder


@pytest.fixture
def client(state: Path) -> Iterator[threading.Event]:
    """Run a client that gets a request once the event is set, and leaves then if it was asked to."""
    has_request, is_ready = threading.Event(), threading.Event()

    def serve() -> None:
        with OwnerControl(state, RUNNING) as control:
            is_ready.set()
            while not control.leaves:
                if has_request.wait(0.02):
                    try:
                        control.check_not_paused()
                    except RefusedError:
                        control.acknowledge()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    assert is_ready.wait(5)
    yield has_request
    has_request.set()
    leave(state, "--forget", "--local")
    thread.join(5)


def leave(state: Path, *words: str) -> str:
    result = CliRunner().invoke(app, ["leave", "--state-dir", str(state), *words], catch_exceptions=True)
    return str(result.exception) if isinstance(result.exception, ConfigError) else result.stdout


def has_reply(state: Path) -> bool:
    return any(REPLY in path.read_bytes() for path in state.rglob("*") if path.is_file())


def runs_of(state: Path) -> set[str]:
    return {path.parent.name for path in state.glob("ann/*/*/memory.safetensors")}


def test_the_server_is_asked_and_the_state_is_deleted(state: Path, client: threading.Event) -> None:
    client.set()
    [ledger] = (path for path in (state / "lineages").glob("*ledger") if path.is_file())
    before = ledger.read_bytes()
    assert has_reply(state)
    receipt = json.loads(Path(leave(state, "--forget").split()[-1]).read_text())
    assert receipt["requests"] == [{"client": "ann", "server": RUNNING.server, "delivered": True}]
    assert [sorted(runs) for runs in receipt["deleted"].values()] == [["spring", "summer"]]
    assert "stays spent" in receipt["stays"][0]
    assert ledger.read_bytes() == before
    assert not runs_of(state)
    assert not has_reply(state)
    assert not [*running_clients(state), *state.glob("*.forget")]


def test_without_a_request_of_the_server_nothing_is_deleted(state: Path, client: threading.Event) -> None:
    assert "sent no request to ann" in leave(state, "--forget", "--wait", "0.2")
    assert runs_of(state) == {"spring", "summer"}
    assert [*running_clients(state)] == [RUNNING]
    assert not [*state.glob("*.forget")]


def test_out_of_reach_of_a_server_the_state_is_deleted_on_request(state: Path) -> None:
    assert "add --local" in leave(state, "--forget")
    assert "--local belongs to --forget" in leave(state, "--local")
    assert runs_of(state) == {"spring", "summer"}
    receipt = json.loads(Path(leave(state, "--forget", "--local").split()[-1]).read_text())
    assert (receipt["requests"], runs_of(state)) == ([], set())
