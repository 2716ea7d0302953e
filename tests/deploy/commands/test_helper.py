"""Commands `helper` and `keys show`."""

import json
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from client.secure.members import MEMBERS
from client.state import DiskStore
from common.node_names import fingerprint
from deploy.cli.app import app
from deploy.keys.nodes import load_public_key, make_node_key
from tests.support.helpers import members

pytestmark = pytest.mark.usefixtures("here")


def command(*words: str) -> Result:
    return CliRunner().invoke(app, words)


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
