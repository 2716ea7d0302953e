"""`fedloom up`: a server and client processes over TLS gRPC on loopback."""

import json
import signal
from pathlib import Path

import psutil
import pytest

from tests.system.desk import Desk, until

MOST_MEMORY = 600 * 2**20  # bytes of a client process
QUICK_TO_GIVE_UP = ("federation.deadline=8", "federation.wait=8", "federation.patience=1")  # seconds, seconds, factor

pytestmark = pytest.mark.system


def test_interrupted_and_resumed_it_ends_in_the_model_of_a_simulation(desk: Desk, homes: Path) -> None:
    options = ("--data", homes, "--clients", "2", "--rounds", "6", "--seed", "3")
    first = desk.up(*options, "--run-id", "whole")
    first.says("round 2/6")
    assert first.end(signal.SIGINT) == 130
    assert "--resume whole" in first.error()
    desk.require_clean(first)

    second = desk.up("--resume", "whole")
    assert second.end() == 0, second.error()
    desk.require_clean(second)
    result = second.result()
    assert (result["status"], result["rounds_done"], len(result["clients"])) == ("completed", 6, 2)
    run = desk.folder / "runs" / "whole"
    assert json.loads((run / "result.json").read_text()) == result
    assert "<svg" in (run / "report.html").read_text()
    assert {event["round"] for event in desk.rounds("whole")} == set(range(1, 7))

    alone = desk.start("simulate", *options, "--together", "1", "--json")
    assert alone.end() == 0, alone.error()
    assert alone.result()["model_sha256"] == result["model_sha256"]
    assert alone.result()["metrics"] == pytest.approx(result["metrics"], rel=1e-9)


def test_lost_clients_are_named_come_back_and_when_all_are_lost_the_run_stops(desk: Desk, homes: Path) -> None:
    sets = [word for option in QUICK_TO_GIVE_UP for word in ("--set", option)]
    up = desk.up("--data", homes, "--clients", "3", "--rounds", "500", "--run-id", "lost", *sets)
    up.says("round   1/500")
    home = desk.folder / ".fedloom" / "up" / "lost"
    clients = {name: _client(up.family(), name) for name in ("client-0", "client-1", "client-2")}
    assert {name for name, p in clients.items() if p.memory_info().rss > MOST_MEMORY} == set()

    clients["client-2"].kill()
    up.says("client-2: no answer")
    up.says("client-2 ended with exit code -9; the run continues without it")
    until(lambda: desk.rounds("lost")[-1]["answered"] == desk.rounds("lost")[-1]["asked"] == 2, up.error)

    dealt = desk.folder / ".fedloom" / "dealt"
    [own] = dealt.glob("*-rules-3/client-2/homes.csv")
    key = home / "client-2" / "node.key"
    who = ("--key", key, "--name", "client-2", "--data", own, "--state-dir", dealt / "state")
    again = desk.start("join", "--server", f"127.0.0.1:{desk.port}", "--ca", home / "server" / "ca.pem", *who)
    until(lambda: desk.rounds("lost")[-1]["answered"] == 3, lambda: up.error() + again.error())

    assert up.process.poll() is None
    clients["client-0"].kill()
    clients["client-1"].kill()
    again.process.kill()
    assert up.end() == 1
    desk.require_clean(up)
    result = up.result()
    assert result["status"] == "failed"
    assert result["rounds_done"] == desk.rounds("lost")[-1]["round"]
    assert "1 needed" in result["reason"]
    assert up.error().splitlines()[-1] == f"fedloom: the run failed: {result['reason']}"
    assert (desk.folder / "runs" / "lost" / "model.safetensors").stat().st_size > 0


def _client(family: set[psutil.Process], name: str) -> psutil.Process:
    [found] = [p for p in family if p.is_running() and name in p.cmdline() and "join" in p.cmdline()]
    return found
