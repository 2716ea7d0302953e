"""`fedloom stop` and `fedloom status` on real federations: running ones, and what killed commands have left."""

import signal
from pathlib import Path

import pytest

from deploy.superlink.superlink import free_port
from server.record.process import FOLDER, read_records
from tests.system.desk import NETWORK, Command, Desk, until

pytestmark = pytest.mark.system


def _serve(desk: Desk) -> Command:
    ports = ("--port", str(desk.port), "--control-port", str(desk.control_port))
    served = desk.start("serve", "--clients", "2", *NETWORK, "--rounds", "3", "--run-id", "r1", *ports)
    home = desk.folder / ".fedloom" / "server"
    until(lambda: {"fedloom", "the SuperLink", "the ServerApp"} <= _names(home), served.error)
    served.family()
    return served


def _names(home: Path) -> set[str]:
    return {record.name for record in read_records(home / FOLDER)}


def test_a_running_server_is_shown_has_its_home_alone_and_is_stopped(desk: Desk) -> None:
    served = _serve(desk)
    until(lambda: "waits for clients" in desk.finish("status").out, served.error)
    assert "0 connected, 2 required" in desk.finish("status").out
    second = desk.start("serve", "--run-id", "second", "--port", str(free_port()), "--control-port", str(free_port()))
    assert second.end() == 2
    assert f"server is in use by process {served.process.pid}; end it with fedloom stop" in second.error()
    assert not (desk.folder / "runs" / "second").exists()
    stopped = desk.finish("stop").out
    assert stopped.startswith(f"stopped the federation in .fedloom/server: fedloom (process {served.process.pid}), the")
    assert served.end() == 128 + signal.SIGTERM
    desk.require_clean(served)
    assert "no federation of this folder is running" in desk.finish("stop", code=2).error


def _kill_and_stop(desk: Desk, command: Command) -> None:
    """Kill a command; its processes end by themselves within seconds, or by `fedloom stop`, whichever is first."""
    command.process.kill()
    command.process.wait()
    assert desk.start("stop").end() in (0, 2)
    until(lambda: not command.left_behind(), lambda: str(command.left_behind()))
    desk.require_clean(command)


def test_a_killed_server_leaves_nothing(desk: Desk) -> None:
    _kill_and_stop(desk, _serve(desk))


def test_a_running_up_is_shown_and_stopped_with_its_clients(desk: Desk) -> None:
    up = desk.up("--data", "demo:0-8", "--clients", "2", *NETWORK, "--rounds", "500", "--run-id", "r1", "--no-alone")
    until(lambda: bool(desk.rounds("r1")), up.error)
    up.family()
    text = desk.finish("status").out
    assert "run r1 (fedrule on rules): trains; " in text
    assert "client-0 (process " in text
    stopped = desk.finish("stop")
    assert "client-1 (process " in stopped.out
    assert "continue the run with fedloom up --resume r1" in stopped.error
    assert up.end() == 128 + signal.SIGTERM
    desk.require_clean(up)
