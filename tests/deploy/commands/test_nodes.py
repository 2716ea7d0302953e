"""Command `nodes`."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from client.secure.members import MEMBERS
from client.state import DiskStore
from common.node_names import fingerprint
from deploy.cli.app import app
from deploy.keys.nodes import list_nodes, load_public_key, make_node_key
from tests.support.helpers import members

pytestmark = pytest.mark.usefixtures("here")

NODES = Path(".fedloom/server/nodes")


def command(*words: str) -> Result:
    return CliRunner().invoke(app, words)


def test_a_hub_is_listed_with_the_number_of_its_clients() -> None:
    for name, number in (("ward", "1250"), ("shop", "0")):
        assert command("keys", "node", f"{name}.key").exit_code == 0
        assert command("nodes", "add", f"{name}.key.pub", "--name", name, "--clients", number).exit_code == 0
    shop, ward = command("nodes", "list").stdout.splitlines()
    assert ward.startswith("ward")
    assert ward.endswith("  1,250 clients")
    assert "clients" not in shop
    assert [entry["clients"] for entry in json.loads(command("nodes", "list", "--json").stdout)] == [1, 1250]


def test_nodes_are_listed_with_names_for_people_and_programs() -> None:
    assert "no keys in .fedloom/server/nodes" in command("nodes", "list").stderr
    assert command("keys", "node", "node.key").exit_code == 0
    assert command("nodes", "add", "node.key.pub", "--name", "shop-3").exit_code == 0
    assert command("nodes", "list").stdout.split()[:2] == ["shop-3", "registered"]
    [entry] = json.loads(command("nodes", "list", "--json").stdout)
    assert (entry["name"], entry["state"]) == ("shop-3", "registered")
    assert command("keys", "node", "new.key").exit_code == 0
    assert command("nodes", "rotate", "shop-3", "new.key.pub").exit_code == 0
    [entry, old] = json.loads(command("nodes", "list", "--json").stdout)
    assert (entry["name"], old["state"]) == ("shop-3", "revoked")
    assert command("nodes", "revoke", entry["fingerprint"]).exit_code == 0
    assert json.loads(command("nodes", "list", "--json").stdout)[0]["state"] == "revoked"
    assert command("keys", "node", "third.key").exit_code == 0
    assert command("nodes", "add", "third.key.pub", "--name", "shop-4").exit_code == 0
    assert json.loads(command("nodes", "list", "--json").stdout)[0]["name"] == "shop-4"
    assert "was revoked" in str(command("nodes", "add", "node.key.pub").exception)
    assert replace(list_nodes(NODES)[-1], since="", file=Path()).state == "revoked"


@pytest.mark.parametrize(
    ("removed", "successor"), [("register", "add"), ("list", "list"), ("rotate", "rotate"), ("revoke", "revoke")]
)
def test_the_removed_commands_of_keys_name_their_successors(removed: str, successor: str) -> None:
    error = f"fedloom keys {removed} was removed in 0.2; use fedloom nodes {successor}"
    assert str(command("keys", removed, "node.key.pub", "--name", "shop-3").exception) == error
    assert removed not in command("keys", "--help").stdout


@pytest.mark.parametrize("words", ["keys show own.key", "keys show own.key.pub", "helper --key own.key --fingerprint"])
def test_the_fingerprint_of_a_key_is_printed(words: str) -> None:
    make_node_key(Path("own.key"))
    expected = fingerprint(load_public_key(Path("own.key.pub")))
    assert command(*words.split()).stdout.strip() == expected
    if words.startswith("keys"):
        assert json.loads(command(*words.split(), "--json").stdout) == {"fingerprint": expected}


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("", "--key is missing; create one with fedloom keys node PATH"),
        ("--key none.key --fingerprint", "cannot read key file none.key"),
        ("--key own.key", "--server is missing"),
        ("--key own.key --server localhost:9092", "--ca is missing"),
        ("--key own.key --server localhost:9092 --ca none.pem", "cannot read none.pem"),
        ("--key own.key --server localhost --ca own.key.pub", "server address 'localhost' is not HOST:PORT"),
        ("--key own.key --server localhost:9092 --ca own.key.pub --name a/b", "a/b"),
    ],
)
def test_wrong_options_are_named(words: str, reason: str) -> None:
    make_node_key(Path("own.key"))
    assert reason in str(command("helper", *words.split()).exception)
    assert not Path("state").exists()


def test_members_of_a_run_are_shown_with_the_keys_of_their_nodes() -> None:
    shown = members("ann", "bob")
    DiskStore(Path("state/ann/0123")).write("r1", MEMBERS, "\n".join(one.line for one in shown.members).encode())
    assert command("members", "r1", "--state-dir", "state").stdout.splitlines() == [
        "ann: 2 members of run r1",
        *(f"  {one.identity}  {one.name}" for one in shown.members),
    ]
    found = json.loads(command("members", "r1", "--state-dir", "state", "--json").stdout)["ann"]
    assert [one["name"] for one in found] == ["ann", "bob"]
    assert "no client of state was shown members of run 'r2'" in str(
        command("members", "r2", "--state-dir", "state").exception
    )
