"""`fedloom status`, `pause`, `resume` and `leave` on a state folder."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from client.data.dataset import fingerprint
from client.owner.control import OwnerControl, RunningClient
from client.owner.journal import ConnectionEntry, RequestEntry, RequestJournal
from client.privacy.ledger.database import Slot
from client.privacy.ledger.locate import open_ledger
from common.errors import ConfigError
from common.privacy.accounts import Zcdp
from common.privacy.mechanisms import Gaussian
from deploy.cli.app import app

TIME = "2026-11-23T10:00:{:02d}.000+00:00"
RUNNING = RunningClient(os.getpid(), "ann", "train.example.org:9092", "2026-11-23T09:59:59+00:00")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Return the state folder of a client that trained two rounds, was refused once, and lost its server once."""
    folder = tmp_path / "state"
    journal = RequestJournal(folder)
    journal.write(ConnectionEntry(TIME.format(0), "ann", "away", "train.example.org:9092", "no server there"))
    journal.write(ConnectionEntry(TIME.format(1), "ann", "connected", "train.example.org:9092"))
    about: dict[str, Any] = {"run": "spring", "task": "rules", "method": "fedavg", "rounds": 30}
    for number in (1, 2):
        entry = RequestEntry(
            f"t{number}",
            TIME.format(10 + number),
            "ann",
            **about,
            round=number,
            asked="train",
            sent_bytes=40_000,
            noised=True,
            epsilon_spent=1.5,
            epsilon_run=10.0,
            epsilon_left_run=10 - 1.5 * number,
        )
        journal.write(entry)
        journal.write(RequestEntry(**{**vars(entry), "acknowledged": TIME.format(20)}))
    measured = RequestEntry("e2", TIME.format(21), "ann", **about, round=2, asked="evaluate", sent_bytes=300)
    journal.write(RequestEntry(**{**vars(measured), "clear": {"metrics/auc": 0.9}}))
    journal.write(RequestEntry("t3", TIME.format(30), "ann", **about, round=3, asked="train", refused="paused\x1b[2J"))
    data = tmp_path / "homes.csv"
    data.write_text("home,rule\n")
    ledger = open_ledger(str(data), folder, fingerprint(str(data), (0, 1), 0), "client", Zcdp(), 10.0, 1e-5)
    ledger.release(Slot("spring", 1), ledger.terms(Gaussian(0.25, 1.0)), lambda: b"noise")
    ledger.close()
    return folder


def run(*words: object) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def test_the_status_of_an_ended_client_has_runs_bytes_costs_and_refusals(state: Path) -> None:
    text = run("status", "--state-dir", state)
    for part in (
        "ann: not running; ended without leaving",
        "run spring (task rules, method fedavg): trained in 2 of 30 rounds",
        "ε 3 spent, 7 left",
        "sent noised: 80.0 kB updates",
        "sent without noise: 300 B metrics",
        "sent 1 number in plaintext",
        "1 reply perhaps never arrived",
        "refused 1 request; the last at ",
        "last error at ",
        ": no server there",
        "guarantee: ε = 10, δ = 1e-05, for all requests together",
        "covers the content of all noisy replies of this client",
    ):
        assert part in text
    assert "\x1b" not in text


def test_the_status_of_a_running_client_has_process_and_time_of_connection(state: Path) -> None:
    with OwnerControl(state, RUNNING):
        assert f", process {os.getpid()}" in run("status", "--state-dir", state)
        assert "ann: connected to train.example.org:9092 since " in run("status", "--state-dir", state)


def test_the_status_as_json_has_the_same_facts(state: Path) -> None:
    with OwnerControl(state, RUNNING):
        found = json.loads(run("status", "--state-dir", state, "--json"))
    [client] = found["clients"]
    assert client["process"]["pid"] == os.getpid()
    assert client["runs"][0]["trained"] == [1, 2]
    assert (client["noised_bytes"], client["plaintext_bytes"]) == ({"train": 80_000}, {"evaluate": 300})
    assert (client["refusals"], client["unacknowledged"]) == (1, 1)
    assert found["paused"] is False
    assert found["ledgers"][0]["epsilon"] == 10


def test_the_status_changes_no_file(state: Path) -> None:
    def contents() -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in state.parent.rglob("*") if path.is_file()}

    before = contents()
    run("status", "--state-dir", state)
    assert contents() == before


def test_a_damaged_ledger_is_named_beside_the_rest(state: Path) -> None:
    (state.parent / ".homes.csv.fedloom-ledger").write_bytes(b"no ledger")
    text = run("status", "--state-dir", state)
    assert "ledger cannot be used: " in text
    assert "trained in 2 of 30 rounds" in text


def test_a_state_folder_without_clients_is_no_error(tmp_path: Path) -> None:
    assert "no client has run here yet" in run("status", "--state-dir", tmp_path)


@pytest.mark.parametrize("command", ["status", "pause", "resume", "leave"])
def test_a_missing_state_folder_is_wrong_use(command: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, [command, "--state-dir", str(tmp_path / "none")])
    assert isinstance(result.exception, ConfigError)
    assert "give the --state-dir of `fedloom join`" in str(result.exception)


def test_pause_and_resume_name_the_clients_and_show_in_the_status(state: Path) -> None:
    assert "no client runs now; the next one starts paused" in run("pause", "--state-dir", state)
    with OwnerControl(state, RUNNING):
        assert run("pause", "--state-dir", state) == "paused: ann\n"
        assert "paused by its owner" in run("status", "--state-dir", state)
        assert run("resume", "--state-dir", state) == "resumed: ann\n"
    assert "no client of this state folder was paused" in run("resume", "--state-dir", state)


def test_leave_reaches_running_clients_only(state: Path) -> None:
    with OwnerControl(state, RUNNING) as control:
        assert f"ann (process {os.getpid()})" in run("leave", "--state-dir", state)
        assert control.leaves
    result = CliRunner().invoke(app, ["leave", "--state-dir", str(state)])
    assert isinstance(result.exception, ConfigError)
    assert "no client runs in state folder" in str(result.exception)
