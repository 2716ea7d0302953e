"""`fedloom up`: a server and client processes over TLS gRPC on loopback."""

import json
import signal
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.system.desk import NETWORK, Command, Desk, until

MAX_MEMORY = 330 * 2**20  # bytes of a client process
SHORT_LIMITS = ("federation.deadline=8", "federation.wait=8", "federation.patience=1")  # seconds, seconds, factor

pytestmark = pytest.mark.system


def test_an_interrupted_and_resumed_run_trains_the_model_of_a_simulation(desk: Desk, homes: Path) -> None:
    options = ("--data", homes, "--clients", "2", *NETWORK, "--rounds", "12", "--seed", "3", "--patience", "20")
    first = desk.up(*options, "--run-id", "whole")
    first.wait_for("round  2/12")
    assert first.end(signal.SIGINT) == 130
    assert "--resume whole" in first.error()
    desk.require_clean(first)

    second = desk.up("--resume", "whole")
    assert second.end() == 0, second.error()
    desk.require_clean(second)
    result = second.result()
    assert (result["status"], result["rounds_done"], len(result["clients"])) == ("completed", 12, 2)
    run = desk.folder / "runs" / "whole"
    assert json.loads((run / "result.json").read_text()) == result
    assert "<svg" in (run / "report.html").read_text()
    assert {event["round"] for event in desk.rounds("whole")} == set(range(1, 13))

    simulated = desk.simulate(*options)
    assert simulated["model_sha256"] == result["model_sha256"]
    assert simulated["metrics"] == pytest.approx(result["metrics"], rel=1e-9)


def test_lost_clients_are_named_and_may_rejoin_and_the_run_fails_without_any(desk: Desk, homes: Path) -> None:
    sets = [word for option in SHORT_LIMITS for word in ("--set", option)]
    up = desk.up(
        "--data", homes, "--clients", "3", *NETWORK, "--rounds", "500", "--run-id", "lost", "--patience", "0", *sets
    )
    up.wait_for("round   1/500")
    home = desk.folder / ".fedloom" / "up" / "lost"
    clients = [process for process in up.family() if process.name().startswith("client-")]
    assert [process.memory_info().rss < MAX_MEMORY for process in clients] == [True] * 3

    _lose(up, "client-2")
    up.wait_for("client-2: no answer")
    up.wait_for("2/3 clients (client-2 gone since round ")
    until(lambda: desk.rounds("lost")[-1]["clients"]["client-2"]["state"] == "missing", up.error)

    partitions = desk.folder / ".fedloom" / "dealt"
    [table] = partitions.glob("*-rules-3/client-2/homes.csv")
    key = home / "client-2" / "node.key"
    client = ("--key", key, "--name", "client-2", "--data", table, "--state-dir", partitions / "state")
    rejoined = desk.start("join", "--server", f"127.0.0.1:{desk.port}", "--ca", home / "server" / "ca.pem", *client)
    until(lambda: desk.rounds("lost")[-1]["answered"] == 3, lambda: up.error() + rejoined.error())

    assert up.process.poll() is None
    rejoined.process.kill()
    _lose(up, "client-0")
    _lose(up, "client-1")
    assert up.end() == 5
    desk.require_clean(up)
    result = up.result()
    assert result["status"] == "failed"
    assert result["rounds_done"] == desk.rounds("lost")[-1]["round"]
    assert "1 required" in result["reason"]
    assert up.error().splitlines()[-1] == f"fedloom: the run failed: {result['reason']}"
    assert (desk.folder / "runs" / "lost" / "model.safetensors").stat().st_size > 0


def _lose(up: Command, name: str) -> None:
    """Kill a client until it is started no more."""

    def lost() -> bool:
        for process in up.family():
            with suppress(psutil.NoSuchProcess):
                if process.name() == name:
                    process.kill()
        return f"{name} ended with exit code -9; the run continues without it" in up.error()

    until(lost, up.error)
