"""`fedloom forget`: runs that are made again, keys and names that go, requests of owners, and wrong use."""

import json
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from common.errors import ConfigError
from deploy.cli.app import app
from deploy.data.sources import partition_source, stored_clients, write_clients
from deploy.federation.runs import origin_of
from deploy.keys.nodes import list_nodes
from server.clients.ledger_heads import StoredHead, read_heads, write_heads
from server.record.events import Refusal, RoundEvent, Start
from server.record.folder import RunDirectory
from server.record.withdrawal import RECEIPTS

NODES = Path(".fedloom/server/nodes")


@pytest.fixture(autouse=True)
def trained(here: Path) -> Path:
    """Train a run of four clients by one command."""
    words = ("--method", "ridge", "--data", "demo:0-8", "--clients", "4", "--run-id", "toy", "--no-alone")
    assert command("simulate", *words).exit_code == 0
    return here / "runs"


def command(*words: str) -> Result:
    return CliRunner().invoke(app, words)


def forget(*words: str) -> Result:
    return command("forget", *words)


def error(*words: str) -> str:
    failed = forget(*words)
    assert isinstance(failed.exception, ConfigError), failed.exception
    return str(failed.exception)


def test_a_simulation_is_made_again_at_once(trained: Path) -> None:
    receipt = json.loads(forget("client-2", "--yes", "--json").stdout)
    [entry] = receipt["runs"]
    assert (entry["done"], entry["replaced_by"], entry["reason"]) == ("solved again", "toy.2", "")
    result = RunDirectory(trained, "toy.2").result()
    assert result
    assert sorted(result.clients) == ["client-0", "client-1", "client-3"]
    assert (entry["model_after"], result.replaces) == (result.model_sha256, "toy")
    assert entry["model_before"] not in ("", result.model_sha256)
    assert not list(Path(".fedloom").rglob("toy*")), "the vocabulary is in the folder of the run"
    recommended = command("recommend", "--run", "toy.2", "--data", "demo:0-1", "--json")
    assert recommended.exit_code == 0
    assert "use run 'toy.2'" in str(command("recommend", "--run", "toy", "--data", "demo:0-1").exception)


def test_later_a_command_makes_the_run_again(trained: Path) -> None:
    shown = forget("client-2", "--yes", "--later")
    assert "make it again with fedloom simulate --resume toy.2\n" in shown.stderr
    folder = RunDirectory(trained, "toy.2")
    assert folder.config()["federation.min-clients"] == 3
    assert origin_of(folder.path)
    why = str(command("recommend", "--run", "toy.2", "--data", "demo:0-1").exception)
    assert why == (
        "run 'toy.2' has no model yet, since a client is forgotten; make it again with fedloom simulate --resume toy.2"
    )


def test_wrong_use_is_refused_before_anything_is_deleted(trained: Path) -> None:
    assert "has a client 'client-7', and no key" in (unknown := error("client-7", "--yes"))
    assert "did you mean 'client-" in unknown
    assert "client 'shop' took no part in run 'toy'" in error("shop", "--run", "toy", "--yes")
    assert "no run 'tyo'" in error("client-2", "--run", "tyo", "--yes")
    assert "needs a confirmation; set --yes" in error("client-2")
    with RunDirectory(trained, "toy").lock():
        assert "run 'toy' is in progress; end it with fedloom stop" in error("client-2", "--yes")
    assert RunDirectory(trained, "toy").result()
    assert not (trained / RECEIPTS).exists()


def test_name_key_and_heads_of_the_client_go(trained: Path) -> None:
    for name in ("client-1", "client-2"):
        assert command("keys", "node", f"{name}.key").exit_code == 0
        assert command("nodes", "add", f"{name}.key.pub", "--name", name).exit_code == 0
    other, mine = (entry.fingerprint for entry in list_nodes(NODES))
    heads = {mark: {"a1": StoredHead("rules", 3, "x")} for mark in (other, mine)}
    write_heads(NODES, heads)
    assert forget("client-2", "--run", "toy", "--yes", "--later").exit_code == 0
    assert [entry.name for entry in list_nodes(NODES)] == ["client-1", "client-2"], "one run does not concern the key"
    receipt = json.loads(forget("client-2", "--yes", "--json").stdout)
    assert mine in receipt["removed"][0]
    assert any(f"the key {mine}, without a name" in text for text in receipt["stays"])
    assert [(entry.name, entry.state) for entry in list_nodes(NODES)] == [("client-1", "registered"), ("", "revoked")]
    assert read_heads(NODES).keys() == {other}
    assert not [path for path in NODES.rglob("*") if path.is_file() and b"client-2" in path.read_bytes()]


def test_a_hub_keeps_its_key_and_the_heads_of_its_clients(trained: Path) -> None:
    start = Start(
        run="toy", method="ridge", task="rules", model="default", seed=0, rounds=3, clients=["ward/a", "ward/b"]
    )
    RunDirectory(trained, "toy").append(start)
    receipt = json.loads(forget("ward/a", "--yes", "--later", "--json").stdout)
    assert receipt["removed"] == []
    assert receipt["stays"][-2].startswith("the key of hub 'ward', and the head of this client's ledger")


def test_clients_that_ask_are_listed(trained: Path) -> None:
    assert forget().stdout == "no client asks to be forgotten\n"
    folder, asks = RunDirectory(trained, "toy"), "asks to be forgotten"
    about = {"rounds": 3, "loss": 0.0, "seconds": 0.0, "answered": 3, "asked": 4, "bytes_down": 0, "bytes_up": 0}
    folder.append(RoundEvent(round=4, refused={"client-2": asks, "node-9": asks}, **about))
    assert forget().stdout == "client-2 asks to be forgotten (runs toy); fedloom forget client-2\n"
    assert json.loads(forget("--json").stdout) == [{"client": "client-2", "runs": ["toy"]}]


def test_names_that_stay_elsewhere_are_said(trained: Path) -> None:
    other = RunDirectory(trained, "other")
    other.create(RunDirectory(trained, "toy").config(), {})
    other.append(Refusal(client="client-2", reason="paused by its owner"))
    stays = json.loads(forget("client-2", "--yes", "--later", "--json").stdout)["stays"]
    assert any(text.startswith("its name in runs that refused it: other in ") for text in stays)


def test_the_files_of_up_go_to_the_run_without_the_client(trained: Path) -> None:
    home = Path(".fedloom/up/toy").resolve()
    specs = write_clients("rules", "demo:0-8", partition_source("rules", "demo:0-8", None, 4), home, home / "dealt")
    for spec in specs:
        (spec.home / "state" / spec.name / "data" / "toy").mkdir(parents=True)
        (spec.home / "node.key").touch()
    (home / "server").mkdir()
    assert forget("client-2", "--yes", "--later").exit_code == 0
    new = home.with_name("toy.2")
    assert [spec.name for spec in stored_clients(new)] == ["client-0", "client-1", "client-3"]
    assert all((spec.home / "node.key").exists() for spec in stored_clients(new))
    assert not [path for path in new.rglob("toy") if "client-2" not in str(path)], "received models are deleted"
    assert not (new / "server").exists()
    assert not home.exists()
