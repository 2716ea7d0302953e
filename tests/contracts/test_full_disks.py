"""A full disk is a waiting state: rounds begin and writes end when there is room, and nothing is lost or released twice."""

import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from flwr.app import Context, Message, RecordDict
from typer.testing import CliRunner

from client.owner.status import read_status
from common import files
from common.errors import FullDiskError
from common.files import LEAST_ROOM, find_shortage, require_room
from common.options import Scalar
from common.wire.messages import FAILED, TRAIN
from deploy.cli import output
from deploy.cli.app import app as commands
from deploy.federation.helper import with_room
from deploy.keys.nodes import add_key, load_public_key, make_node_key, public_path
from deploy.simulation.grid import simulate
from server.record.events import Finish, RoundEvent, Waiting
from server.record.folder import RunDirectory, write_patiently
from server.round.state import RunState
from server.run import run
from tests.support.hubs import NodeGrid, direct, settings
from tests.support.owners import owners
from tests.support.toys import toy_dataset

LOOK = 0.01  # seconds between two looks in these tests


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LOOK_SECONDS", LOOK)


@contextmanager
def disk(folder: Path, size: int) -> Iterator[Path]:
    """Yield a folder on a disk of so many bytes."""
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", folder], capture_output=True).returncode:
        pytest.skip("mounting a file system needs root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(LOOK)


@contextmanager
def beside(work: Callable[[], object]) -> Iterator[threading.Thread]:
    thread = threading.Thread(target=work)
    thread.start()
    yield thread
    thread.join(30)
    assert not thread.is_alive()


def test_a_write_ends_when_the_disk_has_room(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with disk(tmp_path / "disk", 2**20) as folder:
        write_patiently(folder / "model", b"old" * 1000)
        (folder / "other").write_bytes(bytes(2**20 - 2**14))
        with beside(lambda: write_patiently(folder / "model", b"new" * 100_000)) as writer:
            until(lambda: bool(caplog.messages))
            time.sleep(5 * LOOK)
            assert writer.is_alive()
            assert (folder / "model").read_bytes() == b"old" * 1000
            (folder / "other").unlink()
        assert (folder / "model").read_bytes() == b"new" * 100_000
        assert [path.name for path in folder.iterdir()] == ["model"]
    assert len(caplog.messages) == 1


def test_a_file_of_keys_is_refused_while_the_disk_is_full(tmp_path: Path) -> None:
    """The server reads it under the same lock, at its door."""
    public = public_path(tmp_path / "node.key")
    make_node_key(tmp_path / "node.key")
    with disk(tmp_path / "disk", 2**16) as nodes:
        with suppress(OSError):
            (nodes / "other").write_bytes(bytes(2**17))
        with pytest.raises(OSError, match="No space left"):
            add_key(nodes, load_public_key(public))


def test_a_line_that_a_full_disk_tore_is_written_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with disk(tmp_path / "disk", 2**16) as root:
        folder = RunDirectory(root, "toy")
        folder.path.mkdir()
        long = Finish(status="failed", reason="x" * 30_000)
        folder.append(long)
        (root / "other").write_bytes(bytes(2**14))
        with beside(lambda: folder.append(long)):
            until(lambda: bool(caplog.messages))
            (root / "other").unlink()
        assert [*folder.events()] == [long, long]


def test_a_run_waits_for_room_before_a_round_and_trains_the_same_model(tmp_path: Path) -> None:
    config = settings(tmp_path, "fedavg", federation__min_clients=3)
    expected = simulate(config, toy_dataset(3), tmp_path / "whole")
    found = []
    with disk(tmp_path / "disk", LEAST_ROOM + 2**22) as root:
        (root / "other").write_bytes(bytes(2**23))
        with beside(lambda: found.append(simulate(config, toy_dataset(3), root))):
            until((root / "toy" / "metrics.jsonl").exists)
            time.sleep(5 * LOOK)
            events = [*RunDirectory(root, "toy").events()]
            assert [event.disk[:10] for event in events if isinstance(event, Waiting)] == ["disk full:"]
            assert not [event for event in events if isinstance(event, RoundEvent)]
            (root / "other").unlink()
    assert [result.model_sha256 for result in found] == [expected.model_sha256]


def test_a_client_with_a_full_disk_misses_rounds_and_pays_for_none_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    people, narrow = owners(3), tmp_path / "narrow"
    free = {"bytes": 10 * LEAST_ROOM}
    monkeypatch.setattr(files, "free_bytes", lambda folder: free["bytes"] if folder == narrow else 10 * LEAST_ROOM)
    noise: dict[str, Scalar] = {"privacy__unit": "client", "privacy__epsilon": 8.0, "federation__min_clients": 3}
    config = settings(tmp_path, "fedavg", **noise)
    answer = with_room(lambda message, context: direct(people.sessions[3])(message) or message, narrow)
    nodes = {node: direct(people.sessions[node]) for node in (1, 2)}
    nodes[3] = lambda message: answer(message, Context(0, 3, {}, RecordDict(), {}))

    def before_round(state: RunState) -> None:
        free["bytes"] = 0 if state.round == 1 else 10 * LEAST_ROOM

    result = run(NodeGrid(nodes), config, tmp_path, on_round=before_round)
    assert result.status == "completed"
    first, second, _ = [e for e in RunDirectory(tmp_path, "toy").events() if isinstance(e, RoundEvent)]
    assert (first.answered, second.answered) == (3, 2)
    assert "disk full: 0 B are free" in second.refused["client-2"]
    spent = people.spent(config)
    assert spent["client-2"] < spent["client-0"]


def test_a_run_whose_quorum_waits_for_room_asks_the_round_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    people, narrow, looks = owners(2), tmp_path / "narrow", [10 * LEAST_ROOM, 0, 0]
    more = 10 * LEAST_ROOM
    monkeypatch.setattr(files, "free_bytes", lambda folder: looks.pop(0) if folder == narrow and looks else more)
    needed: dict[str, Scalar] = {"federation__min_clients": 2, "federation__min_replies": 2, "federation__wait": 20}
    answer = with_room(lambda message, context: direct(people.sessions[2])(message) or message, narrow)
    nodes = {1: direct(people.sessions[1]), 2: lambda message: answer(message, Context(0, 2, {}, RecordDict(), {}))}
    result = run(NodeGrid(nodes), settings(tmp_path, "fedavg", **needed), tmp_path)
    lines = [event for event in RunDirectory(tmp_path, "toy").events() if isinstance(event, RoundEvent)]
    assert result.status == "completed"
    assert [line.answered for line in lines] == [2, 2, 2]
    assert looks == []


def test_a_full_disk_is_answered_before_anything_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "free_bytes", lambda folder: 3_000_000)
    request = Message(RecordDict(), 1, TRAIN)
    request.metadata.__dict__["_message_id"] = "m1"
    reply = with_room(lambda message, context: pytest.fail("asked"), tmp_path)(
        request, Context(0, 1, {}, RecordDict(), {})
    )
    assert reply.error.code == FAILED
    assert reply.error.reason == "disk full: 3.0 MB are free, 67.1 MB needed for a round; waiting for room"
    with pytest.raises(FullDiskError, match="disk full"):
        require_room(tmp_path)


@pytest.mark.parametrize(
    "words",
    ["up", "simulate", "serve --task rules --catalogue federated", "join --state-dir s --server a:1 --insecure"],
)
def test_commands_wait_for_room_before_they_write(words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*folders: Path, **options: object) -> None:
        raise FullDiskError(" ".join(map(str, folders)))

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(output, "await_room", full)
    waiting = CliRunner().invoke(commands, words.split()).exception
    assert isinstance(waiting, FullDiskError)
    assert str(tmp_path) in str(waiting)
    assert not [*tmp_path.glob("runs/*")]


def test_the_status_of_clients_and_servers_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not read_status(tmp_path).disk
    monkeypatch.setattr(files, "free_bytes", lambda folder: 0)
    assert read_status(tmp_path).disk == find_shortage(tmp_path)
    done = CliRunner().invoke(commands, ["status", "--state-dir", str(tmp_path)], catch_exceptions=False)
    assert "disk full: 0 B are free, 67.1 MB needed for a round; its clients answer no request" in done.stdout
